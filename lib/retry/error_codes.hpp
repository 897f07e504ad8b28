// The rules of retry_on.error_codes, and what they and `pending` read in a body.
#pragma once

#include "lib/retry/body_reader.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>
#include <httpretry/retry/server_delay.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::policy {

// A body, read at the first question, and then for all rules at once.
class BodyValues {
 public:
  BodyValues(const RetryOn& retry_on, std::string_view body);

  // The first value at `path` (of those that the rules name) for which `fits` holds; nullptr where
  // there is none.
  template <class Fits>
  const BodyValue* find(std::string_view path, Fits fits) {
    read();
    for (const auto& value : values_) {
      if (paths_[value.path] == path && fits(value)) return &value;
    }
    return nullptr;
  }
  [[nodiscard]] bool is_json() const { return first_ == '{' || first_ == '['; }
  [[nodiscard]] bool is_xml() const { return first_ == '<'; }

 private:
  void read();

  const RetryOn& retry_on_;
  std::string_view body_;
  char first_ = '\0';
  bool done_ = false;
  std::vector<std::string_view> paths_;
  std::vector<BodyValue> values_;
};

// An answer, as the rules see it.
struct Answer {
  int status;
  const Headers& headers;
  WallTime wall_now;
};

struct Verdict {
  Class cls = Class::Transient;
  std::string code;
  std::optional<ServerDelay> hint;  // said in the body
};

// What `rule` says of the answer; empty where it has nothing to say.
std::optional<Verdict> apply(const ErrorRule& rule, const Answer& answer, BodyValues& body);

// Whether the rules may have something to say of a good answer with these headers, once its body is
// there.
bool looks_into(const RetryOn& retry_on, int status, const Headers& headers);

// The value that makes the answer a pending one.
std::optional<std::string> pending_value(const PendingRule& rule, const Answer& answer,
                                         BodyValues& body);

}  // namespace httpretry::policy
