// Reading files and standard input.
#pragma once

#include <httpretry/http/body.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace httpretry::cli {

// A file, a pipe or standard input cannot be read; the exit status is 26. what() is the cause
// without the file name, unless a function says otherwise.
struct ReadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A signal or a time limit ended the wait for a pipe.
struct WaitEnded : ReadError {
  using ReadError::ReadError;
};

// The largest file that is read. The limit for request data is curl's; the one for policies,
// scenarios, options and headers is lower.
inline constexpr std::size_t kMaxDataFile = std::size_t{1} << 30U;
inline constexpr std::size_t kMaxTextFile = std::size_t{64} << 20U;

// Reads a whole file. Throws ReadError if it has more than `most` bytes. "-" is standard input,
// which can be read several times. The wait for a pipe ends with WaitEnded when `cancel` becomes
// readable (-1: never).
std::string read_whole(const std::string& path, std::size_t most, int cancel = -1);

// The largest pipe that is kept in memory so that a retry can send it again.
inline constexpr std::size_t kMaxPipeBuffer = std::size_t{64} << 20U;

// Returns the body of an upload without its first `offset` bytes. A file is read for each attempt.
// "-" and other pipes are read here, up to kMaxPipeBuffer. The rest of a longer pipe is read while
// it is sent, so that body can be sent only once. Throws ReadError, which names the file.
Body upload_body(const std::string& path, int cancel, std::uint64_t offset = 0);

// Throws ReadError if -C skips all of a file. The message begins with `prefix`.
void check_offset(std::uint64_t offset, std::uint64_t size, const std::string& prefix = {});

// Returns the size of a body, or 0 if it is unknown.
std::uint64_t size_of(const Body& body);

}  // namespace httpretry::cli
