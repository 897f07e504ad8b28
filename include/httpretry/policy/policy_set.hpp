// PolicySet: the policies of a program, and the endpoints that they apply to, usually read from one
// JSON file.
//
// A PolicySet is immutable: copying is cheap, and any number of threads may use it at once. A
// program that wants other policies builds a new set; calls in flight keep the policy that they
// began with.
//
//   auto policies = PolicySet::load("policy.json").value();
//   Client client({redirect(), retry(policies), hedge(), guards()});
//
// PolicySource reloads a file when it changes. PolicySet::builder() creates a set in C++. Both are
// declared below.
#pragma once

#include <httpretry/http/headers.hpp>
#include <httpretry/http/result.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/http/url.hpp>
#include <httpretry/json/problem.hpp>
#include <httpretry/policy/endpoint.hpp>
#include <httpretry/policy/policy_test.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

namespace policy_file {
struct Layer;  // JSON; lib/core/policy/policy_set_data.hpp
}

// One effective value of a policy, and where it was set.
struct HTTPRETRY_API PolicyValue {
  PolicyValue() = default;

  std::string key;     // "backoff.max_interval"
  std::string json;    // the value as JSON text
  std::string source;  // "policy.json:31:5", "preset google-drive", "built in"
};

// All values of a policy, in the order of the format's reference. Copies share them. The policies
// of one file share equal values, which are the majority.
class HTTPRETRY_API PolicyValues {
 public:
  using Shared = std::vector<std::shared_ptr<const PolicyValue>>;
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = PolicyValue;
    using difference_type = std::ptrdiff_t;
    using pointer = const PolicyValue*;
    using reference = const PolicyValue&;

    Iterator() = default;
    explicit Iterator(Shared::const_iterator at) : at_(at) {}
    const PolicyValue& operator*() const { return **at_; }
    const PolicyValue* operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Shared::const_iterator at_;
  };

  PolicyValues() : PolicyValues(Shared()) {}
  explicit PolicyValues(Shared values)
      : values_(std::make_shared<const Shared>(std::move(values))) {}

  [[nodiscard]] Iterator begin() const { return Iterator(values_->begin()); }
  [[nodiscard]] Iterator end() const { return Iterator(values_->end()); }
  [[nodiscard]] std::size_t size() const { return values_->size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // Returns nullptr if the policy has no such key. A constant backoff has no "backoff.multiplier".
  [[nodiscard]] const PolicyValue* find(std::string_view key) const;

 private:
  std::shared_ptr<const Shared> values_;
};

// Where the blocks of a GuardPolicy and the hedge are set: "/policies/careful", `endpoint
// "orders"`, "--set"; empty for a block that is not set. Requests whose policies take a block from
// the same place share its state. Reloading a file changes the numbers and keeps the state.
struct HTTPRETRY_API GuardNames {
  GuardNames() = default;
  friend bool operator==(const GuardNames&, const GuardNames&) = default;

  std::string pause;
  std::string rate;
  std::string concurrency;
  std::string breaker;
  std::string hedge;
};

// The policy of a request, and where its parts come from.
struct HTTPRETRY_API ResolvedPolicy {
  ResolvedPolicy() = default;

  std::shared_ptr<const RetryPolicy> policy;
  std::string endpoint;  // the entry's name, or its JSON pointer; empty if no entry matched
  // Identifies the entry when its file is reloaded: its name, or its pattern. Empty if no entry
  // matched.
  std::string identity;
  std::string path;    // the entry's path pattern as written; empty if it has none
  std::string name;    // of the policy; empty if it is inline or a bare preset
  std::string preset;  // the nearest preset in its chain; "standard" if none is named
  std::string source;  // where the policy is defined: "policy.json:31:5", "preset gcs", "built in"
  PolicyValues values;
  std::shared_ptr<const GuardNames> guard_names;  // nullptr if all are empty
};

class PolicySetBuilder;

class HTTPRETRY_API PolicySet {
 public:
  // Reads a policy file. Returns Errc::InvalidRequest with one line for each problem if it is
  // invalid.
  [[nodiscard]] static Result<PolicySet> load(const std::string& path);
  // Returns a builder for a set that is written in C++. The result is the same as that of the
  // equivalent JSON.
  [[nodiscard]] static PolicySetBuilder builder();

  // Creates a set without endpoints that applies the preset "standard" to every request.
  PolicySet();
  // Creates a set without endpoints that applies this policy to every request. Throws
  // std::invalid_argument if `check` rejects the policy.
  explicit PolicySet(ResolvedPolicy policy);

  // Returns the policy of a request. Takes the time and the memory of EndpointIndex::find.
  [[nodiscard]] const ResolvedPolicy& find(std::string_view method, const Url& url,
                                           const Headers& headers = Headers()) const;
  // The same, but the result keeps the set alive.
  [[nodiscard]] std::shared_ptr<const ResolvedPolicy> find_shared(
      std::string_view method, const Url& url, const Headers& headers = Headers()) const;

  // Returns the policy of that name, or nullptr.
  [[nodiscard]] const ResolvedPolicy* named(std::string_view name) const;
  // Return the number of named policies and of endpoint entries.
  [[nodiscard]] std::size_t policy_count() const;
  [[nodiscard]] std::size_t endpoint_count() const;

  // An entry that matches a request, or nearly does.
  struct HTTPRETRY_API Candidate {
    Candidate() = default;
    Candidate(const ResolvedPolicy* policy, std::string_view entry, std::string why)
        : resolved(policy), source(entry), why_lost(std::move(why)) {}

    const ResolvedPolicy* resolved = nullptr;
    std::string_view source;  // where the entry is defined: "policy.json:31:5"; a view into the set
    std::string why_lost;     // why it lost to the winner, or does not match; empty for the winner
  };
  // Returns the entries that match, the winner first, with the reason why each of the others lost
  // to it.
  [[nodiscard]] std::vector<Candidate> candidates(std::string_view method, const Url& url,
                                                  const Headers& headers = Headers()) const;
  // Returns the entries that match except for one condition other than the host. Entries with a
  // matching path come first. If no entry matches and none is that close, returns those with the
  // fewest failing conditions. The reason names the mismatch: "methods POST PUT do not match GET".
  [[nodiscard]] std::vector<Candidate> near_misses(std::string_view method, const Url& url,
                                                   const Headers& headers = Headers()) const;

  // Returns the set as a policy file: parse_policies(print(), …) equals this set. Tests are not
  // part of a set and are not printed.
  [[nodiscard]] std::string print() const;
  // Warnings about parts of the file that can never have an effect.
  [[nodiscard]] const std::vector<Problem>& warnings() const;

  friend HTTPRETRY_API bool operator==(const PolicySet& a, const PolicySet& b);

  struct Data;  // lib/core/policy/policy_set_data.hpp
  explicit PolicySet(std::shared_ptr<const Data> data);
  [[nodiscard]] const Data& data() const { return *data_; }  // for the library only

 private:
  std::shared_ptr<const Data> data_;
};

// The result of reading the text of a policy file. All problems are found at once.
struct HTTPRETRY_API CheckedPolicies {
  CheckedPolicies() = default;

  std::optional<PolicySet> set;   // empty if the problems include an error
  std::vector<Problem> problems;  // in the order of the file, including warnings
  std::vector<PolicyTest> tests;  // from "tests", not yet run; empty if there is an error
};
// Reads and checks the text of a policy file. `file_name` is used in problems and sources.
[[nodiscard]] HTTPRETRY_API CheckedPolicies check_policies(std::string_view json,
                                                           std::string_view file_name);
// The same as a Result: Errc::InvalidRequest with one line for each error.
[[nodiscard]] HTTPRETRY_API Result<PolicySet> parse_policies(std::string_view json,
                                                             std::string file_name);

// Returns a resolved preset. For an unknown name, returns Errc::InvalidRequest that names the most
// similar preset.
[[nodiscard]] HTTPRETRY_API Result<ResolvedPolicy> resolve_preset(std::string_view name);

// Returns a copy of `set` in which the settings override every policy. They form one layer that is
// merged and then checked. Keys have the form "max_attempts" or "backoff.initial". Values are JSON
// text if they parse as such, and otherwise strings. `origin` becomes the source of these values
// ("--set").
[[nodiscard]] HTTPRETRY_API Result<PolicySet> with_settings(
    const PolicySet& set, std::span<const std::pair<std::string, std::string>> settings,
    std::string_view origin);

// Returns the JSON Schema (draft-07) of a policy file.
[[nodiscard]] HTTPRETRY_API std::string_view policy_schema();

// PolicySource provides policies from a PolicySet, or from a file that is reloaded when it changes.
//
//   ClientOptions options;
//   options.policies = PolicySource::watch("policy.json").value();
//
// No thread watches the file. Instead, a call that needs its policy checks the file, at most once a
// second. If the file has changed, it is read and validated at once. If it is invalid or missing,
// the earlier policies stay in force, and the log and Observer::policies_reloaded report the
// reason. Calls in flight keep the policy that they began with.
//
// A reload keeps the state of pauses, rates, breakers and concurrency limits if their key and their
// kind stay the same (GuardNames); the new numbers apply. It also keeps the budgets of policies and
// entries that still exist under the same name or, without a name, with the same pattern. A token
// budget keeps its fill level: if 4 of 10 tokens are left, a budget of 20 has 8. Retries and hedges
// in flight still count. Policies with different numbers have separate budgets, even for the same
// host. If one of two policies that share a budget gets new numbers, each gets its own budget with
// the same fill level.
//
// To update the file, write a new file next to it and rename that. A file that is overwritten in
// place may be read while it is incomplete. It is then almost certainly rejected, and read again a
// second later.

// The result of reloading a policy file.
struct HTTPRETRY_API PolicyReload {
  PolicyReload() = default;

  std::string file;
  bool accepted = false;  // true if its policies are in force; false if the earlier ones still are
  std::vector<Problem> problems;  // the reasons for a rejection; for an accepted file, its warnings
  std::uint64_t number = 0;       // 1 for the first reload of its source
  // Budgets that changed since the file was first read, the latest last. Only the latest hundred
  // are kept.
  std::vector<ChangedBudget> changed_budgets;
};

// PolicySource is a small handle; copies watch the same file. It is thread-safe.
class HTTPRETRY_API PolicySource {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a set is a source
  PolicySource(PolicySet policies) : policies_(std::move(policies)) {}

  // Reads the file and watches it from then on. Returns the errors of PolicySet::load, and an error
  // if the path is not a regular file.
  [[nodiscard]] static Result<PolicySource> watch(std::string path);

  // The policies in force, and the latest reload (nullptr before the first).
  struct HTTPRETRY_API Current {
    explicit Current(PolicySet set) : policies(std::move(set)) {}
    PolicySet policies;
    std::shared_ptr<const PolicyReload> reload;
  };
  // Returns the policies in force. First checks the file if the last check was at least a second
  // before `now`. Allocates no memory unless the file has changed.
  [[nodiscard]] Current current(Time now) const;
  // Returns the policies in force without checking the file.
  [[nodiscard]] PolicySet in_force() const;

  // Reads the file now, even if it has not changed, and returns the policies that are then in
  // force. If the file is invalid, returns its problems, one line each, and changes nothing. A
  // source without a file returns its policies.
  Result<PolicySet> reload() const;

 private:
  class Watch;
  explicit PolicySource(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}
  PolicySet policies_;            // used if there is no file
  std::shared_ptr<Watch> watch_;  // nullptr if there is no file
};

// PolicyBuilder and PolicySetBuilder define policies in code instead of a file.
//
//   auto policies = PolicySet::builder()
//                       .policy("careful", PolicyBuilder().preset("standard").max_attempts(6))
//                       .endpoint(drive, PolicyBuilder().extends("careful").preset("google-drive"))
//                       .fallback("careful")
//                       .build()
//                       .value();
//
// A builder writes a policy file and has it parsed, so the result, the checks and the problems are
// the same as those of the file. `json` returns the file.

// PolicyBuilder defines one policy. It contains only the values that are set here, not those of the
// policies and presets below it. A value that is set twice has the last value.
class HTTPRETRY_API PolicyBuilder {
 public:
  PolicyBuilder() = default;

  PolicyBuilder& extends(std::string_view policy) { return put("extends", policy); }
  PolicyBuilder& preset(std::string_view name) { return put("preset", name); }

  PolicyBuilder& max_attempts(int sends) { return say<&RetryPolicy::max_attempts>(sends); }
  PolicyBuilder& unlimited_attempts() { return say<&RetryPolicy::max_attempts>(std::nullopt); }
  // For the following five limits, kForever means no limit.
  PolicyBuilder& max_elapsed_time(Duration limit) {
    return say<&RetryPolicy::max_elapsed_time>(limit);
  }
  PolicyBuilder& attempt_timeout(Duration limit) {
    return say<&RetryPolicy::attempt_timeout>(limit);
  }
  PolicyBuilder& response_timeout(Duration limit) {
    return say<&RetryPolicy::response_timeout>(limit);
  }
  PolicyBuilder& connect_timeout(Duration limit) {
    return say<&RetryPolicy::connect_timeout>(limit);
  }
  PolicyBuilder& stall_timeout(Duration limit) { return say<&RetryPolicy::stall_timeout>(limit); }
  PolicyBuilder& elapsed_rule(ElapsedRule rule) { return say<&RetryPolicy::elapsed_rule>(rule); }
  PolicyBuilder& backoff(const Backoff& waits) { return say<&RetryPolicy::backoff>(waits); }
  PolicyBuilder& throttle_backoff(const std::optional<Backoff>& waits) {
    return say<&RetryPolicy::throttle_backoff>(waits);
  }
  PolicyBuilder& retry_on(const RetryOn& what) { return say<&RetryPolicy::retry_on>(what); }
  PolicyBuilder& repeat(Repeat rule) { return say<&RetryPolicy::repeat>(rule); }
  // An empty name is an error when the policy is built.
  PolicyBuilder& idempotency_key(std::string_view header) { return put("idempotency_key", header); }
  PolicyBuilder& server_delay(const ServerDelayPolicy& delay) {
    return say<&RetryPolicy::server_delay>(delay);
  }
  PolicyBuilder& budget(const BudgetPolicy& limit) { return say<&RetryPolicy::budget>(limit); }
  PolicyBuilder& adaptive(bool on) { return say<&RetryPolicy::adaptive>(on); }
  PolicyBuilder& pause(const PausePolicy& rule) {
    return say<&RetryPolicy::guards, &GuardPolicy::pause>(rule);
  }
  PolicyBuilder& rate(const std::optional<RatePolicy>& limit) {
    return say<&RetryPolicy::guards, &GuardPolicy::rate>(limit);
  }
  PolicyBuilder& concurrency(const std::optional<ConcurrencyPolicy>& limits) {
    return say<&RetryPolicy::guards, &GuardPolicy::concurrency>(limits);
  }
  PolicyBuilder& breaker(const std::optional<BreakerPolicy>& rule) {
    return say<&RetryPolicy::guards, &GuardPolicy::breaker>(rule);
  }
  PolicyBuilder& priority(Priority rank) {
    return say<&RetryPolicy::guards, &GuardPolicy::priority>(rank);
  }
  PolicyBuilder& hedge(const std::optional<HedgePolicy>& rule) {
    return say<&RetryPolicy::hedge>(rule);
  }

  // Sets one key, or a key within a block, in the syntax of `--set`: set("backoff.initial",
  // "200ms"). The text is JSON if it parses as such, and otherwise a string.
  PolicyBuilder& set(std::string_view key, std::string_view text);

  // Returns the policy as it would appear in a file.
  [[nodiscard]] std::string json() const;

 private:
  friend class PolicySetBuilder;
  // Sets a member of a RetryPolicy, or a member of a member.
  template <auto... member, class Value>
  PolicyBuilder& say(const Value& value) {
    RetryPolicy policy;
    auto& field = (policy.*....*member);
    field = value;
    return say(policy, &field);
  }
  // Writes the key that corresponds to the member of `policy` at address `field`.
  PolicyBuilder& say(const RetryPolicy& policy, const void* field);
  PolicyBuilder& put(std::string_view key, std::string_view text);
  std::shared_ptr<policy_file::Layer> layer_;  // nullptr if nothing has been set
};

// PolicySetBuilder defines a set of policies and endpoints in code.
class HTTPRETRY_API PolicySetBuilder {
 public:
  PolicySetBuilder() = default;

  // Adds a named policy, which others can extend and endpoints can refer to.
  PolicySetBuilder& policy(std::string_view name, const PolicyBuilder& policy);
  // Adds an endpoint. Reports show its name.
  PolicySetBuilder& endpoint(const EndpointPattern& match, std::string_view policy,
                             std::string_view name = {});
  PolicySetBuilder& endpoint(const EndpointPattern& match, const PolicyBuilder& policy,
                             std::string_view name = {});
  // Sets the policy for requests that match no endpoint, the file's "default".
  PolicySetBuilder& fallback(std::string_view policy);
  PolicySetBuilder& fallback(const PolicyBuilder& policy);

  // Returns the policy file. The lines and columns in problems and sources refer to this text.
  [[nodiscard]] std::string json() const;
  // Return the result of parsing the file. `origin` takes the place of the file name.
  [[nodiscard]] CheckedPolicies check(std::string_view origin = "built") const;
  [[nodiscard]] Result<PolicySet> build(std::string origin = "built") const;

 private:
  std::shared_ptr<policy_file::Layer> layer_;
};

// Imports of the retry configuration of other clients: gRPC's service config, and the settings of
// AWS.
//
//   auto imported = import_grpc_service_config(text, "service_config.json").value();
//   for (const auto& problem : imported.problems) std::puts(to_string(problem).c_str());
//   save("policy.json", imported.json);
//
// Settings that have no exact counterpart here are listed in `problems`, as warnings with line and
// column; nothing is dropped silently. Text that the other client would reject is rejected with
// Errc::InvalidRequest and one line for each problem.

// The result of an import.
struct HTTPRETRY_API ImportedPolicies {
  explicit ImportedPolicies(PolicySet set) : policies(std::move(set)) {}

  PolicySet policies;
  std::string json;               // the equivalent policy file
  std::vector<Problem> problems;  // the settings that could not be carried over exactly
};

// Imports a gRPC service config: methodConfig with its retryPolicy and timeout, and
// retryThrottling. A method becomes an entry for the path /service/method, a service one for
// /service/*, and the config for all methods becomes the default. Without a default, requests to
// methods that are not named are sent once.
//
// A gRPC status code is mapped to what an HTTP server sends for it: the header grpc-status of a
// response without a body, "/error/status" in JSON, and HTTP statuses. UNAVAILABLE becomes 502,
// 503, 504, 429 and a lost connection; RESOURCE_EXHAUSTED becomes 429; DEADLINE_EXCEEDED becomes
// 504 and a timeout; and so on. All methods are repeated, as gRPC does.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_grpc_service_config(
    std::string_view json, const std::string& file_name);

// Imports retry_mode and max_attempts of one profile in an AWS config file (~/.aws/config). They
// become the policy "aws" for the hosts *.amazonaws.com, *.amazonaws.com.cn and *.api.aws.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_config(
    std::string_view text, const std::string& file_name, std::string_view profile = "default");

// Imports AWS_RETRY_MODE and AWS_MAX_ATTEMPTS in the same way, from lines "NAME=VALUE" such as
// `env` prints.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_environment(
    std::string_view lines, const std::string& name);

}  // namespace httpretry
