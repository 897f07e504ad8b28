// Upload: gives libcurl the body of a request that is not in memory, piece by piece.
#pragma once

#include "errors.hpp"

#include <httpretry/http/body.hpp>

namespace httpretry {

class Upload {
 public:
  Upload(const Body& body, AbortReason& abort) : body_(body), abort_(abort) {}

  // Opens the body, from its beginning.
  Result<void> open() {
    auto opened = body_.open();
    if (!opened) return std::move(opened).error();
    reader_ = *std::move(opened);
    left_ = reader_->size();
    return {};
  }
  // Of the open body, where it has one.
  [[nodiscard]] std::optional<std::uint64_t> bytes_left() const { return left_; }

  // As libcurl's read callback: the number of bytes, 0 at the end, CURL_READFUNC_ABORT.
  std::size_t read(std::span<char> into) noexcept {
    try {
      const auto count = reader_->read(into);
      const auto problem = count ? size_problem(*count) : count.error().message;
      if (count && problem.empty()) {
        if (left_) *left_ -= *count;
        return *count;
      }
      Error error(Errc::InvalidRequest, problem);
      error.permanent = true;
      abort_.set_error(Abort::UploadFailed, std::move(error));
    } catch (...) {
      abort_.set_thrown(Abort::UploadFailed, Errc::InvalidRequest, "reading the body");
    }
    return CURL_READFUNC_ABORT;
  }
  // For another round of authentication; false aborts.
  bool rewind() noexcept {
    try {
      return open().has_value();
    } catch (...) {
      return abort_.set(Abort::NoMemory);
    }
  }

 private:
  // With another size than announced, what follows on the connection would be taken for a part of
  // the request, or the server would wait for the rest.
  [[nodiscard]] std::string size_problem(std::size_t count) const {
    if (!left_) return {};
    if (count > *left_) return "the body is longer than its announced size";
    if (count > 0 || *left_ == 0) return {};
    return "the body ended " + std::to_string(*left_) + " bytes before its announced size";
  }

  const Body& body_;
  AbortReason& abort_;
  std::unique_ptr<BodyReader> reader_;
  std::optional<std::uint64_t> left_;
};

}  // namespace httpretry
