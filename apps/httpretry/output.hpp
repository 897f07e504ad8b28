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

// From when `give_up` is readable (-1: never) it waits for no reader, and leaves out what is long,
// with WriteError: so a signal ends it. `name` is for the message.
void write_all(int descriptor, std::string_view bytes, int give_up, const std::string& name);

// Whether it is a pipe, or a descriptor of ours as /dev/fd/3: nothing that can be put in a place.
bool is_stream(const std::string& path);

// "-" is standard output. A regular file is written beside its target and renamed when it is whole,
// so that a failure leaves the old one as it was; a device or a stream is written to directly.
void write_to(const std::string& path, std::string_view bytes, int give_up);

}  // namespace httpretry::cli
