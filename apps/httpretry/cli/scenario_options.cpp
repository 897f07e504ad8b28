#include "cli/scenario_options.hpp"

#include "cli/input.hpp"
#include "lib/core/base/text.hpp"

#include <httpretry/json/problem.hpp>

#include <stdexcept>

namespace httpretry::cli {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  const bool last_is_empty = text.ends_with(at);
  while (!text.empty()) parts.emplace_back(take_until(text, at));
  if (last_is_empty) parts.emplace_back();
  return parts;
}

std::invalid_argument bad(const std::string& item, const std::string& why) {
  return std::invalid_argument("\"" + item + "\" " + why);
}

Step step_named(const std::string& name, const std::string& item) {
  if (const auto fault = parse_fault(name)) return {*fault};
  const auto status = name.size() == 3 ? to_number<int>(name) : std::nullopt;
  if (status && *status >= 200) return {*status};
  std::vector<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(Fault::Resolve); ++i) {
    words.push_back(to_string(static_cast<Fault>(i)));
  }
  throw bad(item, "is not a status (200 to 999) or a fault" + did_you_mean(name, words));
}

// Adds a header of a response. "now+60" becomes a date, and any other value is sent as it is.
void add_header(Step& step, const std::string& name, const std::string& value,
                const std::string& item) {
  if (name == "body") throw bad(item, "sets a body, which only a file for --scenario can do");
  const bool is_time = value.starts_with("now+") || value.starts_with("now-");
  const auto offset = parse_offset(value);
  if (is_time && !offset) {
    throw bad(item, "has a time that is not like now+60, now-1.5s or now+2m (at most 365 days)");
  }
  if (is_time && valid_header_name(name)) {
    step.time_headers.emplace_back(name, *offset);
  } else if (!step.headers.try_add(name, value)) {
    throw bad(item, "has an invalid header");  // or, for a time, an invalid name
  }
}

// Parses one item of --outcomes: a status or a fault, and headers, as in "429:retry-after=7" or
// "timeout". Throws std::invalid_argument if the item is invalid.
Step parse_item(const std::string& item) {
  const auto parts = split(item, ':');
  if (parts.empty()) throw bad(item, "is an empty item");
  std::vector<std::string> headers;  // each "NAME=VALUE"
  // A part that does not begin with "NAME=" belongs to the header value before it, which contained
  // a colon: "302:location=http://x/?a=b" has the parts "302", "location=http" and "//x/?a=b".
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    const bool has_equals = equals != std::string::npos;
    // A part with an invalid name continues the value before it. If it is the first header, it has
    // no value before it, and add_header rejects the name.
    const bool begins_header =
        has_equals && (headers.empty() || valid_header_name(parts[i].substr(0, equals)));
    if (begins_header) {
      headers.push_back(parts[i]);
    } else if (headers.empty()) {
      throw bad(item, "has a part that is not HEADER=VALUE");
    } else {
      headers.back() += ':' + parts[i];
    }
  }
  auto step = step_named(parts[0], item);
  for (const auto& header : headers) {
    const auto equals = header.find('=');
    add_header(step, header.substr(0, equals), header.substr(equals + 1), item);
  }
  return step;
}

}  // namespace

std::vector<Flag> scenario_flags(ScenarioChoice& choice) {
  return {
      {'\0', "scenario", "FILE", "a JSON file that says what happens to each request",
       store(choice.file)},
      {'\0', "outcomes", "LIST",
       "a short scenario: 503,timeout,429:retry-after=7,200; retry-after=now+7 is a date",
       store(choice.outcomes)},
  };
}

std::vector<Step> steps_in(const std::string& list) {
  std::vector<Step> steps;
  for (const auto& item : split(list, ',')) steps.push_back(parse_item(item));
  if (!steps.empty()) return steps;
  throw std::invalid_argument("the list is empty; expected outcomes such as 503,timeout,200");
}

Scenario parse_outcomes(const std::string& list) {
  try {
    Scenario scenario;
    scenario.steps = steps_in(list);
    return scenario;
  } catch (const std::invalid_argument& error) {
    throw UsageError("option --outcomes: " + std::string(error.what()));
  }
}

// Returns the scenario of --scenario or --outcomes, or nullopt if neither is given. Throws
// UsageError if both are given, or if the scenario cannot be read or is invalid.
std::optional<Scenario> chosen_scenario(const ScenarioChoice& choice) {
  if (choice.file && choice.outcomes) {
    throw UsageError("--scenario and --outcomes cannot be combined");
  }
  if (choice.outcomes) return parse_outcomes(*choice.outcomes);
  if (!choice.file) return std::nullopt;
  std::string text;
  try {
    text = read_whole(*choice.file, kMaxTextFile);
  } catch (const ReadError& error) {
    throw UsageError("option --scenario: cannot read " + *choice.file + ": " + error.what());
  }
  auto scenario = parse_scenario(text, *choice.file);
  if (!scenario) throw UsageError("the scenario has errors:\n" + scenario.error().message);
  return *std::move(scenario);
}

}  // namespace httpretry::cli
