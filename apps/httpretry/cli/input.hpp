// Reading files and standard input.
#pragma once

#include <httpretry/http/body.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace httpretry::cli {

// what() is the cause only, unless noted. Exit status 26.
struct ReadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A signal, or the end of a time, ended the wait for a pipe.
struct WaitEnded : ReadError {
  using ReadError::ReadError;
};

// The most that is read of a file: of data for a request as much as curl reads; of policies,
// scenarios, options and headers less.
inline constexpr std::size_t kMaxDataFile = std::size_t{1} << 30U;
inline constexpr std::size_t kMaxTextFile = std::size_t{64} << 20U;

// Reads a whole file; one with more than `most` bytes is a ReadError. "-" is standard input, which
// can be read several times. When `cancel` becomes readable (-1: never), waiting for a pipe ends
// with WaitEnded.
std::string read_whole(const std::string& path, std::size_t most, int cancel = -1);

// How much of a pipe is kept in memory so that a retry can send it again.
inline constexpr std::size_t kMaxPipeBuffer = std::size_t{64} << 20U;

// The body of an upload, without its first `offset` bytes. A file is read for each attempt. "-" and
// other pipes are read here, up to kMaxPipeBuffer; longer ones are read while they are sent, and
// can be sent only once. Throws ReadError, which names the file.
Body upload_body(const std::string& path, int cancel, std::uint64_t offset = 0);

// The size of a body; 0 if it is unknown.
std::uint64_t size_of(const Body& body);

}  // namespace httpretry::cli
