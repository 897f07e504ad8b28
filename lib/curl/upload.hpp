// Upload: gives libcurl the body of a request that is not in memory, piece by piece.
#pragma once

#include "errors.hpp"

#include "lib/http/checked_reader.hpp"

namespace httpretry {

class Upload {
 public:
  Upload(const Body& body, AbortReason& abort) : body_(body), abort_(abort) {}

  // Opens the body, from its beginning.
  Result<void> open() { return reader_.open(body_); }
  // Of the open body, where it has one.
  [[nodiscard]] std::optional<std::uint64_t> bytes_left() const { return reader_.bytes_left(); }

  // As libcurl's read callback: the number of bytes, 0 at the end, CURL_READFUNC_ABORT.
  std::size_t read(std::span<char> into) noexcept {
    try {
      auto count = reader_.read(into);
      if (count) return *count;
      abort_.set_error(Abort::UploadFailed, std::move(count).error());
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
  const Body& body_;
  AbortReason& abort_;
  CheckedReader reader_;
};

}  // namespace httpretry
