#include "write_out.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

namespace httpretry::cli {
namespace {

const Exchange& exchange_of(const Outcome& outcome) {
  return outcome ? outcome->exchange : outcome.error().exchange;
}

std::string in_seconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6f", std::chrono::duration<double>(time).count());
  return text.data();
}

// Three digits, as curl has it: scripts compare with "000".
std::string status_text(const Outcome& outcome) {
  const int status = outcome ? outcome->status : outcome.error().status;
  const auto digits = std::to_string(status);
  return std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

std::string header(const Outcome& outcome, std::string_view name) {
  const auto& headers = outcome ? outcome->headers : outcome.error().headers;
  return std::string(headers.get(name).value_or(""));
}

struct Variable {
  std::string_view name;
  std::string (*text)(const Transferred&);
};

constexpr std::array<Variable, 19> kVariables{{
    {"content_type", [](const Transferred& t) { return header(t.outcome, "Content-Type"); }},
    {"errormsg",
     [](const Transferred& t) { return t.outcome ? std::string() : t.outcome.error().message; }},
    {"exitcode", [](const Transferred& t) { return std::to_string(t.exit_status); }},
    {"http_code", [](const Transferred& t) { return status_text(t.outcome); }},
    {"http_version",
     [](const Transferred& t) { return t.outcome ? t.outcome->http_version : std::string("0"); }},
    {"method", [](const Transferred& t) { return std::string(t.method); }},
    {"num_retries",
     [](const Transferred& t) {
       const auto& attempts =
           t.outcome ? t.outcome->history.attempts : t.outcome.error().history.attempts;
       return std::to_string(std::count_if(attempts.begin(), attempts.end(),
                                           [](const Attempt& each) { return each.retried; }));
     }},
    {"response_code", [](const Transferred& t) { return status_text(t.outcome); }},
    {"scheme", [](const Transferred& t) { return std::string(t.url.substr(0, t.url.find(':'))); }},
    {"size_download",
     [](const Transferred& t) { return std::to_string(t.outcome ? t.outcome->body.size() : 0); }},
    {"time_appconnect",
     [](const Transferred& t) { return in_seconds(exchange_of(t.outcome).timings.secured); }},
    {"time_connect",
     [](const Transferred& t) { return in_seconds(exchange_of(t.outcome).timings.connected); }},
    {"time_namelookup",
     [](const Transferred& t) { return in_seconds(exchange_of(t.outcome).timings.resolved); }},
    {"time_pretransfer",
     [](const Transferred& t) { return in_seconds(exchange_of(t.outcome).timings.sent); }},
    {"time_starttransfer",
     [](const Transferred& t) { return in_seconds(exchange_of(t.outcome).timings.first_byte); }},
    {"time_total",
     [](const Transferred& t) {
       return in_seconds(t.outcome ? t.outcome->history.elapsed
                                   : t.outcome.error().history.elapsed);
     }},
    {"url", [](const Transferred& t) { return std::string(t.url); }},
    {"url_effective",
     [](const Transferred& t) { return t.outcome ? t.outcome->url : std::string(t.url); }},
    {"redirect_url", [](const Transferred& t) { return header(t.outcome, "Location"); }},
}};

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
      *into_ += header(about_.outcome, name);
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
                                       [&](const Variable& known) { return known.name == name; });
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
    if (which == std::string_view::npos) return false;
    *into_ += kMeanings[which];
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

std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr) {
  return Writer(about, to_stderr).run(format);
}

}  // namespace httpretry::cli
