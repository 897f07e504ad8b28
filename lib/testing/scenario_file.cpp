// Scenario files, read by tables of keys as policy files are.
#include "lib/policy/keys.hpp"

#include <httpretry/testing/testing.hpp>

namespace httpretry {
namespace {

using policy_file::DurationType;
using policy_file::expect;
using policy_file::Key;
using policy_file::key;
using policy_file::Number;
using policy_file::Shape;
using policy_file::TypeOf;
using policy_file::Word;
using policy_file::Words;
using JsonType = JsonNode::Type;

// A type that is only read: scenario files are not written, and have no schema.
template <class F>
class ReadType : public TypeOf<F> {
 public:
  [[nodiscard]] OrderedJson schema() const final { return {}; }

 protected:
  [[nodiscard]] OrderedJson print(const F& /*value*/) const final { return {}; }
};

class TextType final : public ReadType<std::string> {
 protected:
  std::optional<std::string> parse(const JsonNode& json, Problems& problems) const override {
    if (!expect(json, JsonType::String, "a string", problems)) return std::nullopt;
    return std::string(json.text);
  }
};

class FaultType final : public ReadType<Fault> {
 protected:
  std::optional<Fault> parse(const JsonNode& json, Problems& problems) const override {
    if (!expect(json, JsonType::String, "a string", problems)) return std::nullopt;
    // "hang" is a second word for "timeout".
    if (const auto fault = parse_fault(json.text)) return fault;
    const auto words = Words::up_to(Fault::Resolve).all();
    problems.error(json, described(json) + " is no fault" + problems.suggestion(json.text, words));
    return std::nullopt;
  }
};

class HeadersType final : public ReadType<Headers> {
 protected:
  std::optional<Headers> parse(const JsonNode& json, Problems& problems) const override {
    if (!expect(json, JsonType::Object, "an object", problems)) return std::nullopt;
    Headers headers;
    for (const auto* const header : json.children) {
      if (!header->is(JsonType::Array)) add(*header, header->key, headers, problems);
      if (!header->is(JsonType::Array)) continue;
      for (const auto* const value : header->children) add(*value, header->key, headers, problems);
    }
    return headers;
  }

 private:
  static void add(const JsonNode& value, std::string_view name, Headers& headers,
                  Problems& problems) {
    if (!expect(value, JsonType::String, "a string", problems)) return;
    if (!headers.try_add(name, value.text)) {
      problems.error(value, "this cannot be sent as a header");
    }
  }
};

constexpr std::string_view kThens[] = {"repeat_last", "restart", "close"};
constexpr double kMost = 9007199254740992;  // 2^53: a double counts no further

constexpr Number<int> kStatus(200, 999);
constexpr Number<std::uint64_t> kTimes(1, kMost);
constexpr Number<std::uint64_t> kSize(0, kMost);
constexpr DurationType kDuration(false);
constexpr TextType kText;
constexpr FaultType kFault;
constexpr HeadersType kHeaders;
constexpr Word<Then> kThen{Words(kThens)};

constexpr Key kStepKeys[] = {
    key<&Step::status>("status", kStatus),
    key<&Step::headers>("headers", kHeaders),
    key<&Step::body>("body", kText),
    key<&Step::delay>("delay", kDuration),
    key<&Step::fault>("fault", kFault),
    key<&Step::times>("times", kTimes),
    key<&Step::interval>("interval", kDuration),
    key<&Step::size>("size", kSize),
};
constexpr Shape kStep{.name = "step", .keys = kStepKeys};

class StepsType final : public ReadType<std::vector<Step>> {
 protected:
  std::optional<std::vector<Step>> parse(const JsonNode& json, Problems& problems) const override {
    if (!expect(json, JsonType::Array, "an array", problems)) return std::nullopt;
    if (json.children.empty()) problems.error(json, "there must be at least one step");
    std::vector<Step> steps;
    for (const auto* const each : json.children) {
      const auto good = read_object(*each, kStep, &steps.emplace_back(), "an object", problems);
      if (good && each->find("status") == nullptr && each->find("fault") == nullptr) {
        problems.error(*each, "a step has a \"status\" or a \"fault\"");
      }
    }
    return steps;
  }
};

constexpr StepsType kSteps;
constexpr Key kScriptKeys[] = {
    key<&Script::steps>("steps", kSteps).needed().not_null(),
    key<&Script::then>("then", kThen),
};
constexpr Shape kScript{.name = "script", .keys = kScriptKeys};

class PathsType final : public ReadType<std::map<std::string, Script, std::less<>>> {
 protected:
  std::optional<Field> parse(const JsonNode& json, Problems& problems) const override {
    if (!expect(json, JsonType::Object, "an object", problems)) return std::nullopt;
    Field paths;
    for (const auto* const path : json.children) {
      if (!path->key.starts_with('/')) problems.error_at_key(*path, "a path starts with \"/\"");
      read_object(*path, kScript, &paths[std::string(path->key)], "an object", problems);
    }
    return paths;
  }
};

// The members of its Script are reached through a Scenario.
template <auto Member, class T>
constexpr Key script_key(std::string_view name, const T& type) {
  return {name, &type,
          [](void* scenario) -> void* { return &(static_cast<Scenario*>(scenario)->*Member); }};
}

constexpr PathsType kPaths;
constexpr Key kScenarioKeys[] = {
    script_key<&Script::steps>("steps", kSteps).needed().not_null(),
    script_key<&Script::then>("then", kThen),
    key<&Scenario::paths>("paths", kPaths),
};
constexpr Shape kScenario{.name = "scenario", .keys = kScenarioKeys};

}  // namespace

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
