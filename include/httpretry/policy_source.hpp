// PolicySource: where policies come from: a PolicySet, or a file that is read again when it
// changes.
//
//   ClientOptions options;
//   options.middlewares = {retry()};
//   options.policies = PolicySource::watch("policy.json").value();
//
// No thread watches a file: a call that asks for its policy looks at it, at most once a second. A
// file that is found changed is read and checked there and then. One that is bad, or gone, changes
// nothing: the policies read before stay in force, the log says why, and so does
// Observer::policies_reloaded. Calls in flight keep the policy they began with, and budgets are
// kept for all that is still there under the same name, or, without a name, with the same pattern.
//
// Write the file beside its place and rename it: a file that is written in place may be read half
// written. That is refused, almost certainly, and mended a second later, but why have it.
#pragma once

#include <httpretry/policy_set.hpp>
#include <httpretry/time.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace httpretry {

// What came of reading a file again.
struct HTTPRETRY_API PolicyReload {
  PolicyReload();
  ~PolicyReload();
  PolicyReload(const PolicyReload&);
  PolicyReload(PolicyReload&&) noexcept;
  PolicyReload& operator=(const PolicyReload&);
  PolicyReload& operator=(PolicyReload&&) noexcept;

  std::string file;
  bool accepted = false;          // its policies are in force; else those from before are
  std::vector<Problem> problems;  // why not; of an accepted file, its warnings
  std::uint64_t number = 0;       // 1 for the first of its source
};

// A small handle: copies share what they watch. Safe to use from many threads at once.
class HTTPRETRY_API PolicySource {
 public:
  PolicySource(PolicySet policies);  // NOLINT(google-explicit-constructor): a set is a source
  ~PolicySource();
  PolicySource(const PolicySource&);
  PolicySource(PolicySource&&) noexcept;
  PolicySource& operator=(const PolicySource&);
  PolicySource& operator=(PolicySource&&) noexcept;

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
  // Looks at the file where the last look is a second ago by the caller's clock. Without a change
  // it takes no lock and allocates nothing.
  [[nodiscard]] Current current(Time now) const;

  // Reads the file now, changed or not. The policies that are in force then; where the file is bad,
  // its problems, a line each, and nothing has changed. A source without a file has nothing to
  // read.
  Result<PolicySet> reload() const;

 private:
  class Watch;
  explicit PolicySource(std::shared_ptr<Watch> watch);
  std::variant<PolicySet, std::shared_ptr<Watch>> source_;
};

namespace detail {

// Through spdlog: at level info what was accepted, at level error what was not, and why.
void log_policy_reload(const PolicyReload& reload);

}  // namespace detail
}  // namespace httpretry
