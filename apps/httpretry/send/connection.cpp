#include "send/connection.hpp"

#include "cli/args.hpp"
#include "cli/input.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

#include "lib/core/base/descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <utility>

namespace httpretry::cli {
namespace {

// Returns the first of these variables that is set. The curl program reads them, but libcurl does
// not.
std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = environment_variable(name); !value.empty()) return value;
  }
  return {};
}

// EchoOff turns off the echo of a terminal while it exists.
class EchoOff {
 public:
  explicit EchoOff(int terminal) : terminal_(terminal) {
    changed_ = ::tcgetattr(terminal, &before_) == 0;
    auto now = before_;
    now.c_lflag &= ~static_cast<::tcflag_t>(ECHO);
    changed_ = changed_ && ::tcsetattr(terminal, TCSAFLUSH, &now) == 0;
  }
  ~EchoOff() {
    if (changed_) ::tcsetattr(terminal_, TCSAFLUSH, &before_);
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

 private:
  int terminal_;
  bool changed_ = false;
  ::termios before_{};
};

// Prompts for a password on the terminal of this process, without echo, and stores it in `answer`.
// Returns false if there is no terminal. Throws WaitEnded when the descriptor `cancel` becomes
// readable, which a signal or a time limit causes (-1: never).
bool ask_password(const std::string& question, std::string& answer, int cancel) {
  const Descriptor opened(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!opened.is_open()) return false;
  const int terminal = opened.get();
  const EchoOff hidden(terminal);
  write_all(terminal, question, cancel, "the terminal");
  for (char letter = '\0';;) {
    // Waits until the terminal or `cancel` is readable. There is no time limit.
    std::array<::pollfd, 2> waits{{{terminal, POLLIN, 0}, {cancel, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), /*timeout=*/-1) < 0) continue;  // interrupted
    if (waits[1].revents != 0) {
      throw WaitEnded("no password was given: " + std::generic_category().message(EINTR));
    }
    const auto count = ::read(terminal, &letter, /*count=*/1);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;  // waits again
    if (count <= 0 || letter == '\n') break;  // end of input, or an error: keeps the text so far
    answer += letter;
  }
  // The user's newline was not echoed.
  write_all(terminal, "\n", cancel, "the terminal");
  return true;
}

}  // namespace

Credentials credentials_of(const std::string& text, Credentials::Scheme scheme) {
  const auto colon = text.find(':');
  return {scheme, text.substr(0, colon), text.substr(colon + 1)};
}

void complete_credentials(std::string& text, const std::string& flag, int cancel) {
  if (text.find(':') != std::string::npos) return;
  const std::string whose = flag == "-U" ? "proxy" : "host";
  std::string password;
  if (!ask_password("Enter " + whose + " password for user '" + printable(text) + "':", password,
                    cancel)) {
    throw UsageError("option " + flag +
                     ": no password given; expected NAME:PASSWORD, or a terminal for the prompt");
  }
  text += ':' + password;
}

void set_certificate(ClientCertificate& certificate, const std::string& flag,
                     const std::string& text) {
  certificate.file.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') {
      if (i == 0) throw UsageError("option " + flag + ": there is no file name before the \":\"");
      certificate.key_password = text.substr(i + 1);
      return;
    }
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ':' || text[i + 1] == '\\')) ++i;
    certificate.file += text[i];
  }
}

// Replaces the library's name of an option at the start of an error message by the name of the flag
// that sets it: "TransportOptions::ca_file …" becomes "option --cacert …". Returns other messages
// unchanged.
std::string with_flag_name(std::string message) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kFlags{{
      {"TransportOptions::ca_file", "option --cacert"},
      {"TransportOptions::ca_path", "option --capath"},
      {"TransportOptions::client_certificate.file", "option --cert"},
      {"TransportOptions::client_certificate.key_file", "option --key"},
      {"TransportOptions::client_certificate", "option --cert"},  // after those that begin with it
      {"TransportOptions::connect_to", "option --connect-to"},
      {"TransportOptions::local_interface", "option --interface"},
      {"TransportOptions::max_tls", "option --tls-max"},
      {"TransportOptions::netrc", "option --netrc-file"},
      {"TransportOptions::pinned_keys", "option --pinnedpubkey"},
      {"TransportOptions::proxy.url", "option --proxy"},
      {"TransportOptions::resolve", "option --resolve"},
      {"TransportOptions::unix_socket", "option --unix-socket"},
  }};
  for (const auto& [field, flag] : kFlags) {
    if (message.starts_with(field)) return message.replace(0, field.size(), flag);
  }
  return message;
}

void add_environment_certificates(TransportOptions& connection) {
  if (!connection.ca_file.empty() || !connection.ca_path.empty()) return;
  connection.ca_file = from_environment({"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
  connection.ca_path = from_environment({"SSL_CERT_DIR"});
}

}  // namespace httpretry::cli
