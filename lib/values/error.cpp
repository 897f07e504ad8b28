#include <httpretry/error.hpp>
#include <httpretry/result.hpp>

namespace httpretry {

Error::Error(Errc errc, std::string text) : code(errc), message(std::move(text)) {}
Error::~Error() = default;
Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;

Failure::Failure(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}
const char* Failure::what() const noexcept { return error_->message.c_str(); }

}  // namespace httpretry
