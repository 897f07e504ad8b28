// Bytes that come from files and from standard input.
#pragma once

#include <httpretry/body.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace httpretry::cli {

// what() is the cause alone: exit status 26.
struct ReadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All of a file; "-" is standard input, which gives the same bytes however often it is asked.
std::string read_whole(const std::string& path);

// Of what can be read only once, a pipe or a terminal, so much is kept to send it again.
inline constexpr std::size_t kKeptOfPipe = std::size_t{64} << 20U;

// The body of an upload. A file is read for each attempt; "-" and other pipes are read at once, up
// to kKeptOfPipe: what is longer goes out as it comes, and can be sent only once. A wait for a pipe
// ends when `give_up` becomes readable. Throws ReadError, which tells the file.
Body upload_body(const std::string& path, int give_up);

}  // namespace httpretry::cli
