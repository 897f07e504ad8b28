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
    return look_for_end();
  }
  // Returns the size of the whole body if it is known; 0 without a body.
  [[nodiscard]] std::optional<std::uint64_t> size() const {
    if (!body_.present()) return 0;
    if (body_.bytes() != nullptr) return body_.bytes()->size();
    const auto left = reader_.bytes_left();
    return left ? given + *left : left;
  }

  // libcurl's read callback. Returns the number of bytes, 0 at the end, CURL_READFUNC_ABORT or
  // CURL_READFUNC_PAUSE.
  std::size_t read(std::span<char> into) noexcept {
    if (lent_) return CURL_READFUNC_PAUSE;
    if (reader_.bytes_left() == 0) return 0;
    std::size_t result = CURL_READFUNC_PAUSE;
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
    return lent_ || abort_.guard(CURLE_READ_ERROR, kReading, [this] { return verify_end(); });
  }
  // Lends the reader to the function that awaits more of the body and then gives it back.
  [[nodiscard]] CheckedReader lend() {
    lent_ = true;
    return std::move(reader_);
  }
  // Returns false if the body was rewound in the meantime, so that the old reader is of no use.
  bool take_back(CheckedReader reader) {
    lent_ = paused = false;
    if (std::exchange(rewound, false)) return false;
    reader_ = std::move(reader);
    return true;
  }

  // Starts again for another round of authentication. Returns false to abort.
  bool rewind() noexcept {
    rewound = lent_;
    try {
      return open().has_value();
    } catch (...) {
      return abort_.set(Abort::NoMemory);
    }
  }

  std::uint64_t given = 0;  // bytes of the body that libcurl has received
  bool paused = false;      // libcurl is paused until more of the body is available
  bool rewound = false;     // rewound while lent, so the awaited data is of no use

 private:
  static constexpr char kReading[] = "reading the body";
  // Checks that the body ends where its announced size says, because libcurl 8 never asks for more.
  // A reader that would have to wait to find out is not waited for.
  Result<void> look_for_end() {
    if (reader_.bytes_left() != 0 || ended_) return {};
    std::array<char, 1> more{};
    const auto count = reader_.read(more);
    if (!count) return count.error();
    ended_ = *count == 0;
    return {};
  }
  bool verify_end() {
    auto looked = look_for_end();
    return looked || abort_.set_error(CURLE_READ_ERROR, std::move(looked).error());
  }

  const Body& body_;
  AbortReason& abort_;
  CheckedReader reader_;
  bool ended_ = false;  // the reader has reported its end
  bool lent_ = false;
};

}  // namespace httpretry
