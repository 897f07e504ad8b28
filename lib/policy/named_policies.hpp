// The policies of a file: their names, who extends whom, and what each resolves to.
#pragma once

#include "lib/policy/policy_set_data.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy_file {

class NamedPolicies {
 public:
  explicit NamedPolicies(Problems& problems)
      : problems_(problems), origin_{problems.file(), true, nullptr} {}

  // Reads all of them: the value of "policies".
  void read(const JsonNode& policies);
  // The policy that is meant by a name, or by a policy that stands there itself.
  ResolvedPolicy referred(const JsonNode& json);
  [[nodiscard]] bool has(std::string_view name) const { return policies_.count(name) > 0; }
  void warn_of_unused();
  // In the order of the file; once.
  std::vector<ResolvedPolicy> take();

  [[nodiscard]] std::string source_of(const JsonNode& json) const { return origin_.at(json); }

 private:
  struct Named {
    enum class State : std::uint8_t { New, Open, Done };

    const JsonNode* json = nullptr;
    const JsonNode* extends = nullptr;  // the policy below, where there is one of that name
    State state = State::New;
    bool used = false;
    bool extended = false;
    Layered layered;
    ResolvedPolicy resolved;
  };

  Named* named_by(const JsonNode& reference);
  Named* extended_by(const JsonNode& policy);
  void resolve(Named& last);
  void report_cycle(const std::vector<Named*>& chain, const Named* first);
  ResolvedPolicy resolved(const JsonNode& policy, const Named* below, Layered* keep = nullptr);
  void use(Named& first);

  Problems& problems_;
  LayerOrigin origin_;
  ValuePool values_;
  std::map<std::string_view, Named> policies_;
  std::vector<Named*> in_order_;
  std::vector<std::string_view> names_;
};

}  // namespace httpretry::policy_file
