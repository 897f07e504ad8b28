#include "read.hpp"

#include <utility>

namespace httpretry {
namespace simulation {
namespace {

using namespace policy_file;
using JsonType = JsonNode::Type;
using Kind = ServerModel::Kind;
using DistributionKind = Distribution::Kind;

constexpr std::string_view kRejects[] = {"503", "429", "drop"};
constexpr std::string_view kLoads[] = {"open", "closed", "once"};
constexpr std::string_view kArrivalWords[] = {"poisson", "even"};

constexpr Number<double> kRate(0, 1e9);
constexpr Number<int> kStatus(200, 599);
constexpr Number<int> kCount(0, 1e9);
constexpr Number<int> kServers(1, 1e9);
constexpr Word<Kind> kKind{Words::up_to(Kind::Trace)};
constexpr Word<Load::Kind> kLoadKind{Words(kLoads)};
constexpr Word<Load::Arrivals> kArrivals{Words(kArrivalWords)};
constexpr Text kFile("the path of a file");

// Accepts 503 and "503", because the short form of the command line has no quotes.
bool read_reject(const JsonNode& json, ServerModel::Reject& reject, Problems& problems) {
  const auto index = Words(kRejects).find(json.text);
  reject = static_cast<ServerModel::Reject>(index);
  return index < Words(kRejects).size() ||
         refuse(json, problems,
                described(json) + R"( is not a way to reject a request: write 503, 429 or "drop")");
}
constexpr Custom<ServerModel::Reject> kReject(read_reject);

using Layers = std::vector<std::optional<PolicySet>>;

Result<PolicySet> policies_in(const JsonNode& json) {
  if (json.is(JsonType::Object)) {
    return parse_policies(R"({"version":1,"default":)" + compact(json) + "}", "the policy");
  }
  if (json.text.ends_with(".json")) return PolicySet::load(std::string(json.text));
  auto preset = resolve_preset(json.text);
  if (!preset) return std::move(preset).error();
  return PolicySet(*std::move(preset));
}

// Appends a layer with its policy. Returns false after a problem.
bool read_layer(const JsonNode& json, Layers& layers, Problems& problems) {
  if (!json.is(JsonType::Object) &&
      !expect(json, JsonType::String, "a preset, a policy file or a policy", problems)) {
    return false;
  }
  auto policies = policies_in(json);
  if (!policies) return refuse(json, problems, policies.error().message);
  layers.emplace_back(*std::move(policies));
  return true;
}

// Reads an array with a policy for each layer, or a number of layers, which use the policy that is
// simulated. Returns false after a problem.
bool read_layers(const JsonNode& json, Layers& layers, Problems& problems) {
  constexpr NumberLimits kLimits{.least = 0, .most = 8, .what = "a number or an array"};
  layers.clear();
  if (json.is(JsonType::Array)) {
    return read_items(json, "an array", problems,
                      [&](const JsonNode& item) { return read_layer(item, layers, problems); });
  }
  const auto count = number_within(json, kLimits, problems);
  layers.resize(static_cast<std::size_t>(count.value_or(0)));
  return count.has_value();
}
constexpr Custom<Layers> kLayers(read_layers);

constexpr auto kRejecting = mask(Kind::Capacity, Kind::Queue);

constexpr Key kModelKeys[] = {
    key<&ServerModel::kind>("kind", kKind).needed().not_null(),
    key<&ServerModel::network>("network", kDistribution)
        .of(mask(Kind::Fail, Kind::Capacity, Kind::Queue, Kind::Slope, Kind::Occ)),
    key<&ServerModel::probability>("probability", kShare).of(mask(Kind::Fail)),
    key<&ServerModel::status>("status", kStatus).of(mask(Kind::Fail)),
    key<&ServerModel::rate>("rate", kRate).of(mask(Kind::Capacity)),
    key<&ServerModel::window>("window", kDurationOverZero).of(mask(Kind::Capacity)),
    key<&ServerModel::reject>("reject", kReject).of(kRejecting),
    key<&ServerModel::retry_after>("retry_after", kDuration).of(kRejecting),
    key<&ServerModel::servers>("servers", kServers).of(mask(Kind::Queue)),
    key<&ServerModel::service>("service", kDistribution).of(mask(Kind::Queue)),
    key<&ServerModel::queue>("queue", kCount).of(mask(Kind::Queue)),
    key<&ServerModel::timeout_work>("timeout_work", kFlag).of(mask(Kind::Queue)),
    key<&ServerModel::base>("base", kDuration).of(mask(Kind::Slope)),
    key<&ServerModel::per_request>("per_request", kDuration).of(mask(Kind::Slope)),
    key<&ServerModel::above>("above", kCount).of(mask(Kind::Slope)),
    key<&ServerModel::file>("file", kFile).of(mask(Kind::Trace)),
    key<&ServerModel::layers>("layers", kLayers),
    key<&ServerModel::triggers>("triggers", kTriggers),
};
constinit const Shape kModel{
    .name = "model", .keys = kModelKeys, .kinds = Words::up_to(Kind::Trace)};

constexpr Key kPointKeys[] = {
    key<&Load::Point::at>("at", kDuration).needed().not_null(),
    key<&Load::Point::rate>("rate", kRate).needed().not_null(),
};
constexpr Shape kPoint{.name = "point", .keys = kPointKeys};

using LoadCurve = std::vector<Load::Point>;
// Reads the curve of a load: an array with at least one point, each with a time and a rate, in
// order of time. Returns false after a problem, which it adds to `problems`; refuse() does the
// same.
bool read_curve(const JsonNode& json, LoadCurve& curve, Problems& problems) {
  curve.clear();
  const bool valid = read_items(json, "an array of points", problems, [&](const JsonNode& item) {
    auto& point = curve.emplace_back();
    if (!read_object(item, kPoint, &point, "an object", problems)) return false;
    const bool in_order = curve.size() == 1 || curve[curve.size() - 2].at <= point.at;
    return in_order ||
           refuse(item, problems, "a point is earlier than the one before it: put them in order");
  });
  if (valid && curve.empty()) return refuse(json, problems, "there must be at least one point");
  return valid;
}
constexpr Custom<LoadCurve> kCurve(read_curve);

constexpr Key kLoadKeys[] = {
    key<&Load::kind>("kind", kLoadKind).needed().not_null(),
    key<&Load::rate>("rate", kRate).of(mask(Load::Kind::Open)),
    key<&Load::arrivals>("arrivals", kArrivals).of(mask(Load::Kind::Open)),
    key<&Load::curve>("curve", kCurve).of(mask(Load::Kind::Open)),
    key<&Load::think>("think", kDistribution).of(mask(Load::Kind::Closed)),
};
constinit const Shape kLoad{.name = "load", .keys = kLoadKeys, .kinds = Words(kLoads)};

Load read_load(const JsonNode& root, Problems& problems) {
  Load load;
  if (!read_object(root, kLoad, &load, "an object", problems)) return load;
  const auto* const rate = root.find("rate");
  if (rate != nullptr && !load.curve.empty()) {
    problems.error(*rate, "the \"curve\" sets the rate: leave out one of them");
  }
  return load;
}

// Reads the model of a server from an object such as {"kind":"queue","servers":10}. Adds what is
// wrong to `problems`; if something is, the caller must not use the result.
ServerModel read_model(const JsonNode& root, Problems& problems) {
  ServerModel model;
  if (!expect(root, JsonType::Object, "an object", problems)) return model;
  // The defaults of the other keys depend on the kind, so the kind is read first. A missing or
  // unknown kind is ignored here: read_object(), which reads all keys, reports it.
  const auto* const kind = root.find("kind");
  if (kind != nullptr && kind->is(JsonType::String)) {
    const auto all_kinds = Words::up_to(/*last=*/Kind::Trace);
    const auto index = all_kinds.find(kind->text);
    if (index < all_kinds.size()) model = ServerModel(static_cast<Kind>(index));
  }
  if (!read_object(root, kModel, &model, "an object", problems)) return model;
  if (model.kind != Kind::Trace) return model;
  if (model.file.empty()) {
    problems.error(root, "a trace needs a \"file\" with reports, as --report writes them");
  } else {
    const auto& file_node = *root.find("file");  // the position for messages about the file
    model.recorded = read_trace(model.file, file_node, problems);
  }
  return model;
}

// Parses JSON or a short form, and returns what `read(root, problems)` makes of it, or an error
// with a line for each problem.
template <class T, class Read>
Result<T> parse(std::string_view text, ShortFormat format, const std::string& file_name,
                const Read& read) {
  Problems problems(file_name);
  JsonTree tree;
  read_text(text, format, tree, problems);
  T result;
  if (tree.root != nullptr) result = read(*tree.root, problems);
  if (problems.failed()) return Error(Errc::InvalidRequest, error_lines(problems.take()));
  return result;
}

}  // namespace
}  // namespace simulation

using simulation::ShortFormat;

Result<ServerModel> parse_model(std::string_view text, const std::string& file_name) {
  return simulation::parse<ServerModel>(text, ShortFormat::WithKind, file_name,
                                        simulation::read_model);
}

Result<Load> parse_load(std::string_view text, const std::string& file_name) {
  return simulation::parse<Load>(text, ShortFormat::WithKind, file_name, simulation::read_load);
}

Result<Trigger> parse_trigger(std::string_view text, const std::string& file_name) {
  const auto read = [](const JsonNode& root, Problems& problems) {
    Trigger trigger;
    simulation::read_trigger(root, trigger, problems);
    return trigger;
  };
  return simulation::parse<Trigger>(text, ShortFormat::WithoutKind, file_name, read);
}

}  // namespace httpretry
