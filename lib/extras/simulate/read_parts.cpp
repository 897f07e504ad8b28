// The readers of distributions, triggers and traces.
#include "read.hpp"

#include "lib/core/base/text.hpp"

#include <charconv>
#include <fstream>
#include <iterator>

namespace httpretry::simulation {

using namespace policy_file;
using JsonType = JsonNode::Type;

namespace {

using Kind = Distribution::Kind;

constexpr Number<double> kSigma(0, 100);
constexpr Number<double> kWeight(0, 1e9);
constexpr Word<Kind> kKind{Words::up_to(Kind::Empirical)};

constexpr List kValues(kDuration, "an array of times", "there must be at least one time");

bool read_mix(const JsonNode& json, std::vector<Distribution::Part>& parts, Problems& problems);
constexpr Custom<std::vector<Distribution::Part>> kParts(read_mix);

constexpr auto kWithMean = mask(Kind::Exponential, Kind::Normal);

constexpr Key kKeys[] = {
    key<&Distribution::kind>("kind", kKind).needed().not_null(),
    key<&Distribution::mean>("value", kDuration).of(mask(Kind::Constant)),
    key<&Distribution::mean>("mean", kDuration).of(kWithMean),
    key<&Distribution::deviation>("deviation", kDuration).of(mask(Kind::Normal)),
    key<&Distribution::mean>("median", kDuration).of(mask(Kind::Lognormal)),
    key<&Distribution::sigma>("sigma", kSigma).of(mask(Kind::Lognormal)),
    key<&Distribution::parts>("parts", kParts).of(mask(Kind::Mix)),
    key<&Distribution::values>("values", kValues).of(mask(Kind::Empirical)),
};
constinit const Shape kShape{
    .name = "distribution", .keys = kKeys, .kinds = Words::up_to(Kind::Empirical)};

// Returns the key that a distribution of this kind must have.
std::string_view needed_key(Kind kind) {
  constexpr std::string_view kNeeded[] = {"value", "mean", "mean", "median", "parts", "values"};
  return kNeeded[static_cast<std::size_t>(kind)];
}

std::optional<double> plain_number_in(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value >= 0 && value <= 100 ? std::optional(value) : std::nullopt;
}

// Parses "exponential(10ms)", "normal(10ms,2ms)", "lognormal(10ms,0.5)" or "10ms".
std::optional<Distribution> from_text(std::string_view text) {
  const auto open = text.find('(');
  if (open == std::string_view::npos) {
    const auto [value, wrong] = duration_in(text);
    return wrong.empty() ? std::optional(Distribution(value)) : std::nullopt;
  }
  if (text.back() != ')') return std::nullopt;
  const auto number = Words::up_to(Kind::Empirical).find(text.substr(0, open));
  if (number > static_cast<std::size_t>(Kind::Lognormal)) return std::nullopt;
  Distribution made;
  made.kind = static_cast<Kind>(number);
  const auto inside = text.substr(open + 1, text.size() - open - 2);
  const auto comma = inside.find(',');
  const bool two = comma != std::string_view::npos;
  if (two != (made.kind >= Kind::Normal)) return std::nullopt;
  const auto [mean, wrong] = duration_in(trimmed(inside.substr(0, comma)));
  if (!wrong.empty()) return std::nullopt;
  made.mean = mean;
  if (!two) return made;
  const auto second = trimmed(inside.substr(comma + 1));
  if (made.kind == Kind::Lognormal) {
    const auto sigma = plain_number_in(second);
    made.sigma = sigma.value_or(0);
    return sigma ? std::optional(made) : std::nullopt;
  }
  const auto [deviation, bad] = duration_in(second);
  made.deviation = deviation;
  return bad.empty() ? std::optional(made) : std::nullopt;
}

bool read_distribution(const JsonNode& json, Distribution& made, Problems& problems) {
  made = {};
  if (json.is(JsonType::String)) {
    if (auto read = from_text(json.text)) {
      made = *std::move(read);
      return true;
    }
    return refuse(json, problems,
                  described(json) +
                      " is no time and no distribution: write it like \"10ms\", "
                      "\"exponential(10ms)\", \"normal(10ms,2ms)\" or "
                      "\"lognormal(10ms,0.5)\"");
  }
  if (!read_object(json, kShape, &made, "a time such as \"10ms\" or an object", problems)) {
    return false;
  }
  const auto needed = std::string(needed_key(made.kind));
  return json.find(needed) != nullptr || refuse(json, problems, "missing key \"" + needed + "\"");
}

constexpr Key kPartKeys[] = {
    key<&Distribution::Part::weight>("weight", kWeight),
    key<&Distribution::Part::of>("of", kDistribution).needed().not_null(),
};
constexpr Shape kPart{.name = "part", .keys = kPartKeys};

bool read_mix(const JsonNode& json, std::vector<Distribution::Part>& parts, Problems& problems) {
  parts.clear();
  double total = 0;
  const bool good = read_items(json, "an array of parts", problems, [&](const JsonNode& item) {
    auto& part = parts.emplace_back();
    const bool whole = read_object(item, kPart, &part, "an object", problems);
    total += part.weight;
    return whole;
  });
  if (!good || total > 0) return good;
  return refuse(json, problems, "there must be at least one part with a weight above 0");
}

constexpr Number<double> kFactor(0, 1e6);
constexpr Number<int> kStatus(400, 599);

constexpr Key kTriggerKeys[] = {
    key<&Trigger::at>("at", kDuration).needed().not_null(),
    key<&Trigger::lasts>("for", kDurationOverZero).needed().not_null(),
    key<&Trigger::capacity>("capacity", kMaybe<kShare>),
    key<&Trigger::fail>("fail", kMaybe<kShare>),
    key<&Trigger::load>("load", kMaybe<kFactor>),
    key<&Trigger::status>("status", kStatus),
    key<&Trigger::retry_after>("retry_after", kDuration),
};
constexpr Shape kTrigger{.name = "trigger", .keys = kTriggerKeys};

// Times in a report are milliseconds as numbers.
std::optional<Duration> milliseconds(const JsonNode* json, Problems& problems) {
  constexpr NumberLimits kLimits{0, 1e12, 0, "milliseconds"};
  const auto value = number_within(*json, kLimits, problems);
  if (!value) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(*value));
}

constexpr Errc kTransportErrors[] = {Errc::Resolve, Errc::Connect, Errc::Tls,     Errc::Timeout,
                                     Errc::Send,    Errc::Receive, Errc::Protocol};

std::optional<Errc> error_in(const JsonNode* error) {
  const auto* const kind = error == nullptr ? nullptr : error->find("kind");
  if (kind == nullptr) return std::nullopt;
  for (const auto code : kTransportErrors) {
    if (to_string(code) == kind->text) return code;
  }
  return std::nullopt;
}

void read_attempt(const JsonNode& json, std::vector<RecordedAttempt>& to, Problems& problems) {
  RecordedAttempt attempt;
  const auto* const took = json.find("duration_ms");
  const auto* const status = json.find("status");
  const auto error = error_in(json.find("error"));
  if (took == nullptr || (status == nullptr && !error)) {
    problems.error(json, "an attempt needs \"duration_ms\", and a \"status\" or an \"error\"");
    return;
  }
  attempt.duration = milliseconds(took, problems).value_or(Duration());
  if (error) attempt.error = *error;
  constexpr NumberLimits kLimits{100, 599};
  if (!error)
    attempt.status = static_cast<int>(number_within(*status, kLimits, problems).value_or(200));
  if (const auto* const delay = json.find("server_delay_ms")) {
    attempt.retry_after = milliseconds(delay, problems).value_or(Duration());
  }
  to.push_back(attempt);
}

void read_report(const JsonNode& json, std::vector<RecordedAttempt>& to, Problems& problems) {
  if (json.is(JsonType::Array)) {
    for (const auto* const each : json.children) read_report(*each, to, problems);
    return;
  }
  const auto* const attempts = json.is(JsonType::Object) ? json.find("attempts") : nullptr;
  if (attempts == nullptr || !attempts->is(JsonType::Array)) {
    problems.error(json, "this is no report: it has no \"attempts\"");
    return;
  }
  for (const auto* const each : attempts->children) read_attempt(*each, to, problems);
}

// Splits a file of reports into JSON texts. If the first line is a complete value, each line is
// one; otherwise the whole file is one.
std::vector<std::string_view> pieces_of(std::string_view text) {
  Problems ignored("");
  JsonTree tree;
  const auto line = text.substr(0, text.find('\n'));
  read_json(line, tree, ignored);
  if (tree.root == nullptr) return {text};
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(take_until(text, '\n'));
  return lines;
}

}  // namespace

constinit const Custom<Distribution> kDistribution(read_distribution);
constexpr Custom<Trigger> kOneTrigger(read_trigger);
constinit const List<Custom<Trigger>> kTriggers(kOneTrigger, "an array of triggers");

bool read_trigger(const JsonNode& json, Trigger& trigger, Problems& problems) {
  if (!read_object(json, kTrigger, &trigger, "an object", problems)) return false;
  if (!trigger.capacity && !trigger.fail && !trigger.load) {
    return refuse(json, problems,
                  "a trigger changes \"capacity\", \"fail\" or \"load\"; this one has none");
  }
  if (trigger.fail) return true;
  for (const std::string_view key : {"status", "retry_after"}) {
    const auto* const value = json.find(key);
    if (value == nullptr) continue;
    return refuse(*value, problems, "it says how requests fail, but there is no \"fail\"");
  }
  return true;
}

std::vector<RecordedAttempt> read_trace(const std::string& path, const JsonNode& at,
                                        Problems& problems) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) {
    problems.error(at, "\"" + path + "\" cannot be read");
    return {};
  }
  std::vector<RecordedAttempt> attempts;
  int number = 0;
  const auto pieces = pieces_of(text);
  for (const auto piece : pieces) {
    ++number;
    if (piece.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    // Positions count within a piece, so the name includes the line.
    Problems of_file(pieces.size() > 1 ? path + ", line " + std::to_string(number) : path);
    JsonTree tree;
    read_json(piece, tree, of_file);
    if (tree.root != nullptr) read_report(*tree.root, attempts, of_file);
    if (!of_file.failed()) continue;
    problems.error(at, error_lines(of_file.take()));
    return {};
  }
  if (attempts.empty()) problems.error(at, "\"" + path + "\" has no attempts");
  return attempts;
}

}  // namespace httpretry::simulation
