// ContentCoding: a compression of bodies that a client supports in addition to gzip. The component
// httpretry::compression provides brotli and Zstandard.
#pragma once

#include <httpretry/export.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace httpretry {

// Encodes or decodes one body, piece by piece. One thread uses it at a time.
class HTTPRETRY_API ContentCoder {
 public:
  // The state of the coder after a call of `run`.
  enum class State : std::uint8_t {
    MoreInput,   // all of the input was read
    MoreOutput,  // the output is full, and more may follow even without more input
    // Encoder: everything is written. Decoder: the encoded data is complete. The next call begins
    // another stream, or returns Corrupt if the coding does not allow a second one.
    End,
    Corrupt,
  };
  // The result of `run`: the number of bytes that were written, and how it ended.
  struct Step {
    std::size_t written = 0;  // bytes of output
    State state = State::MoreInput;
  };

  virtual ~ContentCoder();
  // Reads bytes from the front of `in`, which it shortens, and writes up to `out.size()` bytes,
  // which is not 0. For an encoder, `last` says that nothing follows `in`. A decoder ignores it.
  virtual Step run(std::string_view& in, std::span<char> out, bool last) = 0;
};

// A coding, and functions that create its coders. They are called on the threads that drive the
// calls. A call ends with an error if a function returns nullptr, or if a coder makes no progress
// or reports more output than there was room for.
struct HTTPRETRY_API ContentCoding {
  ContentCoding() = default;

  std::string name;  // as in Content-Encoding: "br"
  std::function<std::unique_ptr<ContentCoder>()> decoder;
  std::function<std::unique_ptr<ContentCoder>()> encoder;
};

}  // namespace httpretry
