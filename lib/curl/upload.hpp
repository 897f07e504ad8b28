// Upload: gives libcurl the body of a request that is not in memory, piece by piece.
#pragma once

#include "abort.hpp"

#include <httpretry/http/body.hpp>

#include <memory>
#include <optional>
#include <span>

namespace httpretry {

class Upload {
 public:
  Upload(const Body& body, AbortReason& abort) : body_(body), abort_(abort) {}

  // Opens the body, from its beginning.
  Result<void> open();
  // Of the open body, where it has one.
  [[nodiscard]] std::optional<std::uint64_t> bytes_left() const { return left_; }

  // As libcurl's read callback: the number of bytes, 0 at the end, CURL_READFUNC_ABORT.
  std::size_t read(std::span<char> into) noexcept;
  // For another round of authentication; false aborts.
  bool rewind() noexcept;

 private:
  [[nodiscard]] Result<void> check_size(std::size_t count);

  const Body& body_;
  AbortReason& abort_;
  std::unique_ptr<BodyReader> reader_;
  std::optional<std::uint64_t> left_;
};

}  // namespace httpretry
