// Reads the environment variables of OpenTelemetry.
#include "words.hpp"

#include "lib/core/base/text.hpp"

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

// Returns the text with each "%XX" replaced by the byte that it encodes: "a b" for "a%20b". A "%"
// without two hexadecimal digits after it stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {  // `text` is what has not been decoded yet
    if (text.size() > 2 && text[0] == '%') {
      const auto high = hex_value(text[1]);
      const auto low = hex_value(text[2]);
      if (high && low) {
        decoded += static_cast<char>(*high * 16 + *low);
        text.remove_prefix(3);
        continue;
      }
    }
    decoded += text.front();
    text.remove_prefix(1);
  }
  return decoded;
}

// Parses an environment variable such as "a=b,c=d%20e" into pairs of a name and a value, both
// percent-decoded. Reports items that are not NAME=VALUE, and leaves them out.
std::vector<std::pair<std::string, std::string>> pairs_in(const char* name, Problems* problems) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto value = variable(name);
  for (std::string_view rest = value; !rest.empty();) {
    const auto item = trimmed(take_until(rest, ','));
    if (item.empty()) continue;
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      // The value may be a secret, so it is not shown.
      add_problem(problems, std::string(name) + ": an item is not NAME=VALUE; it is ignored");
      continue;
    }
    pairs.emplace_back(percent_decoded(trimmed(item.substr(0, equals))),
                       percent_decoded(trimmed(item.substr(equals + 1))));
  }
  return pairs;
}

// Returns the number in an environment variable. Returns nullopt if the variable is not set, and
// also, after reporting it, if the value is not a number from `least` to `most`.
template <class Number>
std::optional<Number> number_in(const char* name, Number least, Number most, Problems* problems) {
  const auto text = variable(name);
  if (text.empty()) return std::nullopt;
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [parsed_end, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc() && parsed_end == end;
  if (is_number && number >= least && number <= most) return number;
  const auto expected = is_number ? "between " + number_text(static_cast<double>(least)) + " and " +
                                        number_text(static_cast<double>(most))
                                  : std::string("a number");
  add_problem(problems,
              std::string(name) + ": \"" + text + "\" is not " + expected + "; it is ignored");
  return std::nullopt;
}

constexpr std::array<std::string_view, 13> kUsedVariables{"OTEL_EXPORTER_OTLP_ENDPOINT",
                                                          "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                                          "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                                                          "OTEL_EXPORTER_OTLP_HEADERS",
                                                          "OTEL_EXPORTER_OTLP_TIMEOUT",
                                                          "OTEL_EXPORTER_OTLP_COMPRESSION",
                                                          "OTEL_SERVICE_NAME",
                                                          "OTEL_RESOURCE_ATTRIBUTES",
                                                          "OTEL_TRACES_SAMPLER",
                                                          "OTEL_TRACES_SAMPLER_ARG",
                                                          "OTEL_SDK_DISABLED",
                                                          "OTEL_TRACES_EXPORTER",
                                                          "OTEL_EXPORTER_OTLP_PROTOCOL"};

// Reports the variables of OpenTelemetry that are set but have no effect here, and a protocol other
// than http/json.
void report_unused(Problems* problems) {
  std::string unused;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view value = *entry;  // "NAME=VALUE" at first
    const auto name = take_until(value, '=');
    if (!name.starts_with("OTEL_") || value.empty()) continue;
    if (std::ranges::find(kUsedVariables, name) != kUsedVariables.end()) continue;
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

// Returns the exporter's default options, changed by the environment variables that OpenTelemetry
// defines, if they are set. A value that cannot be used leaves the default in place and appends a
// line to `problems`, which may be nullptr.
OtlpOptions OtlpOptions::from_environment(std::vector<std::string>* problems) {
  OtlpOptions options;
  const auto override_if_set = [](std::string& option, const char* name) {
    if (auto value = variable(name); !value.empty()) option = std::move(value);
  };
  const auto override_url = [&](std::string& option, const char* name) {
    const auto value = variable(name);
    if (value.empty()) return;  // the variable is not set
    if (Url::parse(value)) return override_if_set(option, name);
    // The value may have a password, so it is not shown.
    add_problem(problems, std::string(name) +
                              ": not a usable URL such as http://localhost:4318; it is ignored");
  };
  override_url(options.endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT");
  override_url(options.traces_endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  override_url(options.metrics_endpoint, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
  for (const auto& [name, value] : pairs_in("OTEL_EXPORTER_OTLP_HEADERS", problems)) {
    if (!options.headers.try_add(name, value)) {
      add_problem(problems, "OTEL_EXPORTER_OTLP_HEADERS: an item is not a header; it is ignored");
    }
  }
  // In milliseconds: just below 24 hours, the longest time that flush() waits.
  constexpr std::int64_t kMaxTimeout = 86'399'999;
  const auto timeout_ms =
      number_in<std::int64_t>("OTEL_EXPORTER_OTLP_TIMEOUT", /*least=*/1, kMaxTimeout, problems);
  if (timeout_ms) options.timeout = std::chrono::milliseconds(*timeout_ms);
  const auto compression = variable("OTEL_EXPORTER_OTLP_COMPRESSION");
  if (compression == "gzip") {
    options.compression = compression;
  } else if (!compression.empty() && compression != "none") {
    add_problem(problems, "OTEL_EXPORTER_OTLP_COMPRESSION: \"" + compression +
                              "\" is not gzip or none; it is ignored");
  }
  for (auto& [name, value] : pairs_in("OTEL_RESOURCE_ATTRIBUTES", problems)) {
    if (name == "service.name") {
      options.service_name = value;
    } else {
      options.resource.emplace_back(std::move(name), std::move(value));
    }
  }
  // Takes precedence over "service.name" in OTEL_RESOURCE_ATTRIBUTES.
  override_if_set(options.service_name, "OTEL_SERVICE_NAME");
  report_unused(problems);  // variables of OpenTelemetry that have no effect here
  return options;
}

// Sets which share of the calls is traced (`sample_ratio`, from 0 to 1), and whether a call that is
// part of a caller's trace is traced if the caller's was (`parent_based`). Reads the environment
// variables of OpenTelemetry. A value that cannot be used appends a line to `problems`, which may
// be nullptr.
void sample_as_environment(TracesOptions& options, std::vector<std::string>* problems) {
  std::string_view sampler = "parentbased_always_on";  // OpenTelemetry's default
  const auto requested = variable("OTEL_TRACES_SAMPLER");
  constexpr std::array<std::string_view, 6> kKnown{"always_on",
                                                   "always_off",
                                                   "traceidratio",
                                                   "parentbased_always_on",
                                                   "parentbased_always_off",
                                                   "parentbased_traceidratio"};
  if (std::ranges::find(kKnown, requested) != kKnown.end()) {
    sampler = requested;
  } else if (!requested.empty()) {
    add_problem(problems, "OTEL_TRACES_SAMPLER: \"" + requested + "\" is not known; " +
                              std::string(sampler) + " is used");
  }
  options.parent_based = sampler.starts_with("parentbased_");
  options.sample_ratio = sampler.ends_with("always_off") ? 0 : 1;
  if (sampler.ends_with("traceidratio")) {
    // OpenTelemetry's default is to sample all calls.
    const auto ratio =
        number_in<double>("OTEL_TRACES_SAMPLER_ARG", /*least=*/0, /*most=*/1, problems);
    options.sample_ratio = ratio.value_or(1);
  }
  if (variable("OTEL_SDK_DISABLED") == "true") {  // traces no call, whatever the sampler
    options.parent_based = false;
    options.sample_ratio = 0;
  }
}

}  // namespace httpretry
