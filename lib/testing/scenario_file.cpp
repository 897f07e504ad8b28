#include "lib/json/problems.hpp"

#include <httpretry/retry/server_delay.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace httpretry {
namespace {

constexpr std::array<std::string_view, 8> kStepKeys{"status", "headers", "body",     "delay",
                                                    "fault",  "times",   "interval", "size"};
constexpr std::array<std::string_view, 3> kScenarioKeys{"steps", "then", "paths"};
constexpr std::array<std::string_view, 2> kScriptKeys{"steps", "then"};

class Reader {
 public:
  explicit Reader(Problems& report) : report_(report) {}

  Scenario scenario(const JsonNode& json) {
    Scenario scenario;
    if (!expect(json, JsonNode::Type::Object, "an object")) return scenario;
    static_cast<Script&>(scenario) = script(json, kScenarioKeys);
    const auto* paths = json.find("paths");
    if (paths == nullptr || !expect(*paths, JsonNode::Type::Object, "an object")) return scenario;
    for (const auto* path : paths->children) {
      if (!path->key.starts_with('/')) report_.error_at_key(*path, "a path starts with \"/\"");
      if (!expect(*path, JsonNode::Type::Object, "an object")) continue;
      scenario.paths.emplace(std::string(path->key), script(*path, kScriptKeys));
    }
    return scenario;
  }

 private:
  using Keys = std::span<const std::string_view>;

  Script script(const JsonNode& json, Keys keys) {
    Script script;
    know_keys(json, keys);
    if (const auto* then = json.find("then")) script.then = then_of(*then);
    const auto* steps = json.find("steps");
    if (steps == nullptr) {
      report_.error(json, "\"steps\" is missing");
    } else if (expect(*steps, JsonNode::Type::Array, "an array")) {
      if (steps->children.empty()) report_.error(*steps, "there must be at least one step");
      for (const auto* each : steps->children) script.steps.push_back(step(*each));
    }
    return script;
  }

  Step step(const JsonNode& json) {
    Step step;
    if (!expect(json, JsonNode::Type::Object, "an object")) return step;
    know_keys(json, kStepKeys);
    if (json.find("status") == nullptr && json.find("fault") == nullptr) {
      report_.error(json, "a step has a \"status\" or a \"fault\"");
    }
    if (const auto* status = json.find("status")) {
      step.status = static_cast<int>(number(*status, 200, 999));
    }
    if (const auto* fault = json.find("fault")) step.fault = fault_of(*fault);
    if (const auto* headers = json.find("headers")) read_headers(*headers, step.headers);
    if (const auto* body = json.find("body");
        body && expect(*body, JsonNode::Type::String, "a string"))
      step.body = body->text;
    if (const auto* times = json.find("times")) step.times = number(*times, 1, kMost);
    if (const auto* size = json.find("size")) step.size = number(*size, 0, kMost);
    if (const auto* delay = json.find("delay")) step.delay = duration(*delay);
    if (const auto* interval = json.find("interval")) step.interval = duration(*interval);
    return step;
  }

  void read_headers(const JsonNode& json, Headers& into) {
    if (!expect(json, JsonNode::Type::Object, "an object")) return;
    for (const auto* field : json.children) {
      if (field->is(JsonNode::Type::Array)) {
        for (const auto* value : field->children) add_header(field->key, *value, into);
      } else {
        add_header(field->key, *field, into);
      }
    }
  }

  void add_header(std::string_view name, const JsonNode& value, Headers& into) {
    if (!expect(value, JsonNode::Type::String, "a string")) return;
    if (!into.try_add(name, value.text)) report_.error(value, "this cannot be sent as a header");
  }

  Fault fault_of(const JsonNode& json) {
    if (!expect(json, JsonNode::Type::String, "a string")) return Fault::None;
    if (const auto fault = parse_fault(json.text)) return *fault;
    std::vector<std::string_view> words;
    for (int i = 0; i <= static_cast<int>(Fault::Resolve); ++i) {
      words.push_back(to_string(static_cast<Fault>(i)));
    }
    report_.error(json, described(json) + " is no fault" + did_you_mean(json.text, words));
    return Fault::None;
  }

  Then then_of(const JsonNode& json) {
    if (json.is(JsonNode::Type::String)) {
      if (json.text == "repeat_last") return Then::RepeatLast;
      if (json.text == "restart") return Then::Restart;
      if (json.text == "close") return Then::Close;
    }
    report_.error(json, described(json) + " is not one of repeat_last, restart, close");
    return Then::RepeatLast;
  }

  Duration duration(const JsonNode& json) {
    const auto time = json.is(JsonNode::Type::String) ? parse_go_duration(json.text) : std::nullopt;
    if (!time) {
      report_.error(json,
                    described(json) + " is not a duration: write it like \"250ms\" or \"1.5s\"");
    }
    return time.value_or(Duration());
  }

  std::uint64_t number(const JsonNode& json, std::uint64_t least, std::uint64_t most) {
    std::uint64_t value = 0;
    const auto* end = json.text.data() + json.text.size();
    const auto [stop, failure] = std::from_chars(json.text.data(), end, value);
    const bool whole = json.is(JsonNode::Type::Number) && failure == std::errc() && stop == end;
    if (!whole || value < least || value > most) {
      const auto range = most == kMost ? std::to_string(least) + " or more"
                                       : std::to_string(least) + " to " + std::to_string(most);
      report_.error(json, described(json) + " is not a whole number, " + range);
    }
    return value;
  }

  void know_keys(const JsonNode& json, Keys keys) {
    for (const auto* member : json.children) {
      if (std::find(keys.begin(), keys.end(), member->key) != keys.end()) continue;
      report_.error_at_key(*member, "unknown key" + did_you_mean(member->key, keys));
    }
  }

  bool expect(const JsonNode& json, JsonNode::Type type, const char* what) {
    if (json.is(type)) return true;
    report_.error(json, described(json) + " is not " + what);
    return false;
  }

  static constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
  Problems& report_;
};

}  // namespace

Result<Scenario> parse_scenario(std::string_view json, std::string file_name) {
  Problems report(std::move(file_name));
  JsonTree document;
  read_json(json, document, report);
  Scenario scenario;
  if (document.root != nullptr) scenario = Reader(report).scenario(*document.root);
  if (!report.failed()) return scenario;
  std::string lines;
  for (const auto& problem : report.take()) {
    lines += (lines.empty() ? "" : "\n") + to_string(problem);
  }
  return Error(Errc::InvalidRequest, lines);
}

}  // namespace httpretry
