#include "send/protocols.hpp"

#include "cli/args.hpp"
#include "cli/exit_status.hpp"

#include <algorithm>
#include <string_view>

namespace httpretry::cli {
namespace {

// curl's protocols other than http and https.
constexpr std::string_view kOthers =
    " dict file ftp ftps gopher gophers imap imaps ldap ldaps mqtt pop3 pop3s rtmp rtmpe rtmps"
    " rtmpt rtmpte rtmpts rtsp scp sftp smb smbs smtp smtps telnet tftp ";

void change(Protocols& allowed, std::string_view name, bool value, const std::string& option) {
  const bool all = name == "all";
  if (all || name == "http") allowed.http = value;
  if (all || name == "https") allowed.https = value;
  const bool known = all || name == "http" || name == "https" ||
                     kOthers.find(" " + std::string(name) + " ") != std::string_view::npos;
  if (known) return;
  throw UsageError("option " + option + ": \"" + std::string(name) +
                   "\" is not a protocol; expected a list such as =https or -all,https");
}

// Marks a call that has sent its first request. The next ones are redirects.
struct Begun {};

Error not_allowed(const Request& request, const char* option) {
  const auto& url = *request.parsed_url();
  return permanent_error(Errc::InvalidRequest,
                         request.method() + " " + url.without_secrets() + ": " + option +
                             " does not allow " + std::string(url.scheme()),
                         1);  // CURLE_UNSUPPORTED_PROTOCOL
}

bool allows(Protocols allowed, const Request& request) {
  return request.parsed_url()->scheme() == "https" ? allowed.https : allowed.http;
}

}  // namespace

Protocols parse_protocols(const std::string& text, const std::string& option, Protocols now) {
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    auto name = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const auto mark = name.find_first_not_of("+-=");
    const auto marks = name.substr(0, mark);
    name.remove_prefix(marks.size());
    if (marks.find('=') != std::string_view::npos) now = Protocols{false, false};
    change(now, name, marks.empty() || marks.back() != '-', option);
  }
  return now;
}

MiddlewarePtr only_protocols(Protocols of_urls, Protocols of_redirects) {
  return middleware("protocols", [=](Request request, Call& call, Next next) -> Task<Outcome> {
    const bool redirected = call.get<Begun>() != nullptr;
    call.set(Begun());

    if (!allows(of_urls, request)) co_return not_allowed(request, "--proto");
    if (redirected && !allows(of_redirects, request)) {
      co_return not_allowed(request, "--proto-redir");
    }
    Outcome outcome = co_await next(std::move(request), call);
    co_return outcome;
  });
}

}  // namespace httpretry::cli
