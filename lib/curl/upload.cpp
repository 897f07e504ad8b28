#include "upload.hpp"

#include <string>

namespace httpretry {

Result<void> Upload::open() {
  auto opened = body_.open();
  if (!opened) return std::move(opened).error();
  reader_ = *std::move(opened);
  left_ = reader_->size();
  return {};
}

std::size_t Upload::read(std::span<char> into) noexcept {
  try {
    const auto count = reader_->read(into);
    const auto checked = count ? check_size(*count) : Result<void>(count.error());
    if (checked) return *count;
    Error error(Errc::InvalidRequest, checked.error().message);
    error.permanent = true;
    abort_.set_error(Abort::UploadFailed, std::move(error));
  } catch (...) {
    abort_.set_thrown(Abort::UploadFailed, Errc::InvalidRequest, "reading the body");
  }
  return CURL_READFUNC_ABORT;
}

// With another size than announced, what follows on the connection would be taken for a part of
// the request, or the server would wait for the rest.
Result<void> Upload::check_size(std::size_t count) {
  if (!left_) return {};
  if (count == 0 && *left_ > 0) {
    return Error(Errc::InvalidRequest,
                 "the body ended " + std::to_string(*left_) + " bytes before its announced size");
  }
  if (count > *left_) {
    return Error(Errc::InvalidRequest, "the body is longer than its announced size");
  }
  *left_ -= count;
  return {};
}

bool Upload::rewind() noexcept {
  try {
    return open().has_value();
  } catch (...) {
    return abort_.set(Abort::NoMemory);
  }
}

}  // namespace httpretry
