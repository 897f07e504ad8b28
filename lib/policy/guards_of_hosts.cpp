// States of scope "host" belong to a host and to the place that states their block. Two places for
// one host mean two states, which is seldom meant.
#include "lib/policy/policy_set_data.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <type_traits>

namespace httpretry::policy_file {
namespace {

struct Block {
  std::string_view key;
  std::string GuardNames::*place;
  bool (*of_host)(const RetryPolicy& policy);
  bool (*same)(const RetryPolicy& one, const RetryPolicy& other);
};

template <auto Member>
const auto& block_of(const RetryPolicy& policy) {
  if constexpr (std::is_member_object_pointer_v<decltype(Member)> &&
                std::is_invocable_v<decltype(Member), const RetryPolicy&>) {
    return policy.*Member;
  } else {
    return policy.guards.*Member;
  }
}
template <auto Member>
bool of_host(const RetryPolicy& policy) {
  const auto& block = block_of<Member>(policy);
  return block && block->scope == GuardScope::Host;
}
template <auto Member>
bool same(const RetryPolicy& one, const RetryPolicy& other) {
  return block_of<Member>(one) == block_of<Member>(other);
}
template <auto Member>
constexpr Block block(std::string_view key, std::string GuardNames::*place) {
  return {key, place, of_host<Member>, same<Member>};
}

constexpr std::array<Block, 4> kBlocks{{
    block<&GuardPolicy::rate>("rate", &GuardNames::rate),
    block<&GuardPolicy::concurrency>("concurrency", &GuardNames::concurrency),
    block<&GuardPolicy::breaker>("breaker", &GuardNames::breaker),
    block<&RetryPolicy::hedge>("hedge", &GuardNames::hedge),
}};

struct User {
  const ResolvedPolicy* resolved;
  const EndpointPattern* pattern;  // nullptr: the default
  const JsonNode* json;            // likewise
};

const std::string& place(const User& user, const Block& block) {
  static const std::string nowhere;
  const auto& names = user.resolved->guard_names;
  return names ? *names.*(block.place) : nowhere;
}

std::vector<std::string_view> hosts_of(const EndpointPattern& pattern) {
  std::vector<std::string_view> hosts(pattern.more_hosts.begin(), pattern.more_hosts.end());
  if (pattern.host) hosts.push_back(*pattern.host);
  return hosts;
}

bool is_exact(std::string_view host) { return host.find('*') == std::string_view::npos; }

// Whether one of the requests to its hosts may be another entry's.
bool leaves_some(const EndpointPattern& pattern) {
  return pattern.path || !pattern.methods.empty() || !pattern.headers.empty() ||
         !pattern.query.empty();
}

bool may_be_one_origin(const EndpointPattern& a, const EndpointPattern& b) {
  return (!a.port || !b.port || *a.port == *b.port) &&
         (!a.scheme || !b.scheme || *a.scheme == *b.scheme);
}

// "*.example.com" fits "a.example.com" and "*.b.example.com"; "*" in the middle fits anything.
bool fits(std::string_view wide, std::string_view other) {
  const auto ending = wide.substr(wide.rfind('*') + 1);
  return other.ends_with(ending) || ending.ends_with(other.substr(other.rfind('*') + 1));
}

bool may_share_host(const User& wide, const User& other) {
  if (other.pattern == nullptr || !leaves_some(*other.pattern)) return false;
  if (wide.pattern == nullptr || !wide.pattern->host) return true;
  if (!may_be_one_origin(*wide.pattern, *other.pattern)) return false;
  for (const auto host : hosts_of(*other.pattern)) {
    for (const auto own : hosts_of(*wide.pattern)) {
      if (!is_exact(own) && fits(own, host)) return true;
    }
  }
  return false;
}

class Checker {
 public:
  Checker(const Block& block, Problems& problems) : block_(block), problems_(problems) {}

  void add(const User& user) {
    const auto& policy = user.resolved->policy;  // nullptr where it could not be read
    if (!policy || !block_.of_host(*policy)) return;
    users_.push_back(user);
    if (user.pattern != nullptr && user.pattern->host) {
      for (const auto host : hosts_of(*user.pattern)) {
        if (is_exact(host)) add_exact(user, host);
      }
    }
  }

  // Once for each entry: which host it would be is not known.
  void warn_of_wide() {
    for (const auto& wide : users_) {
      const bool any = wide.pattern == nullptr || !wide.pattern->host;
      if (!any && !has_wildcard(*wide.pattern)) continue;
      if (compared_ > kMostCompared) return;
      compared_ += users_.size();
      const auto other = std::find_if(users_.begin(), users_.end(), [&](const User& one) {
        return one.json != wide.json && place(one, block_) != place(wide, block_) &&
               may_share_host(wide, one);
      });
      if (other == users_.end()) continue;
      const auto whose = wide.json == nullptr ? "the default" : pointer_to(*wide.json);
      problems_.warn(*other->json, "its \"" + std::string(block_.key) + "\" and that of " + whose +
                                       " count apart, also where they are for one host");
    }
  }

 private:
  static bool has_wildcard(const EndpointPattern& pattern) {
    const auto hosts = hosts_of(pattern);
    return !std::all_of(hosts.begin(), hosts.end(), is_exact);
  }

  void add_exact(const User& user, std::string_view host) {
    auto& earlier = exact_[host];
    const auto other = std::find_if(earlier.begin(), earlier.end(), [&](const User& one) {
      return place(one, block_) != place(user, block_) &&
             may_be_one_origin(*one.pattern, *user.pattern);
    });
    if (other != earlier.end()) tell(user, *other, host);
    // One for each place is enough.
    const bool known = std::any_of(earlier.begin(), earlier.end(), [&](const User& one) {
      return place(one, block_) == place(user, block_) && one.pattern->port == user.pattern->port &&
             one.pattern->scheme == user.pattern->scheme;
    });
    if (!known) earlier.push_back(user);
  }

  void tell(const User& user, const User& other, std::string_view host) {
    auto message = "its \"" + std::string(block_.key) + "\" and that of " +
                   pointer_to(*other.json) + " are both for the host " + quoted_text(host);
    if (block_.same(*user.resolved->policy, *other.resolved->policy)) {
      problems_.warn(*user.json, message + ", and count apart: they stand in two places");
    } else {
      problems_.error(*user.json, message +
                                      ", and differ; state it in one policy that both "
                                      "extend, or give it \"scope\": \"endpoint\"");
    }
  }

  static constexpr std::size_t kMostCompared = 1'000'000;  // a file may be huge

  const Block& block_;
  Problems& problems_;
  std::size_t compared_ = 0;
  std::vector<User> users_;
  std::map<std::string_view, std::vector<User>> exact_;  // by host
};

}  // namespace

void name_guards(ResolvedPolicy& resolved, const JsonNode& entry) {
  if (!resolved.guard_names) return;
  const auto own = pointer_to(entry) + "/policy";
  auto names = *resolved.guard_names;
  for (auto* const name :
       {&names.pause, &names.rate, &names.concurrency, &names.breaker, &names.hedge}) {
    if (*name == own) *name = resolved.identity;
  }
  if (names != *resolved.guard_names) {
    resolved.guard_names = std::make_shared<const GuardNames>(std::move(names));
  }
}

void check_guards_of_hosts(const PolicySet::Data& data, std::span<const JsonNode* const> entries,
                           Problems& problems) {
  for (const auto& block : kBlocks) {
    Checker checker(block, problems);
    checker.add({&data.fallback, nullptr, nullptr});
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& entry = data.entries[i];
      checker.add({&entry.resolved, &entry.pattern, entries[i]});
    }
    checker.warn_of_wide();
  }
}

}  // namespace httpretry::policy_file
