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

// Returns the sigma in a text, a number from 0 to 100, or nullopt.
std::optional<double> sigma_in(std::string_view text) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [parsed_end, error] = std::from_chars(text.data(), end, value);
  const bool is_number = error == std::errc() && parsed_end == end;
  if (!is_number || value < 0 || value > 100) return std::nullopt;
  return value;
}

// Parses "exponential(10ms)", "normal(10ms,2ms)", "lognormal(10ms,0.5)" or "10ms". Returns nullopt
// for any other text.
std::optional<Distribution> from_text(std::string_view text) {
  const auto open = text.find('(');
  if (open == std::string_view::npos) {
    const auto [value, problem] = duration_in(text);
    if (!problem.empty()) return std::nullopt;
    return Distribution(value);
  }
  if (text.back() != ')') return std::nullopt;
  const auto kind_index = Words::up_to(Kind::Empirical).find(text.substr(0, open));
  if (kind_index > static_cast<std::size_t>(Kind::Lognormal)) return std::nullopt;
  Distribution result;
  result.kind = static_cast<Kind>(kind_index);
  const auto arguments = text.substr(open + 1, text.size() - open - 2);
  const auto comma = arguments.find(',');
  const bool has_second = comma != std::string_view::npos;
  const bool needs_second = result.kind == Kind::Normal || result.kind == Kind::Lognormal;
  if (has_second != needs_second) return std::nullopt;
  const auto [mean, problem] = duration_in(trimmed(arguments.substr(0, comma)));
  if (!problem.empty()) return std::nullopt;
  result.mean = mean;
  if (!needs_second) return result;
  const auto second = trimmed(arguments.substr(comma + 1));
  if (result.kind == Kind::Lognormal) {
    const auto sigma = sigma_in(second);
    if (!sigma) return std::nullopt;
    result.sigma = *sigma;
    return result;
  }
  const auto [deviation, deviation_problem] = duration_in(second);
  if (!deviation_problem.empty()) return std::nullopt;
  result.deviation = deviation;
  return result;
}

// Reads a distribution from its short form or an object, which must have the key that its kind
// needs. Returns false after a problem.
bool read_distribution(const JsonNode& json, Distribution& result, Problems& problems) {
  result = {};
  if (json.is(JsonType::String)) {
    if (auto parsed = from_text(json.text)) {
      result = *std::move(parsed);
      return true;
    }
    return refuse(json, problems,
                  described(json) +
                      " is no time and no distribution: write it like \"10ms\", "
                      "\"exponential(10ms)\", \"normal(10ms,2ms)\" or "
                      "\"lognormal(10ms,0.5)\"");
  }
  if (!read_object(json, kShape, &result, "a time such as \"10ms\" or an object", problems)) {
    return false;
  }
  const auto needed = std::string(needed_key(result.kind));
  return json.find(needed) != nullptr || refuse(json, problems, "missing key \"" + needed + "\"");
}

constexpr Key kPartKeys[] = {
    key<&Distribution::Part::weight>("weight", kWeight),
    key<&Distribution::Part::of>("of", kDistribution).needed().not_null(),
};
constexpr Shape kPart{.name = "part", .keys = kPartKeys};

// Reads the parts of a mix, of which at least one must have a weight. Returns false after a
// problem.
bool read_mix(const JsonNode& json, std::vector<Distribution::Part>& parts, Problems& problems) {
  parts.clear();
  double total_weight = 0;
  const bool valid = read_items(json, "an array of parts", problems, [&](const JsonNode& item) {
    auto& part = parts.emplace_back();
    const bool valid_part = read_object(item, kPart, &part, "an object", problems);
    total_weight += part.weight;
    return valid_part;
  });
  if (!valid || total_weight > 0) return valid;
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

// Appends an attempt of a report: its duration, the status or the error, and the server's delay.
// Reports a problem if it lacks one of the first two.
void read_attempt(const JsonNode& json, std::vector<RecordedAttempt>& output, Problems& problems) {
  RecordedAttempt attempt;
  const auto* const duration = json.find("duration_ms");
  const auto* const status = json.find("status");
  const auto error = error_in(json.find("error"));
  if (duration == nullptr || (status == nullptr && !error)) {
    problems.error(json, "an attempt needs \"duration_ms\", and a \"status\" or an \"error\"");
    return;
  }
  // After a problem, the attempt is not used, so any value does.
  attempt.duration = milliseconds(duration, problems).value_or(Duration());
  constexpr NumberLimits kLimits{100, 599};
  if (error) {
    attempt.error = *error;
  } else {
    attempt.status = static_cast<int>(number_within(*status, kLimits, problems).value_or(200));
  }
  if (const auto* const delay = json.find("server_delay_ms")) {
    attempt.retry_after = milliseconds(delay, problems).value_or(Duration());
  }
  output.push_back(attempt);
}

// Appends the attempts of a report, or of an array of reports.
void read_report(const JsonNode& json, std::vector<RecordedAttempt>& output, Problems& problems) {
  if (json.is(JsonType::Array)) {
    for (const auto* const report : json.children) read_report(*report, output, problems);
    return;
  }
  const auto* const attempts = json.is(JsonType::Object) ? json.find("attempts") : nullptr;
  if (attempts == nullptr || !attempts->is(JsonType::Array)) {
    problems.error(json, "this is no report: it has no \"attempts\"");
    return;
  }
  for (const auto* const attempt : attempts->children) read_attempt(*attempt, output, problems);
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

// Reads a trigger, which must change something. Returns false after a problem.
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

// Returns the attempts of all reports in a file, or an empty list after a problem, which is
// reported at the node `at`.
std::vector<RecordedAttempt> read_trace(const std::string& path, const JsonNode& at,
                                        Problems& problems) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) {
    problems.error(at, "\"" + path + "\" cannot be read");
    return {};
  }
  std::vector<RecordedAttempt> attempts;
  int line = 0;
  const auto pieces = pieces_of(text);
  for (const auto piece : pieces) {
    ++line;
    if (piece.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    // Positions count within a piece, so the name includes the line.
    Problems in_piece(pieces.size() > 1 ? path + ", line " + std::to_string(line) : path);
    JsonTree tree;
    read_json(piece, tree, in_piece);
    if (tree.root != nullptr) read_report(*tree.root, attempts, in_piece);
    if (!in_piece.failed()) continue;
    problems.error(at, error_lines(in_piece.take()));
    return {};
  }
  if (attempts.empty()) problems.error(at, "\"" + path + "\" has no attempts");
  return attempts;
}

}  // namespace httpretry::simulation
