#include "cli/terminal.hpp"

#include "cli/input.hpp"
#include "cli/output.hpp"

#include "lib/http/descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace httpretry::cli {
namespace {

// What is typed is not shown while an object exists.
class Hidden {
 public:
  explicit Hidden(int terminal) : terminal_(terminal) {
    changed_ = ::tcgetattr(terminal, &before_) == 0;
    auto now = before_;
    now.c_lflag &= ~static_cast<::tcflag_t>(ECHO);
    changed_ = changed_ && ::tcsetattr(terminal, TCSAFLUSH, &now) == 0;
  }
  ~Hidden() {
    if (changed_) ::tcsetattr(terminal_, TCSAFLUSH, &before_);
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;

 private:
  int terminal_;
  bool changed_ = false;
  ::termios before_{};
};

}  // namespace

bool ask_password(const std::string& question, std::string& answer, int cancel) {
  const Descriptor opened(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!opened.open()) return false;
  const int terminal = opened.get();
  const Hidden hidden(terminal);
  write_all(terminal, question, cancel, "the terminal");
  for (char typed = '\0';;) {
    std::array<::pollfd, 2> wait{{{terminal, POLLIN, 0}, {cancel, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), -1) > 0 && wait[1].revents != 0) {
      throw WaitEnded("no password was given: " + std::generic_category().message(EINTR));
    }
    const auto count = ::read(terminal, &typed, 1);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0 || typed == '\n') break;
    answer += typed;
  }
  write_all(terminal, "\n", cancel, "the terminal");
  return true;
}

void redirect_messages(const std::string& file) {
  std::fflush(stderr);
  if (file == "-") {
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    return;
  }
  const Descriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!opened.open()) {
    throw WriteError("cannot write to " + file + ": " + std::generic_category().message(errno));
  }
  ::dup2(opened.get(), STDERR_FILENO);
}

}  // namespace httpretry::cli
