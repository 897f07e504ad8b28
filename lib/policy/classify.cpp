#include <httpretry/classify.hpp>
