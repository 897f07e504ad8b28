// Bytes that come from files and from standard input.
#pragma once

#include <httpretry/http/body.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace httpretry::cli {

// what() is the cause alone: exit status 26.
struct ReadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All of a file; "-" is standard input, which gives the same bytes however often it is asked. A
// wait for a pipe ends when `give_up` becomes readable (-1: never).
std::string read_whole(const std::string& path, int give_up = -1);

// Of what can be read only once, a pipe or a terminal, so much is kept to send it again.
inline constexpr std::size_t kKeptOfPipe = std::size_t{64} << 20U;

// The body of an upload. A file is read for each attempt; "-" and other pipes are read at once, up
// to kKeptOfPipe: what is longer goes out as it comes, and can be sent only once. Its first
// `offset` bytes are left out; one without any more is refused. Throws ReadError, which tells the
// file.
Body upload_body(const std::string& path, int give_up, std::uint64_t offset = 0);

// What a body has announced; 0 where that is not known.
std::uint64_t size_of(const Body& body);

}  // namespace httpretry::cli
