#include "send/connection.hpp"

#include "cli/args.hpp"
#include "cli/terminal.hpp"

#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace httpretry::cli {
namespace {

// These variables are read by the curl program, not by libcurl.
std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
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
                     ": no password given; expected NAME:PASSWORD, or a terminal to ask on");
  }
  text += ':' + password;
}

std::string resolve_entry(const std::string& text) {
  return text.starts_with('+') ? text.substr(1) : text;
}

void set_certificate(ClientCertificate& certificate, const std::string& text) {
  certificate.file.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') {
      if (i == 0) throw UsageError("option --cert: no file is named before the \":\"");
      certificate.key_password = text.substr(i + 1);
      return;
    }
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ':' || text[i + 1] == '\\')) ++i;
    certificate.file += text[i];
  }
}

std::string with_flag_name(std::string message) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kFlags{{
      {"TransportOptions::ca_file", "option --cacert"},
      {"TransportOptions::ca_path", "option --capath"},
      {"TransportOptions::client_certificate.file", "option --cert"},
      {"TransportOptions::client_certificate.key_file", "option --key"},
      {"TransportOptions::connect_to", "option --connect-to"},
      {"TransportOptions::local_interface", "option --interface"},
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

void add_environment(TransportOptions& connection) {
  if (!connection.ca_file.empty() || !connection.ca_path.empty()) return;
  connection.ca_file = from_environment({"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
  connection.ca_path = from_environment({"SSL_CERT_DIR"});
}

}  // namespace httpretry::cli
