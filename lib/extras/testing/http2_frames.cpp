#include <lib/extras/testing/http2_frames.hpp>

#include <array>

namespace httpretry::faults {

std::string to_bytes(std::uint32_t number) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4)) {
    number = number << 8U | static_cast<unsigned char>(byte);
  }
  return number & 0x7fff'ffffU;
}

std::string frame(FrameType type, unsigned flags, std::uint32_t stream, std::string_view payload) {
  auto bytes = to_bytes(static_cast<std::uint32_t>(payload.size())).substr(1);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  return bytes.append(to_bytes(stream)).append(payload);
}

// Splits a header block into frames. Only the first one has `flags`, and the last one ends the
// block.
std::string header_frames(std::uint32_t stream, std::string_view block, unsigned flags) {
  std::string frames;
  auto type = FrameType::Headers;
  do {
    const auto piece = block.substr(0, kMaxPayload);
    block.remove_prefix(piece.size());
    frames += frame(type, flags | (block.empty() ? kEndHeaders : kNoFlags), stream, piece);
    type = FrameType::Continuation;
    flags = kNoFlags;
  } while (!block.empty());
  return frames;
}

// Removes what surrounds the content of the payload: the length of the padding (one byte), the
// priority (five bytes) and the padding. Returns false if they are longer than the payload.
bool remove_padding(Frame& frame) {
  auto& payload = frame.payload;
  const bool padded = (frame.flags & kPadded) != 0;
  const std::size_t before = (padded ? 1 : 0) + ((frame.flags & kPriority) != 0 ? 5 : 0);
  if (payload.size() < before) return false;
  const std::size_t after = padded ? static_cast<unsigned char>(payload.front()) : 0;
  if (payload.size() < before + after) return false;
  payload = payload.substr(before, payload.size() - before - after);
  return true;
}

std::string FrameReader::read(std::size_t size) {
  std::array<char, 16 * 1024> bytes{};
  while (buffer_.size() < size) {
    const auto count = channel_.read(bytes);
    if (count == 0) return {};
    buffer_.append(bytes.data(), count);
  }
  auto text = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return text;
}

// Reads a frame: three bytes of size, the type, the flags, four bytes of stream, and the payload.
// Returns nullopt if the connection ends, the frame is too large, or it does not begin in time.
std::optional<Frame> FrameReader::read_frame(Time deadline) {
  constexpr std::size_t kHead = 9;
  if (buffer_.empty() && !channel_.wait_for_bytes(deadline)) return std::nullopt;
  const auto head = read(kHead);
  if (head.empty()) return std::nullopt;
  const std::size_t size = number_at('\0' + head);
  if (size > kMaxPayload) return std::nullopt;
  Frame frame{.type = static_cast<FrameType>(head[3]),
              .flags = static_cast<unsigned char>(head[4]),
              .stream = number_at(std::string_view(head).substr(5)),
              .payload = read(size)};
  if (frame.payload.size() != size) return std::nullopt;
  return frame;
}

}  // namespace httpretry::faults
