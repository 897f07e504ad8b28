#include <httpretry/response.hpp>

namespace httpretry {

Response::Response() = default;
Response::Response(int code, std::string text) : status(code), body(std::move(text)) {}
Response::~Response() = default;
Response::Response(const Response&) = default;
Response::Response(Response&&) noexcept = default;
Response& Response::operator=(const Response&) = default;
Response& Response::operator=(Response&&) noexcept = default;

}  // namespace httpretry
