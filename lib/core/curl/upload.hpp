// Upload: gives libcurl the body of a request that is not in memory, piece by piece.
#pragma once

#include "errors.hpp"

#include "lib/core/http/checked_reader.hpp"

#include <array>

namespace httpretry {

class Upload {
 public:
  Upload(const Body& body, AbortReason& abort) : body_(body), abort_(abort) {}

  // Opens the body, from its beginning.
  Result<void> open() {
    auto opened = reader_.open(body_);
    if (!opened) return opened;
    given = 0;
    ended_ = false;
    return look_for_end();
  }
  // Of the whole body, where it is known; 0 if there is no body.
  [[nodiscard]] std::optional<std::uint64_t> size() const {
    if (!body_.present()) return 0;
    if (body_.bytes() != nullptr) return body_.bytes()->size();
    const auto left = reader_.bytes_left();
    return left ? given + *left : left;
  }

  // As libcurl's read callback: the number of bytes, 0 at the end, CURL_READFUNC_ABORT or
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
      return ends();  // before the server gets what it would take for the whole
    });
    return good ? result : CURL_READFUNC_ABORT;
  }
  // When the exchange is over. False: the body is longer than its announced size, and it aborts.
  bool check_end() noexcept {
    return lent_ || abort_.guard(CURLE_READ_ERROR, kReading, [this] { return ends(); });
  }
  // To whom awaits more; it gives the reader back.
  [[nodiscard]] CheckedReader lend() {
    lent_ = true;
    return std::move(reader_);
  }
  // False if it has begun again meanwhile.
  bool take_back(CheckedReader reader) {
    lent_ = paused = false;
    if (std::exchange(rewound, false)) return false;
    reader_ = std::move(reader);
    return true;
  }

  // For another round of authentication; false aborts.
  bool rewind() noexcept {
    rewound = lent_;
    try {
      return open().has_value();
    } catch (...) {
      return abort_.set(Abort::NoMemory);
    }
  }

  std::uint64_t given = 0;  // bytes of the body that libcurl has
  bool paused = false;      // libcurl is paused until there is more of the body
  bool rewound = false;  // it began again while it was lent: what is awaited is of no use any more

 private:
  static constexpr char kReading[] = "reading the body";
  // libcurl 8 does not ask for more than was announced, so we look whether there is more. A reader
  // that would have to wait to know is not waited for.
  Result<void> look_for_end() {
    if (reader_.bytes_left() != 0 || ended_) return {};
    std::array<char, 1> more{};
    const auto count = reader_.read(more);
    if (!count) return count.error();
    ended_ = *count == 0;
    return {};
  }
  bool ends() {
    auto looked = look_for_end();
    return looked || abort_.set_error(CURLE_READ_ERROR, std::move(looked).error());
  }

  const Body& body_;
  AbortReason& abort_;
  CheckedReader reader_;
  bool ended_ = false;  // the reader has said so
  bool lent_ = false;
};

}  // namespace httpretry
