// Where bytes go: standard output, and files that are whole or not there.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace httpretry::cli {

// Exit status 23.
struct WriteError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Gives up with WriteError when `give_up` becomes readable (-1: never), so that a signal ends a
// wait for a slow reader. `name` is for the message.
void write_all(int descriptor, std::string_view bytes, int give_up, const std::string& name);

// Whether a named pipe stands there.
bool is_pipe(const std::string& path);

// "-" is standard output. A regular file is written beside its target and renamed when it is whole,
// so that a failure leaves the old one as it was; a device or a pipe is written to directly.
void write_to(const std::string& path, std::string_view bytes, int give_up);

}  // namespace httpretry::cli
