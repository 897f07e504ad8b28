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

// Standard output ("-"), a stream, a device: what is written to directly, piece by piece.
class Direct {
 public:
  Direct(const std::string& path, int give_up);
  ~Direct();
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;
  void write(std::string_view bytes) const { write_all(descriptor_, bytes, give_up_, name_); }

 private:
  std::string name_;
  int give_up_;
  int descriptor_;
  bool own_;
};

// Whether it is "-", a pipe, or a descriptor of ours as /dev/fd/3: nothing that can be put in a
// place.
bool is_stream(const std::string& path);

// "-" is standard output. A regular file is written beside its target and renamed when it is whole,
// so that a failure leaves the old one as it was; a device or a stream is written to directly.
void write_to(const std::string& path, std::string_view bytes, int give_up);

}  // namespace httpretry::cli
