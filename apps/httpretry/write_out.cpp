#include "write_out.hpp"

#include "words.hpp"

#include <httpretry/report.hpp>
#include <httpretry/url.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <vector>

namespace httpretry::cli {
namespace {

const Exchange& exchange_of(const Transferred& t) {
  return t.outcome ? t.outcome->exchange : t.outcome.error().exchange;
}

const Headers& headers_of(const Transferred& t) {
  return t.outcome ? t.outcome->headers : t.outcome.error().headers;
}

int status_of(const Transferred& t) {
  return t.outcome ? t.outcome->status : t.outcome.error().status;
}

std::string in_seconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6f", std::chrono::duration<double>(time).count());
  return text.data();
}

// Three digits, as curl has it: scripts compare with "000".
std::string status_text(const Transferred& t) {
  const auto digits = std::to_string(status_of(t));
  return std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

std::string header(const Headers& headers, std::string_view name) {
  return std::string(headers.get(name).value_or(""));
}

std::string version_of(const Transferred& t) { return t.outcome ? t.outcome->http_version : "0"; }

std::uint64_t downloaded(const Transferred& t) {
  if (!t.outcome) return 0;
  return std::max<std::uint64_t>(t.outcome->body.size(), t.outcome->delivered);
}

// As it was announced; a body of unknown size counts as none.
std::uint64_t uploaded(const Transferred& t) {
  if (!t.request.body().present() || exchange_of(t).sent == Sent::Never) return 0;
  if (const auto* bytes = t.request.body().bytes()) return bytes->size();
  const auto reader = t.request.body().open();
  return reader ? (*reader)->size().value_or(0) : 0;
}

std::string speed(const Transferred& t, std::uint64_t bytes) {
  const auto time = std::chrono::duration<double>(history_of(t.outcome).elapsed).count();
  return std::to_string(time > 0 ? static_cast<std::uint64_t>(static_cast<double>(bytes) / time)
                                 : 0);
}

std::size_t head_size(const Transferred& t) {
  if (status_of(t) == 0) return 0;
  return head_of(version_of(t), status_of(t), headers_of(t)).size();
}

std::string scheme(const Transferred& t) {
  const auto& url = t.request.parsed_url();
  return !url || status_of(t) == 0 ? "" : url->scheme() == "https" ? "HTTPS" : "HTTP";
}

// Where a redirect that was not followed leads.
std::string redirect_url(const Transferred& t) {
  const auto location = headers_of(t).get("Location");
  if (!t.outcome || !location || status_of(t) / 100 != 3) return {};
  const auto base = Url::parse(t.outcome->url);
  const auto target = base ? base->resolve(*location) : base;
  return target ? target->to_string() : std::string();
}

// An attempt that was not retried and still has another behind it was redirected.
std::size_t redirects(const Transferred& t) {
  const auto& attempts = history_of(t.outcome).attempts;
  if (attempts.empty()) return 0;
  return static_cast<std::size_t>(std::count_if(attempts.begin(), attempts.end() - 1,
                                                [](const Attempt& each) { return !each.retried; }));
}

std::string retries(const Transferred& t) {
  const auto& attempts = history_of(t.outcome).attempts;
  return std::to_string(std::count_if(attempts.begin(), attempts.end(),
                                      [](const Attempt& each) { return each.retried; }));
}

std::string wire_sends(const Transferred& t) {
  int sum = 0;
  for (const auto& attempt : history_of(t.outcome).attempts) sum += attempt.wire_sends;
  return std::to_string(sum);
}

std::string header_json(const Transferred& t) {
  std::vector<std::string> names;
  std::string text;
  for (const auto field : headers_of(t)) {
    std::string name(field.name);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
    std::string values;
    for (const auto other : headers_of(t)) {
      if (!equal_ignoring_case(other.name, name)) continue;
      values += (values.empty() ? "" : ",") + quote_json(other.value);
    }
    text += (text.empty() ? "" : ",\n") + quote_json(name) + ":[" + values + "]";
  }
  return "{" + text + "\n}";
}

std::string all_as_json(const Transferred& t);

enum class Kind : std::uint8_t { Text, Number, Json };

struct Known {
  std::string_view name;
  Kind kind;
  std::string (*text)(const Transferred&);
};

// By name. What stands here as a fixed number curl knows and we do not: scripts that print all of
// them go on working.
constexpr std::array<Known, 37> kVariables{{
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
    {"method", Kind::Text, [](const Transferred& t) { return t.request.method(); }},
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
     [](const Transferred& t) { return std::to_string(downloaded(t)); }},
    {"size_header", Kind::Number,
     [](const Transferred& t) { return std::to_string(head_size(t)); }},
    {"size_upload", Kind::Number, [](const Transferred& t) { return std::to_string(uploaded(t)); }},
    {"speed_download", Kind::Number, [](const Transferred& t) { return speed(t, downloaded(t)); }},
    {"speed_upload", Kind::Number, [](const Transferred& t) { return speed(t, uploaded(t)); }},
    {"ssl_verify_result", Kind::Number,
     [](const Transferred& t) { return std::string(t.exit_status == 60 ? "1" : "0"); }},
    {"stop_reason", Kind::Text,
     [](const Transferred& t) {
       return std::string(to_string(history_of(t.outcome).stop_reason));
     }},
    {"time_appconnect", Kind::Number,
     [](const Transferred& t) { return in_seconds(exchange_of(t).timings.secured); }},
    {"time_connect", Kind::Number,
     [](const Transferred& t) { return in_seconds(exchange_of(t).timings.connected); }},
    {"time_namelookup", Kind::Number,
     [](const Transferred& t) { return in_seconds(exchange_of(t).timings.resolved); }},
    {"time_pretransfer", Kind::Number,
     [](const Transferred& t) { return in_seconds(exchange_of(t).timings.sent); }},
    {"time_redirect", Kind::Number,
     [](const Transferred& t) {
       const auto& attempts = history_of(t.outcome).attempts;
       return in_seconds(redirects(t) == 0 ? Duration{} : attempts.back().start);
     }},
    {"time_starttransfer", Kind::Number,
     [](const Transferred& t) { return in_seconds(exchange_of(t).timings.first_byte); }},
    {"time_total", Kind::Number,
     [](const Transferred& t) { return in_seconds(history_of(t.outcome).elapsed); }},
    {"url", Kind::Text, [](const Transferred& t) { return t.request.url(); }},
    {"url_effective", Kind::Text,
     [](const Transferred& t) { return t.outcome ? t.outcome->url : t.request.url(); }},
    {"urlnum", Kind::Number, [](const Transferred& t) { return std::to_string(t.index); }},
    {"wire_sends", Kind::Number, wire_sends},
    {"http_connect", Kind::Number, [](const Transferred& /*t*/) { return std::string("000"); }},
    {"ftp_entry_path", Kind::Text, [](const Transferred& /*t*/) { return std::string(); }},
}};

// A number of JSON has no zeros before it.
std::string json_number(std::string text) {
  const auto digits = text.find_first_not_of('0');
  if (digits == std::string::npos) return "0";
  return text.substr(text[digits] == '.' ? digits - 1 : digits);
}

std::string all_as_json(const Transferred& t) {
  std::string text;
  for (const auto& known : kVariables) {
    if (known.kind == Kind::Json) continue;
    const auto value = known.text(t);
    text += (text.empty() ? "" : ",") + quote_json(known.name) + ":";
    if (known.kind == Kind::Number) {
      text += json_number(value);
    } else {
      text += value.empty() ? "null" : quote_json(value);
    }
  }
  return "{" + text + "}";
}

class Writer {
 public:
  Writer(const Transferred& about, std::string& to_stderr) : about_(about), stderr_(to_stderr) {}

  std::string run(std::string_view format) {
    while (!format.empty() && !over_) {
      if (!variable(format) && !escape(format)) {
        *into_ += format.front();
        format.remove_prefix(1);
      }
    }
    return std::move(stdout_);
  }

 private:
  bool variable(std::string_view& format) {
    if (format.starts_with("%%")) {
      *into_ += '%';
      format.remove_prefix(2);
      return true;
    }
    const bool of_header = format.starts_with("%header{");
    if (!of_header && !format.starts_with("%{")) return false;
    const auto open = format.find('{');
    const auto close = format.find('}');
    if (close == std::string_view::npos) return false;
    const auto name = format.substr(open + 1, close - open - 1);
    format.remove_prefix(close + 1);
    if (of_header) {
      *into_ += header(headers_of(about_), name);
    } else {
      expand(name);
    }
    return true;
  }

  void expand(std::string_view name) {
    if (name == "stderr") {
      into_ = &stderr_;
    } else if (name == "stdout") {
      into_ = &stdout_;
    } else if (name == "onerror") {
      over_ = about_.exit_status == 0;
    } else {
      const auto* found = std::find_if(kVariables.begin(), kVariables.end(),
                                       [&](const Known& known) { return known.name == name; });
      if (found != kVariables.end()) {
        *into_ += found->text(about_);
      } else {
        stderr_ += "httpretry: unknown --write-out variable: '" + std::string(name) + "'\n";
      }
    }
  }

  bool escape(std::string_view& format) {
    if (format.size() < 2 || format.front() != '\\') return false;
    constexpr std::string_view kLetters = "nrt";
    constexpr std::string_view kMeanings = "\n\r\t";
    const auto which = kLetters.find(format[1]);
    if (which == std::string_view::npos) {
      into_->append(format.substr(0, 2));
    } else {
      *into_ += kMeanings[which];
    }
    format.remove_prefix(2);
    return true;
  }

  const Transferred& about_;
  std::string stdout_;
  std::string& stderr_;
  std::string* into_ = &stdout_;
  bool over_ = false;
};

}  // namespace

std::string head_of(std::string_view http_version, int status, const Headers& headers) {
  std::string text = "HTTP/" + std::string(http_version) + " " + std::to_string(status) + " \r\n";
  for (const auto field : headers) {
    text.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return text + "\r\n";
}

std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr) {
  return Writer(about, to_stderr).run(format);
}

}  // namespace httpretry::cli
