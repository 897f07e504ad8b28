// Upload: gives libcurl a request body that is not in memory, piece by piece.
#pragma once

#include "errors.hpp"

#include "lib/core/http/checked_reader.hpp"

#include <array>

namespace httpretry {

class Upload {
 public:
  Upload(const Body& body, AbortReason& abort) : body_(body), abort_(abort) {}

  // Opens the body from its beginning.
  Result<void> open() {
    auto opened = reader_.open(body_);
    if (!opened) return opened;
    given = 0;
    ended_ = false;
    return probe_end();
  }
  // Returns the size of the whole body if it is known; 0 without a body.
  [[nodiscard]] std::optional<std::uint64_t> size() const {
    if (!body_.present()) return 0;
    if (body_.bytes() != nullptr) return body_.bytes()->size();
    const auto left = reader_.bytes_left();
    return left ? given + *left : left;
  }

  // Called by libcurl for the next bytes of the body. Writes them into `into` and returns their
  // number, or 0 at the end. Returns CURL_READFUNC_PAUSE if more bytes are not available yet, and
  // CURL_READFUNC_ABORT if the body cannot be read or is longer than its announced size; the reason
  // is then in `abort_`.
  std::size_t read(std::span<char> into) noexcept {
    if (detached_) return CURL_READFUNC_PAUSE;  // a coroutine has the reader, and waits for more
    if (reader_.bytes_left() == 0) return 0;
    std::size_t result = CURL_READFUNC_PAUSE;
    // `guard` returns what the function returns, or false if it throws. `set_error` returns false.
    const bool good = abort_.guard(CURLE_READ_ERROR, kReading, [&] {
      auto count = reader_.read(into);
      if (!count) return abort_.set_error(CURLE_READ_ERROR, std::move(count).error());
      paused = *count == BodyReader::kPause;
      if (paused) return true;
      result = *count;
      given += result;
      // Checked before the server gets the last announced byte and takes the body for complete.
      return verify_end();
    });
    return good ? result : CURL_READFUNC_ABORT;
  }
  // Called when the exchange is over. Returns false, and aborts it, if the body is longer than its
  // announced size.
  bool check_end() noexcept {
    return detached_ || abort_.guard(CURLE_READ_ERROR, kReading, [this] { return verify_end(); });
  }
  // Moves the reader to the caller, who awaits more of the body and then calls `reattach`. Until
  // then `read` pauses libcurl.
  [[nodiscard]] CheckedReader detach() {
    detached_ = true;
    return std::move(reader_);
  }
  // Returns false if the body was rewound in the meantime, so that the old reader is of no use.
  bool reattach(CheckedReader reader) {
    detached_ = paused = false;
    if (std::exchange(rewound, false)) return false;
    reader_ = std::move(reader);
    return true;
  }

  // Starts again for another round of authentication. Returns false to abort.
  bool rewind() noexcept {
    rewound = detached_;
    try {
      return open().has_value();
    } catch (...) {
      return abort_.set(Abort::NoMemory);
    }
  }

  std::uint64_t given = 0;  // bytes of the body that libcurl has received
  bool paused = false;      // libcurl is paused until more of the body is available
  bool rewound = false;     // rewound while detached, so the awaited data is of no use

 private:
  static constexpr char kReading[] = "reading the body";
  // Checks that the body ends where its announced size says, because libcurl 8 never asks for more.
  // Returns the reader's error if the body goes on. Does not wait for a reader that pauses.
  Result<void> probe_end() {
    if (reader_.bytes_left() != 0 || ended_) return {};
    std::array<char, 1> more{};
    const auto count = reader_.read(more);
    if (!count) return count.error();
    ended_ = *count == 0;
    return {};
  }
  bool verify_end() {
    auto probed = probe_end();
    return probed || abort_.set_error(CURLE_READ_ERROR, std::move(probed).error());
  }

  const Body& body_;
  AbortReason& abort_;
  CheckedReader reader_;
  bool ended_ = false;  // the reader has reported its end
  bool detached_ = false;
};

}  // namespace httpretry
