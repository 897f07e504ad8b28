#include <httpretry/http/response.hpp>

namespace httpretry {

Response::Response(int code, std::string text) : status(code), body(std::move(text)) {}

}  // namespace httpretry
