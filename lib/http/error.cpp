#include <httpretry/http/result.hpp>

namespace httpretry {

Error::Error(Errc errc, std::string text) : code(errc), message(std::move(text)) {}

Failure::Failure(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}
const char* Failure::what() const noexcept { return error_->message.c_str(); }

}  // namespace httpretry
