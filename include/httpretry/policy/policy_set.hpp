// PolicySet: which policy a request is retried by, endpoint by endpoint, as one JSON file says it.
//
// Immutable once built: copying is cheap, and any number of threads may look up at once. A program
// that replaces it builds a new one; calls in flight keep the policy they began with.
//
//   auto policies = PolicySet::load("policy.json").value();
//   Client client({redirect(), retry(policies), hedge(), guards()});
//
// A file that is read again when it changes is a PolicySource; a set that is written in C++ begins
// with PolicySet::builder(). Both are below.
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

// One effective value of a policy and where it was written.
struct HTTPRETRY_API PolicyValue {
  PolicyValue() = default;

  std::string key;     // "backoff.max_interval"
  std::string json;    // its value, as JSON text
  std::string source;  // "policy.json:31:5", "preset google-drive", "built in"
};

// All of a policy's, in the order of the format's reference. Copies share them, and policies of one
// file share those that are the same: most are.
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
  // nullptr where the policy has no such key: a constant backoff has no "backoff.multiplier".
  [[nodiscard]] const PolicyValue* find(std::string_view key) const;

 private:
  std::shared_ptr<const Shared> values_;
};

// Where the blocks of a GuardPolicy are stated: "/policies/careful", `endpoint "orders"`, "--set";
// empty where nobody has stated them. Requests whose policies have a block from one place share its
// state, and a file that is read again changes the numbers, not the state.
struct HTTPRETRY_API GuardNames {
  GuardNames() = default;
  friend bool operator==(const GuardNames&, const GuardNames&) = default;

  std::string pause;
  std::string rate;
  std::string concurrency;
  std::string breaker;
  std::string hedge;
};

// A policy as a request gets it: the numbers, and where they came from.
struct HTTPRETRY_API ResolvedPolicy {
  ResolvedPolicy() = default;

  std::shared_ptr<const RetryPolicy> policy;
  std::string endpoint;  // the entry's name, or its pointer; empty where no entry matched
  // What the entry is recognized by when its file has been read again: its name, or what it
  // matches. Empty where no entry matched.
  std::string identity;
  std::string path;    // that the entry matches, as it was written; empty where it names none
  std::string name;    // of the policy; empty where it is inline or a bare preset
  std::string preset;  // the nearest preset below it: "standard" where none is named
  std::string source;  // where the policy stands: "policy.json:31:5", "preset gcs", "built in"
  PolicyValues values;
  std::shared_ptr<const GuardNames> guard_names;  // nullptr where all are empty
};

class PolicySetBuilder;

class HTTPRETRY_API PolicySet {
 public:
  // Reads a policy file. Errc::InvalidRequest with a line for each problem.
  [[nodiscard]] static Result<PolicySet> load(const std::string& path);
  // Begins a set that is written in C++: what it gives is what the same JSON gives.
  [[nodiscard]] static PolicySetBuilder builder();

  // No endpoints; everything gets `standard`.
  PolicySet();
  // No endpoints; everything gets this. Throws std::invalid_argument for a policy that `check`
  // refuses.
  explicit PolicySet(ResolvedPolicy policy);

  // The policy of a request. Costs and allocates what EndpointIndex::find does.
  [[nodiscard]] const ResolvedPolicy& find(std::string_view method, const Url& url,
                                           const Headers& headers = Headers()) const;
  // The same, which keeps the set alive.
  [[nodiscard]] std::shared_ptr<const ResolvedPolicy> find_shared(
      std::string_view method, const Url& url, const Headers& headers = Headers()) const;

  // The policy of that name; nullptr if there is none.
  [[nodiscard]] const ResolvedPolicy* named(std::string_view name) const;
  // How many policies with names there are, and how many entries.
  [[nodiscard]] std::size_t policy_count() const;
  [[nodiscard]] std::size_t endpoint_count() const;

  // The entries that match, the winner first, and why each of the others lost to it.
  struct HTTPRETRY_API Candidate {
    Candidate() = default;
    Candidate(const ResolvedPolicy* policy, std::string_view entry, std::string why)
        : resolved(policy), source(entry), why_lost(std::move(why)) {}

    const ResolvedPolicy* resolved = nullptr;
    std::string_view source;  // where the entry stands: "policy.json:31:5"; lives in the set
    std::string why_lost;     // empty for the winner
  };
  [[nodiscard]] std::vector<Candidate> candidates(std::string_view method, const Url& url,
                                                  const Headers& headers = Headers()) const;
  // The entries that would match but for one condition, which is not their host; those whose path
  // fits are first. Where no entry matches and none is that close: those that fail the fewest. And
  // what does not match: "methods POST PUT do not match GET".
  [[nodiscard]] std::vector<Candidate> near_misses(std::string_view method, const Url& url,
                                                   const Headers& headers = Headers()) const;

  // The set as a policy file that gives the same set: parse_policies(print(), …) equals this. Tests
  // are no part of a set, so they are not printed.
  [[nodiscard]] std::string print() const;
  // What can never matter in the file it came from.
  [[nodiscard]] const std::vector<Problem>& warnings() const;

  friend HTTPRETRY_API bool operator==(const PolicySet& a, const PolicySet& b);

  struct Data;  // lib/core/policy/policy_set_data.hpp
  explicit PolicySet(std::shared_ptr<const Data> data);
  [[nodiscard]] const Data& data() const { return *data_; }  // for the library itself

 private:
  std::shared_ptr<const Data> data_;
};

// Reads a policy file's text. All problems are found at once.
struct HTTPRETRY_API CheckedPolicies {
  CheckedPolicies() = default;

  std::optional<PolicySet> set;   // empty where there is an error among the problems
  std::vector<Problem> problems;  // in the order of the file; warnings included
  std::vector<PolicyTest> tests;  // under "tests"; not run here. Empty where there is an error
};
[[nodiscard]] HTTPRETRY_API CheckedPolicies check_policies(std::string_view json,
                                                           std::string_view file_name);
// The same, as one result: Errc::InvalidRequest with a line for each error.
[[nodiscard]] HTTPRETRY_API Result<PolicySet> parse_policies(std::string_view json,
                                                             std::string file_name);

// A preset, resolved. Errc::InvalidRequest for an unknown name, with the nearest one.
[[nodiscard]] HTTPRETRY_API Result<ResolvedPolicy> resolve_preset(std::string_view name);

// Settings laid over every policy of a set, as one layer that is merged and then checked: keys as
// "max_attempts" or "backoff.initial", values as JSON text where that parses, else as a string.
// `origin` is what the values then name as their source ("--set").
[[nodiscard]] HTTPRETRY_API Result<PolicySet> with_settings(
    const PolicySet& set, std::span<const std::pair<std::string, std::string>> settings,
    std::string_view origin);

// The JSON Schema (draft-07) of the file.
[[nodiscard]] HTTPRETRY_API std::string_view policy_schema();

// PolicySource: where policies come from: a PolicySet, or a file that is read again when it
// changes.
//
//   ClientOptions options;
//   options.policies = PolicySource::watch("policy.json").value();
//
// No thread watches a file: a call that asks for its policy looks at it, at most once a second. A
// file that is found changed is read and checked there and then. One that is bad, or gone, changes
// nothing: the policies read before stay in force, the log says why, and so does
// Observer::policies_reloaded. Calls in flight keep the policy they began with.
//
// States are kept where their key and their kind stay, and the new numbers count: pauses, rates,
// breakers and limits of concurrent sends (GuardNames); and the budgets of all that is still there
// under the same name, or, without a name, with the same pattern. A budget of tokens is as full as
// it was: of 10 tokens of which 4 are left, 20 become 8. What was under way still counts. Policies
// with different numbers have separate budgets, also for one host. So where one of two that share
// a budget gets other numbers, each has one of which as much is left.
//
// Write the file beside its place and rename it: a file that is written in place may be read half
// written. It is then almost certainly refused, and read again a second later.

// What came of reading a file again.
struct HTTPRETRY_API PolicyReload {
  PolicyReload() = default;

  std::string file;
  bool accepted = false;          // its policies are in force; else those from before are
  std::vector<Problem> problems;  // why not; of an accepted file, its warnings
  std::uint64_t number = 0;       // 1 for the first of its source
  // Since the first reading; the latest last. Only the latest hundred are kept.
  std::vector<ChangedBudget> changed_budgets;
};

// A small handle: copies share what they watch. Safe to use from many threads at once.
class HTTPRETRY_API PolicySource {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a set is a source
  PolicySource(PolicySet policies) : policies_(std::move(policies)) {}

  // Reads the file, and looks at it again from then on. The errors of PolicySet::load; and what is
  // no regular file cannot be watched.
  [[nodiscard]] static Result<PolicySource> watch(std::string path);

  // The policies in force, and the reload that had to do with them last (nullptr where there was
  // none).
  struct HTTPRETRY_API Current {
    explicit Current(PolicySet set) : policies(std::move(set)) {}
    PolicySet policies;
    std::shared_ptr<const PolicyReload> reload;
  };
  // Looks at the file if the last look was a second ago by the caller's clock. Allocates nothing
  // unless the file has changed.
  [[nodiscard]] Current current(Time now) const;
  // The policies in force, without a look at the file.
  [[nodiscard]] PolicySet in_force() const;

  // Reads the file now, changed or not. The policies that are in force then; where the file is bad,
  // its problems, a line each, and nothing has changed. A source without a file has nothing to
  // read.
  Result<PolicySet> reload() const;

 private:
  class Watch;
  explicit PolicySource(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}
  PolicySet policies_;            // of a source without a file
  std::shared_ptr<Watch> watch_;  // nullptr: there is no file
};

// PolicyBuilder and PolicySetBuilder: policies for programs that prefer code to a file.
//
//   auto policies = PolicySet::builder()
//                       .policy("careful", PolicyBuilder().preset("standard").max_attempts(6))
//                       .endpoint(drive, PolicyBuilder().extends("careful").preset("google-drive"))
//                       .fallback("careful")
//                       .build()
//                       .value();
//
// A builder writes a policy file and has it read: what it gives is what that file gives, with the
// same checks and the same problems. `json` shows the file.

// One policy: what it says, and nothing of what lies below it. Said twice, the last counts.
class HTTPRETRY_API PolicyBuilder {
 public:
  PolicyBuilder() = default;

  PolicyBuilder& extends(std::string_view policy) { return put("extends", policy); }
  PolicyBuilder& preset(std::string_view name) { return put("preset", name); }

  PolicyBuilder& max_attempts(int sends) { return say<&RetryPolicy::max_attempts>(sends); }
  PolicyBuilder& unlimited_attempts() { return say<&RetryPolicy::max_attempts>(std::nullopt); }
  // For this and the next four, kForever is no limit.
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
  // An empty name is an error when the policy is read.
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

  // One key, or one of a block's, as `--set` has it: set("backoff.initial", "200ms"). The text is
  // JSON where it parses, else a string.
  PolicyBuilder& set(std::string_view key, std::string_view text);

  // As it stands in a file.
  [[nodiscard]] std::string json() const;

 private:
  friend class PolicySetBuilder;
  // Says a member of a RetryPolicy, or a member of a member.
  template <auto... member, class Value>
  PolicyBuilder& say(const Value& value) {
    RetryPolicy policy;
    auto& field = (policy.*....*member);
    field = value;
    return say(policy, &field);
  }
  // Writes the key whose member of `policy` is at `field`.
  PolicyBuilder& say(const RetryPolicy& policy, const void* field);
  PolicyBuilder& put(std::string_view key, std::string_view text);
  std::shared_ptr<policy_file::Layer> layer_;  // nullptr: nothing is said yet
};

class HTTPRETRY_API PolicySetBuilder {
 public:
  PolicySetBuilder() = default;

  // A policy with a name, for others to extend and for entries to refer to.
  PolicySetBuilder& policy(std::string_view name, const PolicyBuilder& policy);
  // An entry; the name is for reports.
  PolicySetBuilder& endpoint(const EndpointPattern& match, std::string_view policy,
                             std::string_view name = {});
  PolicySetBuilder& endpoint(const EndpointPattern& match, const PolicyBuilder& policy,
                             std::string_view name = {});
  // Where no entry matches: the "default" of the file.
  PolicySetBuilder& fallback(std::string_view policy);
  PolicySetBuilder& fallback(const PolicyBuilder& policy);

  // The file. Lines and columns of problems and sources are those of this text.
  [[nodiscard]] std::string json() const;
  // `origin` stands where the name of a file would.
  [[nodiscard]] CheckedPolicies check(std::string_view origin = "built") const;
  [[nodiscard]] Result<PolicySet> build(std::string origin = "built") const;

 private:
  std::shared_ptr<policy_file::Layer> layer_;
};

// Policies from what other clients are configured with: gRPC's service config, and the retry
// settings of AWS.
//
//   auto imported = import_grpc_service_config(text, "service_config.json").value();
//   for (const auto& problem : imported.problems) std::puts(to_string(problem).c_str());
//   save("policy.json", imported.json);
//
// What has no counterpart here, or only a similar one, is named in `problems`, as warnings with
// line and column; nothing is dropped in silence. Text that the other client would refuse is
// refused here: Errc::InvalidRequest, with a line for each problem.

struct HTTPRETRY_API ImportedPolicies {
  explicit ImportedPolicies(PolicySet set) : policies(std::move(set)) {}

  PolicySet policies;
  std::string json;               // the policy file that says the same
  std::vector<Problem> problems;  // what could not be carried over as it was
};

// A gRPC service config: methodConfig, its retryPolicy and timeout, and retryThrottling. A method
// becomes an entry for the path /service/method, a service one for /service/*, the config of all
// methods the default; without one, what is not named is sent once.
//
// A status code becomes what an HTTP server says in its place: the header grpc-status of an answer
// without a body, "/error/status" in JSON, and the HTTP statuses (UNAVAILABLE: 502, 503, 504, 429,
// and a lost connection; RESOURCE_EXHAUSTED: 429; DEADLINE_EXCEEDED: 504, and a timeout; …).
// Methods are repeated whatever they are, as gRPC does.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_grpc_service_config(
    std::string_view json, const std::string& file_name);

// retry_mode and max_attempts of one profile in an AWS config file (~/.aws/config). They become the
// policy "aws", for the hosts *.amazonaws.com, *.amazonaws.com.cn and *.api.aws.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_config(
    std::string_view text, const std::string& file_name, std::string_view profile = "default");

// The same of AWS_RETRY_MODE and AWS_MAX_ATTEMPTS, in lines "NAME=VALUE" such as `env` prints.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_environment(
    std::string_view lines, const std::string& name);

}  // namespace httpretry
