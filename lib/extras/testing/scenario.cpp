// The words for faults, and the parser for scenario files. Like policy files, they are read with
// tables of keys.
#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

using namespace policy_file;
using JsonType = JsonNode::Type;

// In the order of Fault.
// clang-format off
constexpr std::array<std::string_view, 24> kWords{
    "none", "reset", "close", "reset_early", "reset_during", "truncate", "timeout", "drip",
    "garbage", "stale", "huge", "bad_chunk", "huge_headers", "endless_interim", "gzip_cut_short",
    "gzip_bomb", "http2_empty_data", "http2_goaway_flood", "http2_reset_flood",
    "http2_no_end_stream", "tls_stall", "tls", "refused", "resolve"};
// clang-format on
static_assert(kWords.back() == "resolve" &&
              kWords.size() == static_cast<std::size_t>(Fault::Resolve) + 1);

bool parse_fault_name(const JsonNode& json, Fault& value, Problems& problems) {
  if (!expect(json, JsonType::String, "a string", problems)) return false;
  // The suggestions omit "hang", a second word for "timeout".
  const auto fault = parse_fault(json.text);
  value = fault.value_or(Fault::None);
  const auto words = Words::up_to(Fault::Resolve).all();
  return fault ||
         refuse(json, problems,
                described(json) + " is not a fault" + problems.suggestion(json.text, words));
}

bool parse_at(const JsonNode& json, Duration& value, Problems& problems) {
  if (!expect(json, JsonType::String, "a string", problems)) return false;
  const auto offset = parse_offset(json.text);
  value = offset.value_or(Duration());
  return offset || refuse(json, problems,
                          described(json) +
                              R"( is not a time: write it like "now+60", "now-1.5s" or "now+2m", )"
                              "at most 365 days away");
}

// In the order of TimeForm.
constexpr std::string_view kForms[] = {"http-date", "epoch", "epoch-ms"};
constexpr std::string_view kThens[] = {"repeat_last", "restart", "close"};
constexpr double kMost = 9007199254740992;  // 2^53: a double counts no further

constexpr Number<int> kStatus(200, 999);
constexpr Number<std::uint64_t> kTimes(1, kMost);
constexpr Number<std::uint64_t> kSize(0, kMost);
constexpr Custom<Fault> kFault(parse_fault_name);
constexpr Custom<Duration> kAt(parse_at);
constexpr Word<TimeForm> kForm{Words(kForms)};
constexpr Word<Then> kThen{Words(kThens)};

constexpr Key kTimeKeys[] = {
    key<&TimeHeader::offset>("at", kAt).needed().not_null(),
    key<&TimeHeader::form>("as", kForm),
};
constexpr Shape kTime{.name = "time", .keys = kTimeKeys};

// Adds a header of a scenario file to the step. Its value is a text, or an object such as {"at":
// "now+60"}: the date that is 60 s after the response is sent. Returns false after a problem, which
// is added to `problems`.
bool read_header(const JsonNode& value, std::string_view name, Step& step, Problems& problems) {
  bool can_be_sent = false;
  if (value.is(JsonType::Object)) {
    // read_object() fills in the time, and reports its problems itself.
    auto& time = step.time_headers.emplace_back(std::string(name), Duration());
    if (!read_object(value, kTime, &time, "an object", problems)) return false;
    can_be_sent = valid_header_name(name);
  } else {
    if (!expect(value, JsonType::String, R"(a string or {"at": "now+60"})", problems)) return false;
    // This text would itself become the header's value. The author surely means {"at": "now+60"}.
    if (value.text.starts_with("now+") || value.text.starts_with("now-")) {
      const auto quoted = described(value);
      return refuse(value, problems,
                    quoted + " is not a value: write the time as {\"at\": " + quoted + "}");
    }
    can_be_sent = step.headers.try_add(name, value.text);
  }
  if (!can_be_sent) problems.error(value, "this cannot be sent as a header");
  return can_be_sent;
}

// Reads "headers" into a whole Step, because a Step has separate members for texts and times. The
// value of a header may be an array, for several headers with that name.
bool parse_headers(const JsonNode& json, Step& step, Problems& problems) {
  if (!expect(json, JsonType::Object, "an object", problems)) return false;
  bool good = true;
  for (const auto* const header : json.children) {
    if (header->is(JsonType::Array)) {
      for (const auto* const value : header->children) {
        good &= read_header(*value, header->key, step, problems);
      }
    } else {
      good &= read_header(*header, header->key, step, problems);
    }
  }
  return good;
}
constexpr Custom<Step> kHeaders(parse_headers);

constexpr Key kStepKeys[] = {
    key<&Step::status>("status", kStatus),       whole_key("headers", kHeaders),
    key<&Step::body>("body", kAnyText),          key<&Step::delay>("delay", kDuration),
    key<&Step::fault>("fault", kFault),          key<&Step::times>("times", kTimes),
    key<&Step::interval>("interval", kDuration), key<&Step::size>("size", kSize),
};
constexpr Shape kStep{.name = "step", .keys = kStepKeys};

// Reads an array of steps. Returns false only if it is not an array; problems of the steps are
// reported at the steps.
bool parse_steps(const JsonNode& json, std::vector<Step>& steps, Problems& problems) {
  if (!expect(json, JsonType::Array, "an array", problems)) return false;
  if (json.children.empty()) problems.error(json, "there must be at least one step");
  steps.clear();
  for (const auto* const each : json.children) {
    const auto good = read_object(*each, kStep, &steps.emplace_back(), "an object", problems);
    if (good && each->find("status") == nullptr && each->find("fault") == nullptr) {
      problems.error(*each, "a step has a \"status\" or a \"fault\"");
    }
  }
  return true;
}

constexpr Custom<std::vector<Step>> kSteps(parse_steps);
constexpr Key kScriptKeys[] = {
    key<&Script::steps>("steps", kSteps).needed().not_null(),
    key<&Script::then>("then", kThen),
};
constexpr Shape kScript{.name = "script", .keys = kScriptKeys};

using Paths = std::map<std::string, Script, std::less<>>;
bool parse_paths(const JsonNode& json, Paths& paths, Problems& problems) {
  if (!expect(json, JsonType::Object, "an object", problems)) return false;
  for (const auto* const path : json.children) {
    if (!path->key.starts_with('/')) problems.error_at_key(*path, "a path starts with \"/\"");
    read_object(*path, kScript, &paths[std::string(path->key)], "an object", problems);
  }
  return true;
}

// Returns a key for a member that Scenario inherits from Script.
template <auto Member, class T>
constexpr Key script_key(std::string_view name, const T& type) {
  return {name, &type,
          [](void* scenario) -> void* { return &(static_cast<Scenario*>(scenario)->*Member); }};
}

constexpr Custom<Paths> kPaths(parse_paths);
constexpr Key kScenarioKeys[] = {
    script_key<&Script::steps>("steps", kSteps).needed().not_null(),
    script_key<&Script::then>("then", kThen),
    key<&Scenario::paths>("paths", kPaths),
};
constexpr Shape kScenario{.name = "scenario", .keys = kScenarioKeys};

}  // namespace

std::string_view to_string(Fault fault) {
  const auto index = static_cast<std::size_t>(fault);
  return index < kWords.size() ? kWords[index] : "";
}

std::optional<Fault> parse_fault(std::string_view word) {
  if (word == "hang") return Fault::Hang;
  const auto* const found = std::find(kWords.begin(), kWords.end(), word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<Fault>(found - kWords.begin());
}

// Returns the scenario, or an error with a line for each problem in the file.
Result<Scenario> parse_scenario(std::string_view json, std::string file_name) {
  Problems problems(std::move(file_name));
  JsonTree tree;
  read_json(json, tree, problems);
  Scenario scenario;
  if (tree.root != nullptr) {
    read_object(*tree.root, kScenario, &scenario, "an object", problems);
  }
  if (!problems.failed()) return scenario;
  return Error(Errc::InvalidRequest, error_lines(problems.take()));
}

}  // namespace httpretry
