// States of scope "host" belong to a host and to the place that states their block. Two places for
// one host mean two states, which is seldom meant.
#include "policy_set_data.hpp"

#include <algorithm>
#include <map>

namespace httpretry::policy_file {
namespace {

struct User {
  const ResolvedPolicy* resolved;
  const EndpointPattern* pattern;  // an empty one for the default
  const JsonNode* json;            // nullptr for the default
  std::string_view place = {};     // that states the block
};

std::vector<std::string_view> hosts_of(const EndpointPattern& pattern) {
  std::vector<std::string_view> hosts(pattern.more_hosts.begin(), pattern.more_hosts.end());
  if (pattern.host) hosts.push_back(*pattern.host);
  return hosts;
}

bool is_exact(std::string_view host) { return host.find('*') == std::string_view::npos; }

// Whether it is for any host, or for those that a "*" fits.
bool is_wide(const EndpointPattern& pattern) {
  const auto hosts = hosts_of(pattern);
  return hosts.empty() || !std::all_of(hosts.begin(), hosts.end(), is_exact);
}

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
  if (!leaves_some(*other.pattern)) return false;
  if (!wide.pattern->host) return true;
  if (!may_be_one_origin(*wide.pattern, *other.pattern)) return false;
  for (const auto host : hosts_of(*other.pattern)) {
    for (const auto own : hosts_of(*wide.pattern)) {
      if (!is_exact(own) && fits(own, host)) return true;
    }
  }
  return false;
}

// Compares the places of one kind of block. `BlockOf` gets it from a policy.
template <class BlockOf>
struct Checker {
  void add(User user) {
    if (!user.resolved->policy) return;  // it could not be read
    const auto& block = block_of(*user.resolved->policy);
    if (!block || block->scope != GuardScope::Host) return;
    if (const auto& names = user.resolved->guard_names) user.place = (*names).*place;
    users.push_back(user);
    for (const auto host : hosts_of(*user.pattern)) {
      if (is_exact(host)) add_exact(user, host);
    }
  }

  // Once for each entry: which host it would be is not known.
  void warn_of_wide() {
    constexpr std::size_t kMostCompared = 1'000'000;  // a file may be huge
    std::size_t compared = 0;
    for (const auto& wide : users) {
      if (!is_wide(*wide.pattern)) continue;
      if (compared > kMostCompared) return;
      compared += users.size();
      const auto other = std::find_if(users.begin(), users.end(), [&](const User& one) {
        return one.json != wide.json && one.place != wide.place && may_share_host(wide, one);
      });
      if (other == users.end()) continue;
      const auto whose = wide.json == nullptr ? "the default" : pointer_to(*wide.json);
      problems.warn(*other->json, "its \"" + std::string(key) + "\" and that of " + whose +
                                      " count apart, also where they are for one host");
    }
  }

  void add_exact(const User& user, std::string_view host) {
    auto& earlier = exact[host];
    const auto other = std::find_if(earlier.begin(), earlier.end(), [&](const User& one) {
      return one.place != user.place && may_be_one_origin(*one.pattern, *user.pattern);
    });
    if (other != earlier.end()) tell(user, *other, host);
    // One for each place is enough.
    const bool known = std::any_of(earlier.begin(), earlier.end(), [&](const User& one) {
      return one.place == user.place && one.pattern->port == user.pattern->port &&
             one.pattern->scheme == user.pattern->scheme;
    });
    if (!known) earlier.push_back(user);
  }

  void tell(const User& user, const User& other, std::string_view host) {
    auto message = "its \"" + std::string(key) + "\" and that of " + pointer_to(*other.json) +
                   " are both for the host " + quoted_text(host);
    if (block_of(*user.resolved->policy) == block_of(*other.resolved->policy)) {
      problems.warn(*user.json, message + ", and count apart: they stand in two places");
    } else {
      problems.error(*user.json, message +
                                     ", and differ; state it in one policy that both "
                                     "extend, or give it \"scope\": \"endpoint\"");
    }
  }

  std::string_view key;
  std::string GuardNames::*place;
  BlockOf block_of;
  Problems& problems;
  std::vector<User> users{};
  std::map<std::string_view, std::vector<User>> exact{};  // by host
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
  const EndpointPattern any;
  const auto check = [&](std::string_view key, std::string GuardNames::*place, auto block_of) {
    Checker<decltype(block_of)> checker{key, place, block_of, problems};
    checker.add({&data.fallback, &any, nullptr});
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& entry = data.entries[i];
      checker.add({&entry.resolved, &entry.pattern, entries[i]});
    }
    checker.warn_of_wide();
  };
  using Policy = const RetryPolicy&;
  check("rate", &GuardNames::rate, [](Policy of) { return of.guards.rate; });
  check("concurrency", &GuardNames::concurrency, [](Policy of) { return of.guards.concurrency; });
  check("breaker", &GuardNames::breaker, [](Policy of) { return of.guards.breaker; });
  check("hedge", &GuardNames::hedge, [](Policy of) { return of.hedge; });
}

}  // namespace httpretry::policy_file
