// Writes to standard output, streams and files.
#pragma once

#include "cli/wait_limit.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace httpretry::cli {

// Standard output or a file cannot be written; the exit status is 23.
struct WriteError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws WriteError for the file or stream `name`. `cause` is a value of errno.
[[noreturn]] void throw_write_error(const std::string& name, int cause);

// Writes all bytes, or throws WriteError with `name` in its message. The wait for a slow reader
// ends with WriteError when `cancel` becomes readable (-1: never).
void write_all(int descriptor, std::string_view bytes, int cancel, const std::string& name);

void write_stdout(std::string_view bytes, int cancel = -1);

// Writes directly to standard output ("-"), a stream or a device.
class Stream {
 public:
  // If `path` is a pipe, waits until a reader opens it. `opening` ends that wait or, if it is null,
  // `cancel` does.
  Stream(const std::string& path, int cancel, const WaitLimit* opening = nullptr);
  // Does not take ownership of `descriptor`.
  Stream(int descriptor, int cancel, std::string name);
  // Writes all bytes, as write_all does.
  void write(std::string_view bytes) const;

 private:
  enum class Waits : std::uint8_t {
    Never,     // a file, or a device such as /dev/null
    ByPoll,    // write() does not block
    InPieces,  // write() blocks if the pipe has no room
  };
  static Waits waits_of(int descriptor);
  void wait_for_reader(std::size_t left) const;

  std::string name_;
  int cancel_;
  Descriptor opened_;
  int descriptor_;
  Waits waits_;
};

// Returns whether `path` is "-", a pipe, or an open descriptor such as /dev/fd/3. None of these can
// be replaced by renaming a file.
bool is_stream(const std::string& path);

// Who may read a new file. An existing file keeps its mode.
enum class Readers : std::uint8_t { ByUmask, Owner };

// Writes a whole file; "-" is standard output. A regular file is written under another name and
// renamed when it is complete, so a failure leaves the old file unchanged. If `path` is a pipe, the
// signals of `limit` end every wait, and its time ends only the wait until a reader opens the pipe.
void write_to(const std::string& path, std::string_view bytes, const WaitLimit* limit = nullptr,
              Readers readers = Readers::ByUmask);

// Implements --stderr: redirects standard error to `file`, which is truncated, or to standard
// output if `file` is "-". Throws WriteError.
void redirect_messages(const std::string& file);

}  // namespace httpretry::cli
