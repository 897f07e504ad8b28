// Reads the environment variables of OpenTelemetry.
#include "words.hpp"

#include <httpretry/telemetry/otlp.hpp>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace httpretry {
namespace {

using telemetry::number_text;
using Problems = std::vector<std::string>;

void add_problem(Problems* problems, std::string problem) {
  if (problems != nullptr) problems->push_back(std::move(problem));
}

// Returns an empty text if the variable is not set: OpenTelemetry treats both alike.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (!escape) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return decoded;
}

// Parses a variable such as "a=b,c=d%20e".
std::vector<std::pair<std::string, std::string>> pairs_of(const char* name, Problems* problems) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto value = variable(name);
  for (std::string_view rest = value; !rest.empty();) {
    const auto end = std::min(rest.find(','), rest.size());
    const auto item = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (item.empty()) continue;
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      // The value may be a secret, so it is not shown.
      add_problem(problems, std::string(name) + ": an item is not NAME=VALUE; it is left out");
      continue;
    }
    pairs.emplace_back(percent_decoded(trimmed(item.substr(0, equals))),
                       percent_decoded(trimmed(item.substr(equals + 1))));
  }
  return pairs;
}

// Returns nullopt if the variable is not set, or not a number from `least` to `most`.
template <class Number>
std::optional<Number> number_of(const char* name, Number least, Number most, Problems* problems) {
  const auto text = variable(name);
  if (text.empty()) return std::nullopt;
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc() && at == end;
  if (is_number && number >= least && number <= most) return number;
  const auto wanted = is_number ? "between " + number_text(static_cast<double>(least)) + " and " +
                                      number_text(static_cast<double>(most))
                                : std::string("a number");
  add_problem(problems,
              std::string(name) + ": \"" + text + "\" is not " + wanted + "; it is ignored");
  return std::nullopt;
}

constexpr std::array<std::string_view, 12> kUsed{"OTEL_EXPORTER_OTLP_ENDPOINT",
                                                 "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                                 "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                                                 "OTEL_EXPORTER_OTLP_HEADERS",
                                                 "OTEL_EXPORTER_OTLP_TIMEOUT",
                                                 "OTEL_SERVICE_NAME",
                                                 "OTEL_RESOURCE_ATTRIBUTES",
                                                 "OTEL_TRACES_SAMPLER",
                                                 "OTEL_TRACES_SAMPLER_ARG",
                                                 "OTEL_SDK_DISABLED",
                                                 "OTEL_TRACES_EXPORTER",
                                                 "OTEL_EXPORTER_OTLP_PROTOCOL"};

// Reports variables that are set but have no effect, although users would expect one.
void report_unused(Problems* problems) {
  std::string unused;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('='));
    if (!name.starts_with("OTEL_") || name.size() + 1 >= text.size()) continue;
    if (std::ranges::find(kUsed, name) != kUsed.end()) continue;
    unused.append(unused.empty() ? "" : ", ").append(name);
  }
  if (!unused.empty()) add_problem(problems, unused + ": no effect here");
  const auto protocol = variable("OTEL_EXPORTER_OTLP_PROTOCOL");
  if (!protocol.empty() && protocol != "http/json") {
    add_problem(problems, "OTEL_EXPORTER_OTLP_PROTOCOL: \"" + protocol +
                              "\" is not supported; http/json is used");
  }
}

}  // namespace

OtlpOptions OtlpOptions::from_environment(std::vector<std::string>* problems) {
  OtlpOptions options;
  const auto take = [](const char* name, std::string& to) {
    if (auto value = variable(name); !value.empty()) to = std::move(value);
  };
  take("OTEL_EXPORTER_OTLP_ENDPOINT", options.endpoint);
  take("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", options.traces_endpoint);
  take("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", options.metrics_endpoint);
  for (const auto& [name, value] : pairs_of("OTEL_EXPORTER_OTLP_HEADERS", problems)) {
    if (!options.headers.try_add(name, value)) {
      add_problem(problems, "OTEL_EXPORTER_OTLP_HEADERS: an item is not a header; it is left out");
    }
  }
  constexpr std::int64_t kDay = 86'399'999;  // milliseconds; just below 24 hours
  const auto ms = number_of<std::int64_t>("OTEL_EXPORTER_OTLP_TIMEOUT", 1, kDay, problems);
  if (ms) options.timeout = std::chrono::milliseconds(*ms);
  for (auto& [name, value] : pairs_of("OTEL_RESOURCE_ATTRIBUTES", problems)) {
    if (name == "service.name") {
      options.service_name = value;
    } else {
      options.resource.emplace_back(std::move(name), std::move(value));
    }
  }
  take("OTEL_SERVICE_NAME", options.service_name);
  report_unused(problems);
  return options;
}

void sample_as_environment(TracesOptions& options, std::vector<std::string>* problems) {
  std::string_view name = "parentbased_always_on";
  const auto given = variable("OTEL_TRACES_SAMPLER");
  constexpr std::array<std::string_view, 6> kKnown{"always_on",
                                                   "always_off",
                                                   "traceidratio",
                                                   "parentbased_always_on",
                                                   "parentbased_always_off",
                                                   "parentbased_traceidratio"};
  if (std::ranges::find(kKnown, given) != kKnown.end()) {
    name = given;
  } else if (!given.empty()) {
    add_problem(problems, "OTEL_TRACES_SAMPLER: \"" + given + "\" is not known; " +
                              std::string(name) + " is used");
  }
  options.parent_based = name.starts_with("parentbased_");
  options.sample_ratio = name.ends_with("always_off") ? 0 : 1;
  if (name.ends_with("traceidratio")) {
    options.sample_ratio = number_of<double>("OTEL_TRACES_SAMPLER_ARG", 0, 1, problems).value_or(1);
  }
  if (variable("OTEL_SDK_DISABLED") == "true") {
    options.parent_based = false;
    options.sample_ratio = 0;
  }
}

}  // namespace httpretry
