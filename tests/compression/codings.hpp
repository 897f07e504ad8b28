// The codings of the tests, and their use without a client.
#pragma once

#include "lib/core/curl/content_codings.hpp"

#include <httpretry/compression/compression.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace httpretry {

inline std::vector<ContentCoding> all_codings() {
  return {*find_coding("gzip", {}), brotli(), zstd()};
}

// The result of a coder that got all of its input.
struct Coded {
  std::string bytes;
  ContentCoder::State state = ContentCoder::State::MoreInput;  // after the last step
};

// Gives the coder pieces of at most `piece` bytes, and room for `room` bytes.
inline Coded run(ContentCoder& coder, std::string_view input, bool last, std::size_t piece = 4096,
                 std::size_t room = 4096) {
  Coded coded;
  std::string out(room, '\0');
  while (!input.empty() || coded.state == ContentCoder::State::MoreOutput ||
         (last && coded.state != ContentCoder::State::End)) {
    auto front = input.substr(0, piece);
    const auto given = front.size();
    const auto step = coder.run(front, out, last && given == input.size());
    input.remove_prefix(given - front.size());
    coded.bytes.append(out, 0, step.written);
    coded.state = step.state;
    if (step.state == ContentCoder::State::Corrupt) break;
  }
  return coded;
}

inline std::string encode(const ContentCoding& coding, std::string_view text) {
  return run(*coding.encoder(), text, /*last=*/true).bytes;
}
inline Coded decode(const ContentCoding& coding, std::string_view bytes, std::size_t piece = 4096,
                    std::size_t room = 4096) {
  return run(*coding.decoder(), bytes, /*last=*/false, piece, room);
}

}  // namespace httpretry
