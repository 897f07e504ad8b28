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
constinit const Shape kDistributionShape{
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

// Reads the second argument of "normal(10ms,2ms)", the deviation, or of "lognormal(10ms,0.5)", the
// sigma. Returns false if it is malformed.
bool read_second_argument(std::string_view text, Distribution& result) {
  if (result.kind == Kind::Lognormal) {
    const auto sigma = sigma_in(text);
    result.sigma = sigma.value_or(0);
    return sigma.has_value();
  }
  const auto [deviation, problem] = duration_in(text);
  result.deviation = deviation;
  return problem.empty();
}

// Parses the short form of a distribution: "10ms" (or "constant(10ms)"), "exponential(10ms)",
// "normal(10ms,2ms)" or "lognormal(10ms,0.5)". The first argument is the mean; for "lognormal", it
// is the median. Returns nullopt for any other text.
std::optional<Distribution> distribution_in(std::string_view text) {
  const auto open = text.find('(');
  if (open == std::string_view::npos) {  // only a time
    const auto [value, problem] = duration_in(text);
    if (!problem.empty()) return std::nullopt;
    return Distribution(value);
  }
  if (text.back() != ')') return std::nullopt;
  const auto kinds = Words::up_to(/*last=*/Kind::Lognormal);  // the others have no short form
  const auto kind_index = kinds.find(text.substr(0, open));
  if (kind_index == kinds.size()) return std::nullopt;  // not one of these words
  Distribution result;
  result.kind = static_cast<Kind>(kind_index);
  const auto arguments = text.substr(open + 1, text.size() - open - 2);  // between the parentheses
  const auto comma = arguments.find(',');
  const bool has_second = comma != std::string_view::npos;
  const bool needs_second = result.kind == Kind::Normal || result.kind == Kind::Lognormal;
  if (has_second != needs_second) return std::nullopt;
  const auto [mean, problem] = duration_in(trimmed(arguments.substr(0, comma)));
  if (!problem.empty()) return std::nullopt;
  result.mean = mean;
  if (needs_second && !read_second_argument(trimmed(arguments.substr(comma + 1)), result)) {
    return std::nullopt;
  }
  return result;
}

// Reads a distribution of times, such as that of a server's response times: a plain time such as
// "10ms", a text in the short form such as "exponential(10ms)", or an object such as
// {"kind":"exponential","mean":"10ms"}. If it is none of these, adds a problem and returns false.
bool read_distribution(const JsonNode& json, Distribution& result, Problems& problems) {
  result = {};
  if (json.is(JsonType::String)) {
    if (auto parsed = distribution_in(json.text)) {
      result = *std::move(parsed);
      return true;
    }
    // refuse() adds the problem, with the position of `json`, and returns false.
    return refuse(json, problems,
                  described(json) +
                      " is neither a time nor a distribution: write it like \"10ms\", "
                      "\"exponential(10ms)\", \"normal(10ms,2ms)\" or \"lognormal(10ms,0.5)\"");
  }
  // read_object() adds its problems itself.
  if (!read_object(json, kDistributionShape, &result, "a time such as \"10ms\" or an object",
                   problems)) {
    return false;
  }
  // Each kind has one key without which it has no meaning, such as "mean" in the example. The other
  // keys, "deviation" and "sigma", have the default 0.
  const auto needed = std::string(needed_key(result.kind));
  if (json.find(needed) != nullptr) return true;
  return refuse(json, problems, "missing key \"" + needed + "\"");
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

// Reads a time of a report, which is a number of milliseconds. Returns nullopt after a problem.
std::optional<Duration> report_time(const JsonNode* json, Problems& problems) {
  // With 0 parts, the number may have any fraction.
  constexpr NumberLimits kLimits{.least = 0, .most = 1e12, .parts = 0, .what = "milliseconds"};
  const auto value = number_within(*json, kLimits, problems);
  if (!value) return std::nullopt;
  return Duration(std::chrono::duration<double, std::milli>(*value));
}

constexpr Errc kTransportErrors[] = {Errc::Resolve, Errc::Connect, Errc::Tls,     Errc::Timeout,
                                     Errc::Send,    Errc::Receive, Errc::Protocol};

// Returns the error of a report if it is a transport error. Returns nullopt if it is of another
// kind, or if there is none (`error` is nullptr).
std::optional<Errc> transport_error_in(const JsonNode* error) {
  const auto* const kind = error == nullptr ? nullptr : error->find("kind");
  if (kind == nullptr) return std::nullopt;
  for (const auto code : kTransportErrors) {
    if (to_string(code) == kind->text) return code;
  }
  return std::nullopt;
}

// Reads an attempt of a recorded report, such as {"duration_ms":12,"status":503,
// "server_delay_ms":1000}, and appends it to `output`. If it has a transport error, its status is
// not used. Adds a problem if the duration is missing, or if there is neither a status nor a
// transport error. After a problem, read_trace drops all attempts.
void read_attempt(const JsonNode& json, std::vector<RecordedAttempt>& output, Problems& problems) {
  RecordedAttempt attempt;
  const auto* const duration = json.find("duration_ms");
  const auto* const status = json.find("status");
  const auto error = transport_error_in(json.find("error"));
  if (duration == nullptr || (status == nullptr && !error)) {
    problems.error(json, "an attempt needs \"duration_ms\", and a \"status\" or an \"error\"");
    return;
  }
  // The functions below add a problem for a value that they cannot use. The attempt is then
  // dropped, so the values in value_or() do not matter.
  attempt.duration = report_time(duration, problems).value_or(Duration());
  constexpr NumberLimits kStatusLimits{100, 599};
  if (error) {
    attempt.error = *error;
  } else {
    const auto number = number_within(*status, kStatusLimits, problems);
    attempt.status = static_cast<int>(number.value_or(200));
  }
  if (const auto* const delay = json.find("server_delay_ms")) {  // such as a Retry-After
    attempt.retry_after = report_time(delay, problems).value_or(Duration());
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
    problems.error(json, "this is not a report: it has no \"attempts\"");
    return;
  }
  for (const auto* const attempt : attempts->children) read_attempt(*attempt, output, problems);
}

// Splits a file of reports into JSON texts. If the first line is a complete value, each line is
// one; otherwise the whole file is one.
std::vector<std::string_view> json_texts_of(std::string_view text) {
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

// Returns the recorded attempts in a file of reports, which is one JSON text, or has one in each
// line. After a problem, returns an empty list. `file_node` is the "file" of the model that names
// the path; all problems are reported at its position.
std::vector<RecordedAttempt> read_trace(const std::string& path, const JsonNode& file_node,
                                        Problems& problems) {
  std::ifstream file(path, std::ios::binary);
  const std::string contents{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) {
    problems.error(file_node, "\"" + path + "\" cannot be read");
    return {};
  }
  std::vector<RecordedAttempt> attempts;
  int line = 0;
  const auto texts = json_texts_of(contents);  // the whole file, or its lines
  for (const auto text : texts) {
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;  // an empty line
    // Messages count positions within `text`, so the name in front of them includes the line.
    Problems in_text(texts.size() > 1 ? path + ", line " + std::to_string(line) : path);
    JsonTree tree;
    read_json(text, tree, in_text);
    if (tree.root != nullptr) read_report(*tree.root, attempts, in_text);
    if (!in_text.failed()) continue;
    problems.error(file_node, error_lines(in_text.take()));
    return {};
  }
  if (attempts.empty()) problems.error(file_node, "\"" + path + "\" has no attempts");
  return attempts;
}

}  // namespace httpretry::simulation
