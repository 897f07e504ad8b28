// Reads and writes the frames of HTTP/2 (RFC 9113 §4 and §6).
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

constexpr unsigned kNoFlags = 0;
constexpr unsigned kEndStream = 0x1;
constexpr unsigned kAck = 0x1;  // of SETTINGS and PING
constexpr unsigned kEndHeaders = 0x4;
constexpr unsigned kPadded = 0x8;
constexpr unsigned kPriority = 0x20;

constexpr std::size_t kMaxPayload = 16'384;  // the limit on both sides unless SETTINGS raise it

constexpr std::uint32_t kWholeConnection = 0;  // the stream of frames for the connection

struct Frame {
  FrameType type{};
  unsigned flags = kNoFlags;
  std::uint32_t stream = kWholeConnection;
  std::string payload;
};

// Returns the four bytes of a number.
[[nodiscard]] std::string to_bytes(std::uint32_t number);
// Reads a number from the first four bytes. Ignores the first bit, which is reserved.
[[nodiscard]] std::uint32_t number_at(std::string_view bytes);

[[nodiscard]] std::string frame(FrameType type, unsigned flags, std::uint32_t stream,
                                std::string_view payload = {});
// Returns a HEADERS frame, and CONTINUATION frames if the block is large. `flags` is kNoFlags or
// kEndStream.
[[nodiscard]] std::string header_frames(std::uint32_t stream, std::string_view block,
                                        unsigned flags);
// Removes the padding and the priority. Returns false if they are longer than the payload.
[[nodiscard]] bool remove_padding(Frame& frame);

// Reads frames from a channel.
class FrameReader {
 public:
  // `rest` holds bytes that were already read.
  FrameReader(Channel& channel, std::string rest) : channel_(channel), buffer_(std::move(rest)) {}

  // Returns exactly `size` bytes, or an empty text if the connection ends first.
  [[nodiscard]] std::string read(std::size_t size);
  // Returns nullopt if the connection ends, the frame is too large, or it does not begin before the
  // deadline.
  [[nodiscard]] std::optional<Frame> read_frame(Time deadline);

 private:
  Channel& channel_;
  std::string buffer_;
};

}  // namespace httpretry::faults
