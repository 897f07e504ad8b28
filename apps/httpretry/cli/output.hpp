// Writing to standard output and to files.
#pragma once

#include "cli/wait_limit.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace httpretry::cli {

// Exit status 23.
struct WriteError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Writes all bytes. When `cancel` becomes readable (-1: never), waiting for a slow reader ends with
// WriteError. `name` is for its message.
void write_all(int descriptor, std::string_view bytes, int cancel, const std::string& name);

void write_stdout(std::string_view bytes, int cancel = -1);

// Writes directly to standard output ("-"), a stream or a device.
class Stream {
 public:
  // `opening` also ends the wait for somebody who opens a pipe.
  Stream(const std::string& path, int cancel, const WaitLimit* opening = nullptr);
  // Does not close the descriptor.
  Stream(int descriptor, int cancel, std::string name);
  // As write_all.
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

// Whether `path` is "-", a pipe, or an open descriptor such as /dev/fd/3, which cannot be replaced
// by a renamed file.
bool is_stream(const std::string& path);

// Who may read a file that is created; an existing one keeps its mode.
enum class Readers : std::uint8_t { ByUmask, Owner };

// Writes a whole file; "-" is standard output. A regular file is written under another name and
// renamed when complete, so that a failure leaves the old one unchanged. Writing to a pipe may have
// to wait: the signals of `limit` end every wait, its time only the wait until a reader opens the
// pipe.
void write_to(const std::string& path, std::string_view bytes, const WaitLimit* limit = nullptr,
              Readers readers = Readers::ByUmask);

// --stderr: standard error goes to a file that is emptied first, or with "-" to standard output.
// Throws WriteError.
void redirect_messages(const std::string& file);

}  // namespace httpretry::cli
