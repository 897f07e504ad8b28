#include <httpretry/policy/policy_set.hpp>

#include "endpoint_pattern.hpp"
#include "lib/core/policy/detail/warnings.hpp"
#include "policy_set_data.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace httpretry {

using namespace policy_file;

namespace {

bool is_same(const ResolvedPolicy& a, const ResolvedPolicy& b) {
  return *a.policy == *b.policy && a.endpoint == b.endpoint && a.name == b.name &&
         a.preset == b.preset;
}

// Returns the policy as a file states it. Reading it again returns the same policy.
OrderedJson write_policy(const ResolvedPolicy& resolved) {
  OrderedJson json;
  if (resolved.preset != "standard" && loaded_preset(resolved.preset) != nullptr) {
    json["preset"] = resolved.preset;
  }
  json.update(write_object(kPolicy, resolved.policy.get()));
  if (const auto* const allow = resolved.values.find("allow")) {
    json["allow"] = OrderedJson::parse(allow->json);
  }
  return json;
}

OrderedJson reference(const ResolvedPolicy& resolved) {
  return resolved.name.empty() ? write_policy(resolved) : OrderedJson(resolved.name);
}

bool is_built_in(const ResolvedPolicy& resolved) {
  return resolved.name.empty() && resolved.preset == standard().preset &&
         *resolved.policy == *standard().policy;
}

// Merges the settings of a command line into the policies of a set.
struct Overlay {
  // Changes a policy. Entries that share a policy still share it afterwards.
  void apply(ResolvedPolicy& resolved) {
    auto& result = results[{resolved.policy.get(), resolved.guard_names.get()}];
    if (!result.policy) result = make(resolved);
    resolved.policy = result.policy;
    resolved.values = result.values;
    resolved.preset = result.preset;
    resolved.guard_names = result.guard_names;
  }

  // Returns a policy with the settings. They are the top layer, and their preset is below them. The
  // policy itself is below both, and its values keep their sources.
  ResolvedPolicy make(const ResolvedPolicy& resolved) {
    const LayerOrigin before{.text = "built in", .resolved = &resolved.values};
    auto layered = built_in();
    merge_layer(layered, tree.add(write_policy(resolved)), kPolicy, before);
    if (preset != nullptr) merge_preset(layered, *preset->tree->root, preset->origin);
    merge_layer(layered, settings, kPolicy, origin);
    ValuePool pool;  // not shared, because it refers to `before`, which is local
    auto result = read_policy(layered, settings, problems, pool);
    check_policy(layered, *result.policy, settings, problems);
    result.guard_names = guard_names_of(layered, resolved.guard_names);
    result.preset = preset != nullptr ? settings.find("preset")->text : resolved.preset;
    return result;
  }

  Problems& problems;
  JsonTree& tree;
  const JsonNode& settings;
  const LayerOrigin origin;    // of the settings
  const LoadedPreset* preset;  // nullptr if the settings name none
  // The results. The names are part of the key because several places may state the same numbers.
  std::map<std::pair<const RetryPolicy*, const GuardNames*>, ResolvedPolicy> results{};
};

// Returns an error with lines such as "--set backoff.initial: …".
Error settings_error(Problems& of_settings) {
  auto problems = of_settings.take();
  for (auto& problem : problems) {
    auto key = one_line(std::exchange(problem.pointer, {})).erase(0, 1);
    std::replace(key.begin(), key.end(), '/', '.');
    if (!key.empty()) problem.file += " " + key;
  }
  return Error(Errc::InvalidRequest, error_lines(problems));
}

// Returns why an entry is less specific than the winner. An entry without a part is compared as if
// that part were "any". The text must not mention this "any", because the user did not write it.
std::string why_less(const PolicySet::Data& data, const EndpointIndex::Match& loser,
                     const EndpointIndex::Match& winner) {
  auto why = EndpointIndex::why_less(loser, winner);
  const auto& pattern = data.entries[loser.pattern].pattern;
  if (!pattern.host && why.find("its host") != std::string::npos) return "it names no host";
  if (!pattern.path && why.find("its path") != std::string::npos) return "it names no path";
  return why;
}

// Returns whether a request matches a pattern that has a single part, or none.
using Fits = std::function<bool(EndpointPattern part)>;

// Returns a text for each part of a pattern that does not match a request, for example "port 8443
// does not match 80" and "methods POST PUT do not match GET". Each header and each item of the
// query is a part. The host is not compared. `fits` tells whether the request matches a pattern.
std::vector<std::string> mismatches(const EndpointPattern& pattern, std::string_view method,
                                    const Url& url, const Fits& fits) {
  std::vector<std::string> texts;
  EndpointPattern part;  // a pattern that has only the part to compare next
  // Compares `part`, and empties it for the next one. An empty pattern always fits, so a part that
  // the entry leaves out adds no text. `part_does` is the subject and verb: "port 8443 does".
  const auto compare = [&](const std::string& part_does, std::string_view actual) {
    if (fits(std::exchange(part, EndpointPattern()))) return;
    texts.push_back(part_does + " not match " + one_line(actual));
  };
  part.path = pattern.path;
  compare("path " + one_line(pattern.path.value_or("")) + " does", url.path());
  part.methods = pattern.methods;
  const bool is_one = pattern.methods.size() == 1;
  std::string methods = is_one ? "method" : "methods";
  for (const auto& one : pattern.methods) methods += " " + one;
  compare(methods + (is_one ? " does" : " do"), method);
  part.port = pattern.port;
  const auto port = std::to_string(pattern.port.value_or(0));  // without a port, it is not shown
  compare("port " + port + " does", std::to_string(url.port()));
  part.scheme = pattern.scheme;
  compare("scheme " + one_line(pattern.scheme.value_or("")) + " does", url.scheme());
  // The request's values of headers and query items may be secret, so they are not shown.
  for (const auto& [name, value] : pattern.headers) {
    part.headers[name] = value;
    compare("header " + one_line(name + "=" + value) + " does", "the request");
  }
  for (const auto& [name, value] : pattern.query) {
    part.query[name] = value;
    compare("query " + one_line(name + "=" + value) + " does", "the request");
  }
  return texts;
}

// Returns a text such as "host api.example.com does not match app.example.com" if `host` is nearly
// one of the pattern's hosts: it has as many labels and differs in one or two letters, or it lacks
// the label for a leading "*.". Returns "" otherwise.
std::string near_host(const EndpointPattern& pattern, std::string_view host) {
  constexpr std::size_t kMostWrong = 2;
  const auto compare = [host](const std::string& expected) -> std::string {
    const auto expected_name = policy::parse_host(expected).name;  // without a leading "*."
    const auto does_not = "host " + one_line(expected) + " does not match " + one_line(host);
    auto actual_name = policy::without_trailing_dots(host);
    if (expected.starts_with("*.")) {
      if (actual_name == expected_name) return does_not + ", only names below it";
      actual_name.remove_prefix(actual_name.find('.') + 1);  // removes the label for the "*"
    }
    const bool has_as_many_labels =
        std::ranges::count(actual_name, '.') == std::ranges::count(expected_name, '.');
    const std::string_view names[] = {expected_name};
    const bool is_near = has_as_many_labels && !nearest(actual_name, names, kMostWrong).empty();
    return is_near ? does_not : std::string();
  };
  auto why = compare(pattern.host.value_or(""));
  for (std::size_t i = 0; why.empty() && i < pattern.more_hosts.size(); ++i) {
    why = compare(pattern.more_hosts[i]);
  }
  return why;
}

}  // namespace

const PolicyValue* PolicyValues::find(std::string_view key) const {
  const auto found = std::ranges::find(*this, key, &PolicyValue::key);
  return found == end() ? nullptr : &*found;
}

PolicySet::PolicySet() : PolicySet(standard()) {}

// Makes a set in which every request has this policy. Throws an exception if its values are
// invalid.
PolicySet::PolicySet(ResolvedPolicy policy) {
  auto data = std::make_shared<Data>();
  if (!policy.policy) policy.policy = standard().policy;
  check(*policy.policy);
  if (policy.preset.empty()) policy.preset = "standard";
  if (policy.identity.empty() && !policy.endpoint.empty()) {
    policy.identity = identity_of(policy.endpoint);
  }
  if (!policy.name.empty()) data->policies.push_back(policy);
  data->fallback = std::move(policy);
  data_ = std::move(data);
}

PolicySet::PolicySet(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

const ResolvedPolicy& PolicySet::find(std::string_view method, const Url& url,
                                      const Headers& headers) const {
  const auto winner = data_->index.find(method, url, headers);
  return winner ? data_->entries[*winner].resolved : data_->fallback;
}

std::shared_ptr<const ResolvedPolicy> PolicySet::find_shared(std::string_view method,
                                                             const Url& url,
                                                             const Headers& headers) const {
  return {data_, &find(method, url, headers)};
}

// Returns all entries that match a request, the winner first. Each other one has the reason why it
// is less specific.
std::vector<PolicySet::Candidate> PolicySet::candidates(std::string_view method, const Url& url,
                                                        const Headers& headers) const {
  std::vector<Candidate> candidates;
  const auto matches = data_->index.matches(method, url, headers);
  for (const auto& match : matches) {
    const auto& entry = data_->entries[match.pattern];
    const auto wins = &match == &matches.front();
    candidates.emplace_back(&entry.resolved, entry.source,
                            wins ? std::string() : why_less(*data_, match, matches.front()));
  }
  return candidates;
}

// Returns the entries that nearly match a request, each with the reason why it does not: "port 8443
// does not match 80". They are the entries with the fewest parts that do not match. If some entry
// matches, returns only those that fail by a single part other than the host. Otherwise, the host
// may also differ a little. Entries whose path matches come first.
std::vector<PolicySet::Candidate> PolicySet::near_misses(std::string_view method, const Url& url,
                                                         const Headers& headers) const {
  const bool has_winner = data_->index.find(method, url, headers).has_value();
  auto fewest_reasons = has_winner ? 1 : SIZE_MAX;
  std::vector<Candidate> misses;
  std::size_t misses_with_path = 0;  // the number of misses whose path matches; they come first
  // Returns whether the request matches the pattern, with an index of only this pattern.
  const auto fits = [&](EndpointPattern part) {
    if (!part.host) part.host = "*";  // matches any host; an index refuses a pattern without parts
    return EndpointIndex({std::move(part)}).find(method, url, headers).has_value();
  };
  for (const auto& entry : data_->entries) {
    EndpointPattern hosts;  // the entry's pattern without its other parts
    hosts.host = entry.pattern.host;
    hosts.more_hosts = entry.pattern.more_hosts;
    std::string why_host;
    if (!fits(hosts)) {
      if (!has_winner) why_host = near_host(entry.pattern, url.host());
      if (why_host.empty()) continue;
    }
    auto reasons = mismatches(entry.pattern, method, url, fits);
    if (!why_host.empty()) reasons.push_back(std::move(why_host));
    // Skips an entry that matches (without a reason), and one that is less near than others.
    if (reasons.empty() || reasons.size() > fewest_reasons) continue;
    if (reasons.size() < fewest_reasons) {  // nearer than all others so far
      fewest_reasons = reasons.size();
      misses.clear();
      misses_with_path = 0;
    }
    std::string why;
    for (const auto& reason : reasons) why += (why.empty() ? "" : "; ") + reason;
    // A reason about the path begins with "path ", and is the first one. Misses whose path matches
    // are inserted before the others, and both groups keep the order of the file.
    const bool path_fits = !reasons.front().starts_with("path ");
    const auto index = static_cast<std::ptrdiff_t>(path_fits ? misses_with_path : misses.size());
    misses.emplace(misses.begin() + index, &entry.resolved, entry.source, why);
    if (path_fits) ++misses_with_path;
  }
  return misses;
}

const ResolvedPolicy* PolicySet::named(std::string_view name) const {
  const auto found = std::ranges::find(data_->policies, name, &ResolvedPolicy::name);
  return found == data_->policies.end() ? nullptr : &*found;
}

std::size_t PolicySet::policy_count() const { return data_->policies.size(); }
std::size_t PolicySet::endpoint_count() const { return data_->entries.size(); }

const std::vector<Problem>& PolicySet::warnings() const { return data_->warnings; }

// Compares policies, entries and names, but not sources, warnings and identities.
bool operator==(const PolicySet& a, const PolicySet& b) {
  if (a.data_ == b.data_) return true;
  const auto& x = *a.data_;
  const auto& y = *b.data_;
  return is_same(x.fallback, y.fallback) &&
         std::equal(x.policies.begin(), x.policies.end(), y.policies.begin(), y.policies.end(),
                    is_same) &&
         std::equal(x.entries.begin(), x.entries.end(), y.entries.begin(), y.entries.end(),
                    [](const auto& one, const auto& other) {
                      return one.pattern == other.pattern && one.named == other.named &&
                             is_same(one.resolved, other.resolved);
                    });
}

// Returns the set as the text of a policy file. Reading it again returns an equal set.
std::string PolicySet::print() const {
  OrderedJson file = {{"version", 1}};
  if (!is_built_in(data_->fallback)) file["default"] = reference(data_->fallback);
  for (const auto& policy : data_->policies) file["policies"][policy.name] = write_policy(policy);
  for (const auto& entry : data_->entries) {
    OrderedJson json;
    if (entry.named) json["name"] = entry.resolved.endpoint;
    json["match"] = write_object(kMatch, &entry.pattern);
    json["policy"] = reference(entry.resolved);
    file["endpoints"].push_back(std::move(json));
  }
  // The file, the list of endpoints, and each endpoint have a line for each member.
  return json_text(file, /*levels=*/3) + "\n";
}

std::vector<Problem> policy_file::warnings_of(const PolicySet& set,
                                              const ResolvedPolicy& resolved) {
  const auto& all = PolicySet::Data::of(set).warnings_of_policies;
  const auto found = all.find(resolved.policy.get());
  return found == all.end() ? std::vector<Problem>() : found->second;
}

std::string policy_file::identity_of(std::string_view endpoint) {
  return "endpoint " + quoted_text(endpoint);
}

Result<PolicySet> parse_policies(std::string_view json, std::string file_name) {
  return set_of(check_policies(json, file_name));
}

Result<PolicySet> policy_file::set_of(CheckedPolicies checked) {
  if (checked.set) return *std::move(checked.set);
  return Error(Errc::InvalidRequest, error_lines(checked.problems));
}

// Returns a copy of `set` in which the settings replace the values of every policy, or an error
// with a line for each problem. A setting is a key such as "backoff.initial" and a text such as
// "2s". `origin` is how messages name the settings: "--set".
Result<PolicySet> with_settings(const PolicySet& set,
                                std::span<const std::pair<std::string, std::string>> settings,
                                std::string_view origin) {
  Problems problems{std::string(origin)};
  // Nested objects, as a policy file states them: {"backoff": {"initial": "2s"}}.
  auto json = OrderedJson::object();
  for (const auto& [key, text] : settings) set_dotted(json, key, text);
  JsonTree tree;
  const auto& layer = tree.add(json);
  read_members(layer, kPolicy, kCheckOnly, problems);  // reports unknown keys and wrong values
  if (const auto* const extends = layer.find("extends")) {
    problems.error(*extends, "a setting applies to every policy; it cannot extend one");
  }
  const LayerOrigin layer_origin{.text = std::string(origin)};
  // A setting may name a preset, which is merged below the other settings.
  Overlay overlay{problems, tree, layer, layer_origin, preset_of(layer, problems)};
  // Merges the settings into the default policy, the named policies, and the policies of the
  // entries. Each merge reports values that contradict each other.
  auto data = std::make_shared<PolicySet::Data>(PolicySet::Data::of(set));
  overlay.apply(data->fallback);
  for (auto& policy : data->policies) overlay.apply(policy);
  for (auto& entry : data->entries) overlay.apply(entry.resolved);
  if (problems.failed()) return settings_error(problems);
  return PolicySet::Data::make_set(std::move(data));
}

}  // namespace httpretry
