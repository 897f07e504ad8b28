#include "send/write_out.hpp"

#include "cli/input.hpp"
#include "cli/text.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/chain/transport.hpp>
#include <httpretry/client/report.hpp>
#include <httpretry/curl/transport_options.hpp>
#include <httpretry/http/url.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <type_traits>
#include <vector>

namespace httpretry::cli {
namespace {

const Exchange& exchange_of(const Transferred& t) {
  return t.outcome ? t.outcome->exchange : t.outcome.error().exchange;
}

int status_of(const Transferred& t) {
  return t.outcome ? t.outcome->status : t.outcome.error().status;
}

std::string in_seconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6f", std::chrono::duration<double>(time).count());
  return text.data();
}

// Returns at least three digits, as curl does, because scripts compare with "000".
std::string three_digits(int status) {
  const auto digits = std::to_string(status);
  return std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

std::string status_text(const Transferred& t) { return three_digits(status_of(t)); }

std::string version_of(const Transferred& t) {
  const auto& version = t.outcome ? t.outcome->http_version : t.last_send->http_version;
  return version == "1.0" ? "1" : version;  // as in curl
}

// Returns the URL of the last request, even if it failed.
std::string effective_url(const Transferred& t) {
  if (t.outcome) return t.outcome->url;
  return t.last_send->url.empty() ? t.request.url() : t.last_send->url;
}

std::string speed(const Transferred& t, std::uint64_t bytes) {
  const auto time = std::chrono::duration<double>(history_of(t.outcome).elapsed).count();
  return std::to_string(time > 0 ? static_cast<std::uint64_t>(static_cast<double>(bytes) / time)
                                 : 0);
}

std::string scheme(const Transferred& t) {
  const auto& url = t.request.parsed_url();
  return !url || status_of(t) == 0 ? "" : url->scheme() == "https" ? "HTTPS" : "HTTP";
}

// Returns the target of a redirect that was not followed, without -L or because there were too
// many. As in curl, this is the Location itself if it is not a URL.
std::string redirect_url(const Transferred& t) {
  constexpr int kTooManyRedirects = 47;  // CURLE_TOO_MANY_REDIRECTS
  const auto location = headers_of(t).get("Location");
  const bool has_ended_here = t.outcome || t.outcome.error().curl_code == kTooManyRedirects;
  if (!has_ended_here || !location || status_of(t) / 100 != 3) return {};
  const auto base = Url::parse(effective_url(t));
  const auto target = base ? base->resolve(*location) : base;
  return target ? target->to_string() : std::string(*location);
}

// Returns whether a redirect was followed after the attempt: a 3xx that was not retried, lost no
// race, and is not the last response. (The other attempts without a retry are those that lost a
// race, and pages.)
bool is_followed_redirect(const History& history, const Attempt& attempt) {
  return attempt.status / 100 == 3 && !attempt.retried && attempt.race != Race::Lost &&
         &attempt != history.last();
}

std::size_t redirects(const Transferred& t) {
  const auto& history = history_of(t.outcome);
  return static_cast<std::size_t>(std::ranges::count_if(
      history.attempts, [&](const Attempt& each) { return is_followed_redirect(history, each); }));
}

// Returns the method of the last request, which redirects may have changed to GET.
std::string last_method(const Transferred& t) {
  auto method = t.request.method();
  const auto& history = history_of(t.outcome);
  for (const auto& attempt : history.attempts) {
    if (!is_followed_redirect(history, attempt) || method == "HEAD") continue;
    const bool is_post = method == "POST";
    const bool keeps_post =
        is_post && std::ranges::find(t.keep_post_after, attempt.status) != t.keep_post_after.end();
    const bool is_moved = attempt.status == 301 || attempt.status == 302;
    if (!keeps_post && (attempt.status == 303 || (is_moved && is_post))) method = "GET";
  }
  return method;
}

// Returns the size of the request body, or 0 if it is unknown or nothing was sent. A request
// whose method has become GET has no body.
std::uint64_t uploaded(const Transferred& t) {
  if (!t.request.body().present() || exchange_of(t).sent == Sent::Never) return 0;
  if (last_method(t) != t.request.method()) return 0;
  return size_of(t.request.body());
}

std::string retries(const Transferred& t) {
  const auto& attempts = history_of(t.outcome).attempts;
  return std::to_string(std::ranges::count(attempts, true, &Attempt::retried));
}

std::string wire_sends(const Transferred& t) {
  int sum = 0;
  for (const auto& attempt : history_of(t.outcome).attempts) sum += attempt.wire_sends;
  return std::to_string(sum);
}

// Returns the response headers as a JSON object, as curl does: each name in lowercase, with the
// list of all its values, in the order in which the names first occur.
std::string header_json(const Transferred& t) {
  std::vector<std::string> names_so_far;
  std::string members;
  for (const auto field : headers_of(t)) {
    const auto name = to_lower(field.name);
    if (std::ranges::find(names_so_far, name) != names_so_far.end()) continue;
    names_so_far.push_back(name);
    std::string values;
    for (const auto other : headers_of(t)) {
      if (!equal_ignoring_case(other.name, name)) continue;
      values += (values.empty() ? "" : ",") + quote_json(other.value);
    }
    members += (members.empty() ? "" : ",\n") + quote_json(name) + ":[" + values + "]";
  }
  return "{" + members + "\n}";
}

std::string certificates(const Transferred& t) {
  std::string text;
  for (const auto& certificate : t.connections.last.certificates) text += certificate;
  return text;
}

template <Duration Timings::*Member>
std::string timing(const Transferred& t) {
  return in_seconds(exchange_of(t).timings.*Member);
}

// Returns a text or a number about the last connection.
template <auto Member>
std::string last(const Transferred& t) {
  const auto& value = t.connections.last.*Member;
  if constexpr (std::is_convertible_v<decltype(value), std::string>) {
    return value;
  } else {
    return std::to_string(value);
  }
}

std::string all_as_json(const Transferred& t);

constexpr bool kNeedsConnection = true;

// curl's variables, and our own. The last one has no meaning here, but scripts that print all
// variables keep working.
constexpr auto kVariables = std::to_array<WriteOutVariable>({
    {"attempts", Kind::Number,
     [](const Transferred& t) { return std::to_string(history_of(t.outcome).attempts.size()); }},
    {"content_type", Kind::Text,
     [](const Transferred& t) { return header(headers_of(t), "Content-Type"); }},
    {"errormsg", Kind::Text,
     [](const Transferred& t) { return t.outcome ? std::string() : t.outcome.error().message; }},
    {"exitcode", Kind::Number, [](const Transferred& t) { return std::to_string(t.exit_status); }},
    {"filename_effective", Kind::Text, [](const Transferred& t) { return t.file; }},
    {"header_json", Kind::Json, header_json},
    {"http_code", Kind::Number, status_text},
    {"http_version", Kind::Text, version_of},
    {"json", Kind::Json, all_as_json},
    {"method", Kind::Text, last_method},
    {"num_headers", Kind::Number,
     [](const Transferred& t) {
       return std::to_string(std::distance(headers_of(t).begin(), headers_of(t).end()));
     }},
    {"num_redirects", Kind::Number,
     [](const Transferred& t) { return std::to_string(redirects(t)); }},
    {"num_retries", Kind::Number, retries},
    {"redirect_url", Kind::Text, redirect_url},
    {"referer", Kind::Text,
     [](const Transferred& t) { return header(t.request.headers(), "Referer"); }},
    {"response_code", Kind::Number, status_text},
    {"scheme", Kind::Text, scheme},
    {"size_download", Kind::Number,
     [](const Transferred& t) { return std::to_string(t.downloaded); }},
    {"size_header", Kind::Number,
     [](const Transferred& t) { return std::to_string(head_of(t.outcome).size()); }},
    {"size_upload", Kind::Number, [](const Transferred& t) { return std::to_string(uploaded(t)); }},
    {"speed_download", Kind::Number, [](const Transferred& t) { return speed(t, t.downloaded); }},
    {"speed_upload", Kind::Number, [](const Transferred& t) { return speed(t, uploaded(t)); }},
    {"stop_reason", Kind::Text,
     [](const Transferred& t) {
       return std::string(to_string(history_of(t.outcome).stop_reason));
     }},
    {"time_appconnect", Kind::Number, timing<&Timings::secured>},
    {"time_connect", Kind::Number, timing<&Timings::connected>},
    {"time_namelookup", Kind::Number, timing<&Timings::resolved>},
    {"time_pretransfer", Kind::Number, timing<&Timings::sent>},
    {"time_redirect", Kind::Number,
     [](const Transferred& t) {
       const auto* last = history_of(t.outcome).last();
       return in_seconds(redirects(t) == 0 || last == nullptr ? Duration{} : last->start);
     }},
    {"time_starttransfer", Kind::Number, timing<&Timings::first_byte>},
    {"time_total", Kind::Number,
     [](const Transferred& t) { return in_seconds(history_of(t.outcome).elapsed); }},
    {"url", Kind::Text, [](const Transferred& t) { return t.request.url(); }},
    {"url_effective", Kind::Text, effective_url},
    {"urlnum", Kind::Number, [](const Transferred& t) { return std::to_string(t.index); }},
    {"wire_sends", Kind::Number, wire_sends},
    {"certs", Kind::Certificates, certificates, kNeedsConnection},
    {"http_connect", Kind::Number,
     [](const Transferred& t) { return three_digits(t.connections.last.proxy_status); },
     kNeedsConnection},
    {"local_ip", Kind::Text, last<&ConnectionInfo::local_ip>, kNeedsConnection},
    {"local_port", Kind::Number, last<&ConnectionInfo::local_port>, kNeedsConnection},
    {"num_certs", Kind::Number,
     [](const Transferred& t) { return std::to_string(t.connections.last.certificates.size()); },
     kNeedsConnection},
    {"num_connects", Kind::Number,
     [](const Transferred& t) { return std::to_string(t.connections.made); }, kNeedsConnection},
    {"proxy_ssl_verify_result", Kind::Number, last<&ConnectionInfo::proxy_verify_result>,
     kNeedsConnection},
    {"remote_ip", Kind::Text, last<&ConnectionInfo::remote_ip>, kNeedsConnection},
    {"remote_port", Kind::Number, last<&ConnectionInfo::remote_port>, kNeedsConnection},
    {"size_request", Kind::Number,
     [](const Transferred& t) { return std::to_string(t.connections.request_bytes); },
     kNeedsConnection},
    {"ssl_verify_result", Kind::Number, last<&ConnectionInfo::verify_result>, kNeedsConnection},
    {"ftp_entry_path", Kind::Text, [](const Transferred& /*t*/) { return std::string(); }},
});

// Removes leading zeros, which JSON does not allow.
std::string json_number(std::string text) {
  const auto digits = text.find_first_not_of('0');
  if (digits == std::string::npos) return "0";
  return text.substr(text[digits] == '.' ? digits - 1 : digits);
}

// Returns all variables of -w as a JSON object, except those that are JSON themselves, such as the
// one with this object. As in curl, an empty text is null.
std::string all_as_json(const Transferred& t) {
  std::string members;
  for (const auto& variable : kVariables) {
    if (variable.kind == Kind::Json) continue;
    const auto value = variable.text(t);
    members += (members.empty() ? "" : ",") + quote_json(variable.name) + ":";
    if (variable.kind == Kind::Number) {
      members += json_number(value);
    } else {
      const bool is_null = value.empty() && variable.kind == Kind::Text;
      members += is_null ? "null" : quote_json(value);
    }
  }
  return "{" + members + ",\"curl_version\":" + quote_json(transport_version()) + "}";
}

}  // namespace

const Headers& headers_of(const Transferred& t) {
  return t.outcome ? t.outcome->headers : t.outcome.error().headers;
}

std::string header(const Headers& headers, std::string_view name) {
  return std::string(headers.get(name).value_or(""));
}

const WriteOutVariable* write_out_variable(std::string_view name) {
  const auto* found = std::ranges::find(kVariables, name, &WriteOutVariable::name);
  return found == kVariables.end() ? nullptr : found;
}

bool needs_connections(std::string_view format) {
  return format.find("%{json}") != std::string_view::npos ||
         std::ranges::any_of(kVariables, [&](const WriteOutVariable& known) {
           return known.of_connection &&
                  format.find("%{" + std::string(known.name) + "}") != std::string_view::npos;
         });
}

}  // namespace httpretry::cli
