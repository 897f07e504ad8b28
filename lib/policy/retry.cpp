#include <httpretry/retry.hpp>
