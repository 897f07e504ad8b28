// PolicySet: which policy a request is retried by, endpoint by endpoint, as one JSON file says it.
//
// Immutable once built: copying is cheap, and any number of threads may look up at once. A program
// that replaces it builds a new one; calls in flight keep the policy they began with.
//
//   auto policies = PolicySet::load("policy.json").value();
//   Client client({retry(policies)});
//
// A file that is read again when it changes is a PolicySource (policy_source.hpp); a set that is
// written in C++ begins with PolicySet::builder() (policy_builder.hpp).
#pragma once

#include <httpretry/result.hpp>
#include <httpretry/retry_policy.hpp>
#include <httpretry/url.hpp>

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// Something wrong with a policy file, or, as a warning, something in it that can never matter.
struct HTTPRETRY_API Problem {
  Problem();
  ~Problem();
  Problem(const Problem&);
  Problem(Problem&&) noexcept;
  Problem& operator=(const Problem&);
  Problem& operator=(Problem&&) noexcept;

  std::string file;
  int line = 0;  // from 1
  int column = 0;
  std::string pointer;  // "/policies/careful/max_attempts"
  std::string message;
  bool warning = false;
};

// "policy.json:14:9: /policies/careful/max_attemps: unknown key; did you mean \"max_attempts\"?"
[[nodiscard]] HTTPRETRY_API std::string to_string(const Problem& problem);

// One effective value of a policy and where it was written.
struct HTTPRETRY_API PolicyValue {
  PolicyValue();
  ~PolicyValue();
  PolicyValue(const PolicyValue&);
  PolicyValue(PolicyValue&&) noexcept;
  PolicyValue& operator=(const PolicyValue&);
  PolicyValue& operator=(PolicyValue&&) noexcept;

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

  PolicyValues();
  explicit PolicyValues(Shared values);
  ~PolicyValues();
  PolicyValues(const PolicyValues&);
  PolicyValues(PolicyValues&&) noexcept;
  PolicyValues& operator=(const PolicyValues&);
  PolicyValues& operator=(PolicyValues&&) noexcept;

  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  // nullptr where the policy has no such key: a constant backoff has no "backoff.multiplier".
  [[nodiscard]] const PolicyValue* find(std::string_view key) const;

 private:
  std::shared_ptr<const Shared> values_;
};

// A policy as a request gets it: the numbers, and where they came from.
struct HTTPRETRY_API ResolvedPolicy {
  ResolvedPolicy();
  ~ResolvedPolicy();
  ResolvedPolicy(const ResolvedPolicy&);
  ResolvedPolicy(ResolvedPolicy&&) noexcept;
  ResolvedPolicy& operator=(const ResolvedPolicy&);
  ResolvedPolicy& operator=(ResolvedPolicy&&) noexcept;

  std::shared_ptr<const RetryPolicy> policy;
  std::string endpoint;  // the entry's name, or its pointer; empty where no entry matched
  // What the entry is recognized by when its file has been read again: its name, or what it
  // matches. Empty where no entry matched.
  std::string identity;
  std::string name;    // of the policy; empty where it is inline or a bare preset
  std::string preset;  // the nearest preset below it: "standard" where none is named
  std::string source;  // where the policy stands: "policy.json:31:5", "preset gcs", "built in"
  PolicyValues values;
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
  // No endpoints; everything gets this.
  explicit PolicySet(ResolvedPolicy policy);

  // The policy of a request. Costs the same whatever the number of entries, and allocates nothing.
  [[nodiscard]] const ResolvedPolicy& find(std::string_view method, const Url& url) const;

  // The entries that match, the winner first, and why each of the others lost to it.
  struct HTTPRETRY_API Candidate {
    const ResolvedPolicy* resolved = nullptr;
    std::string why_lost;  // empty for the winner
  };
  [[nodiscard]] std::vector<Candidate> candidates(std::string_view method, const Url& url) const;
  // The entries that come close: of those whose host fits, the ones whose path fits too; where no
  // entry matches, the others as well. And what of each does not fit: "its methods are POST".
  [[nodiscard]] std::vector<Candidate> near_misses(std::string_view method, const Url& url) const;

  // The set as a policy file that gives the same set: parse_policies(print(), …) equals this.
  [[nodiscard]] std::string print() const;
  // What can never matter in the file it came from.
  [[nodiscard]] const std::vector<Problem>& warnings() const;

  friend HTTPRETRY_API bool operator==(const PolicySet& a, const PolicySet& b);

  struct Data;  // lib/json/policy_set_data.hpp
  explicit PolicySet(std::shared_ptr<const Data> data);
  [[nodiscard]] const Data& data() const { return *data_; }  // for the library itself

 private:
  std::shared_ptr<const Data> data_;
};

// Reads a policy file's text. All problems are found at once.
struct HTTPRETRY_API CheckedPolicies {
  CheckedPolicies();
  ~CheckedPolicies();
  CheckedPolicies(CheckedPolicies&&) noexcept;
  CheckedPolicies& operator=(CheckedPolicies&&) noexcept;

  std::optional<PolicySet> set;   // empty where there is an error among the problems
  std::vector<Problem> problems;  // in the order of the file; warnings included
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

}  // namespace httpretry
