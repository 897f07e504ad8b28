// The frames of HTTP/2 (RFC 9113 §4 and §6).
#pragma once

#include <lib/extras/testing/channel.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::faults {

enum class FrameType : std::uint8_t {
  Data = 0,
  Headers = 1,
  Reset = 3,
  Settings = 4,
  Ping = 6,
  Goaway = 7,
  WindowUpdate = 8,
  Continuation = 9,
};

constexpr unsigned kEndStream = 0x1;
constexpr unsigned kAck = 0x1;  // of SETTINGS and PING
constexpr unsigned kEndHeaders = 0x4;
constexpr unsigned kPadded = 0x8;
constexpr unsigned kPriority = 0x20;

constexpr std::size_t kMaxPayload = 16'384;  // neither side allows more without SETTINGS

struct Frame {
  FrameType type{};
  unsigned flags = 0;
  std::uint32_t stream = 0;  // 0: the connection
  std::string payload;
};

// A number of four bytes.
[[nodiscard]] std::string to_bytes(std::uint32_t number);
// The first four bytes, without the first bit, which is reserved.
[[nodiscard]] std::uint32_t number_at(std::string_view bytes);

[[nodiscard]] std::string frame(FrameType type, unsigned flags, std::uint32_t stream,
                                std::string_view payload = {});
// HEADERS, and CONTINUATION if the block is large. `flags`: 0 or kEndStream.
[[nodiscard]] std::string header_frames(std::uint32_t stream, std::string_view block,
                                        unsigned flags);
// Removes the padding and the priority. False if they are longer than the payload.
[[nodiscard]] bool remove_padding(Frame& frame);

class FrameReader {
 public:
  // `rest`: bytes that were already read.
  FrameReader(Channel& channel, std::string rest) : channel_(channel), buffer_(std::move(rest)) {}

  // Empty if the connection ended.
  [[nodiscard]] std::string read(std::size_t size);
  // Empty if the connection ended, the frame is too large, or did not begin in time.
  [[nodiscard]] std::optional<Frame> read_frame(Time deadline);

 private:
  Channel& channel_;
  std::string buffer_;
};

}  // namespace httpretry::faults
