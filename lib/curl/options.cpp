// What can be said of TransportOptions before anything is sent.
#include "easy.hpp"
#include "url_parts.hpp"

#include "lib/http/text.hpp"

#include <sys/un.h>

#include <algorithm>
#include <stdexcept>

namespace httpretry {
namespace {

[[noreturn]] void refuse(std::string_view option, const std::string& why) {
  throw std::invalid_argument("TransportOptions::" + std::string(option) + ": " + why);
}

void check_text(std::string_view option, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) refuse(option, "a NUL byte is not allowed");
}

// The text is not repeated in messages: a password may stand in it.
void check_proxy(const ProxyOptions& proxy) {
  if (proxy.credentials) {
    if (const char* why = unusable(*proxy.credentials)) refuse("proxy.credentials", why);
  }
  if (!proxy.url || proxy.url->empty()) return;
  check_text("proxy.url", *proxy.url);
  const detail::CurlUrl url(curl_url());
  const auto text =
      proxy.url->find("://") == std::string::npos ? "http://" + *proxy.url : *proxy.url;
  const auto code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) refuse("proxy.url", std::string("not a URL: ") + curl_url_strerror(code));
  constexpr std::array<std::string_view, 6> kSchemes{"http",    "https",  "socks4",
                                                     "socks4a", "socks5", "socks5h"};
  const auto scheme = detail::url_part(url.get(), CURLUPART_SCHEME);
  if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    refuse("proxy.url",
           "the scheme must be one of http, https, socks4, socks4a, socks5 and "
           "socks5h, not \"" +
               scheme + "\"");
  }
}

bool is_base64_of_32_bytes(std::string_view text) {
  const auto is_base64 = [](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '/'; };
  return text.size() == 44 && text.back() == '=' &&
         std::all_of(text.begin(), text.end() - 1, is_base64);
}

void check_pins(std::string_view pins) {
  constexpr std::string_view kHash = "sha256//";
  check_text("pinned_keys", pins);
  if (!pins.starts_with(kHash)) return;  // a file
  while (!pins.empty()) {
    const auto end = std::min(pins.find(';'), pins.size());
    const auto pin = pins.substr(0, end);
    pins.remove_prefix(std::min(end + 1, pins.size()));
    if (!pin.starts_with(kHash) || !is_base64_of_32_bytes(pin.substr(kHash.size()))) {
      refuse("pinned_keys", "\"" + std::string(pin) +
                                "\" is not sha256// and the 44 characters of a hash in base64");
    }
  }
}

bool is_port(std::string_view text) {
  return text.empty() || to_number<std::uint16_t>(text).value_or(0) > 0;
}

// Takes "NAME:" or "[ADDRESS]:" off the front.
bool take_host(std::string_view& text) {
  const auto from = text.starts_with('[') ? text.find(']') : 0;
  const auto colon = from == std::string_view::npos ? from : text.find(':', from);
  if (colon == std::string_view::npos) return false;
  text.remove_prefix(colon + 1);
  return true;
}

void check_connect_to(const std::string& entry) {
  check_text("connect_to", entry);
  std::string_view rest = entry;
  bool good = take_host(rest);
  const auto colon = rest.find(':');
  good = good && colon != std::string_view::npos && is_port(rest.substr(0, colon));
  if (good) {
    rest.remove_prefix(colon + 1);
    good = take_host(rest) && is_port(rest);
  }
  if (!good) refuse("connect_to", "\"" + entry + "\" is not HOST:PORT:TO-HOST:TO-PORT");
}

}  // namespace

void check(const TransportOptions& options) {
  check_text("ca_file", options.ca_file);
  check_text("ca_path", options.ca_path);
  check_text("client_certificate.file", options.client_certificate.file);
  check_text("client_certificate.key_file", options.client_certificate.key_file);
  if (options.client_certificate.file.empty() && !options.client_certificate.key_file.empty()) {
    refuse("client_certificate", "a key_file needs the file of its certificate");
  }
  check_text("client_certificate.key_password", options.client_certificate.key_password);
  check_text("local_interface", options.local_interface);
  check_text("unix_socket", options.unix_socket);
  constexpr auto kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (options.unix_socket.size() > kLongest) {
    refuse("unix_socket", "a path of " + std::to_string(options.unix_socket.size()) +
                              " bytes; the system takes " + std::to_string(kLongest));
  }
  if (options.netrc) check_text("netrc", *options.netrc);
  check_pins(options.pinned_keys);
  check_proxy(options.proxy);
  for (const auto& entry : options.connect_to) check_connect_to(entry);
}

}  // namespace httpretry
