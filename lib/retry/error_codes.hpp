// The rules of retry_on.error_codes, and what they and `pending` read in a body.
#pragma once

#include "lib/retry/body_reader.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>
#include <httpretry/retry/server_delay.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::policy {

using Paths = std::span<const std::string_view>;

// The values in a body that the rules ask for: read at the first question, for all rules at once.
class BodyValues {
 public:
  BodyValues(const RetryOn& retry_on, std::string_view body);

  // The first value for which `fits` holds, at the first of `paths` that has one. nullptr where
  // there is none, or where the body is not JSON (XML). The rules must name the paths.
  template <class Fits>
  const BodyValue* find_json(Paths paths, Fits fits) {
    return is_json() ? find(paths, fits) : nullptr;
  }
  template <class Fits>
  const BodyValue* find_xml(Paths paths, Fits fits) {
    return is_xml() ? find(paths, fits) : nullptr;
  }
  [[nodiscard]] bool is_json() const { return first_ == '{' || first_ == '['; }
  [[nodiscard]] bool is_xml() const { return first_ == '<'; }

 private:
  template <class Fits>
  const BodyValue* find(Paths paths, Fits fits) {
    read();
    for (const auto path : paths) {
      for (const auto& value : values_) {
        if (paths_[value.path] == path && fits(value)) return &value;
      }
    }
    return nullptr;
  }
  void read();

  const RetryOn& retry_on_;
  std::string_view body_;
  char first_ = '\0';
  bool done_ = false;
  std::vector<std::string_view> paths_;
  std::vector<BodyValue> values_;
};

// A response, without its body.
struct ResponseHead {
  int status;
  const Headers& headers;
  WallTime wall_now;
};

// What a rule says about a response.
struct Verdict {
  Class cls = Class::Transient;
  std::string code;
  std::optional<ServerDelay> server_delay;  // from the body
};

// Empty where the rule does not match.
std::optional<Verdict> apply(const ErrorRule& rule, const ResponseHead& head, BodyValues& body);

// Whether a rule may match a successful response with these headers, once its body is there.
bool looks_into(const RetryOn& retry_on, int status, const Headers& headers);

// The value that makes the response a pending one.
std::optional<std::string> pending_value(const PendingRule& rule, const ResponseHead& head,
                                         BodyValues& body);

}  // namespace httpretry::policy
