// PolicySet, what it returns, and the functions that read one.
#pragma once

#include <httpretry/export.hpp>

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
  // The values as they are stored.
  using Shared = std::vector<std::shared_ptr<const PolicyValue>>;
  // A forward iterator over the values.
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

// The places that set the blocks of a GuardPolicy and the hedge: "/policies/careful", `endpoint
// "orders"`, "--set". The name of a block that is not set is empty. Requests whose policies take a
// block from the same place share its state. Reloading a file changes the numbers and keeps the
// state.
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

// PolicySet holds the policies of a program and the endpoint entries that say which requests each
// applies to, usually read from one JSON file. The middleware retry() asks it for the policy of
// each request. An endpoint entry has a pattern (EndpointPattern) for the requests that it matches,
// and a policy, its own or one of the named ones.
//
// A PolicySet is immutable: copying is cheap, and any number of threads may use it at once. A
// program that wants other policies builds a new set; calls in flight keep the policy that they
// began with.
//
//   auto policies = PolicySet::load("policy.json").value();
//   Client client({redirect(), retry(policies), hedge(), guards()});
//
// A PolicySource (policy_source.hpp) provides the current set, and reads a file again when it
// changes. PolicySet::builder() (policy_builder.hpp) creates a set in C++.
class HTTPRETRY_API PolicySet {
 public:
  // Reads a policy file. If it is invalid, returns Errc::InvalidRequest; the message has one line
  // for each problem.
  [[nodiscard]] static Result<PolicySet> load(const std::string& path);
  // Returns a builder for a set that is written in C++. The result is the same as that of the
  // equivalent JSON.
  [[nodiscard]] static PolicySetBuilder builder();

  // Creates a set without endpoints that applies the preset "standard" to every request.
  PolicySet();
  // Creates a set without endpoints that applies this policy to every request. Throws
  // std::invalid_argument if `check` rejects the policy.
  explicit PolicySet(ResolvedPolicy policy);

  // Returns the policy of a request: that of the most specific entry that matches, or the default
  // policy of the set. Allocates no memory, except for a path of more than 17 segments
  // (EndpointIndex::find).
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
  // matching path come first. If no entry matches, returns those with the fewest failing
  // conditions, and a host with one or two wrong letters also counts as one. The reason names the
  // mismatch: "methods POST PUT do not match GET".
  [[nodiscard]] std::vector<Candidate> near_misses(std::string_view method, const Url& url,
                                                   const Headers& headers = Headers()) const;

  // Returns the set as a policy file: parse_policies(print(), …) equals this set. Tests are not
  // part of a set and are not printed.
  [[nodiscard]] std::string print() const;
  // Warnings about parts of the file that can never have an effect.
  [[nodiscard]] const std::vector<Problem>& warnings() const;

  friend HTTPRETRY_API bool operator==(const PolicySet& a, const PolicySet& b);

  struct Data;  // lib/core/policy/policy_set_data.hpp

 private:
  explicit PolicySet(std::shared_ptr<const Data> data);

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

}  // namespace httpretry
