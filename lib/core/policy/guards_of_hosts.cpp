// Checks blocks of scope "host". Their state belongs to a host and to the place that states the
// block. Two places for one host therefore mean two states, which users rarely intend.
#include "policy_set_data.hpp"

#include <algorithm>
#include <map>

namespace httpretry::detail::policy_file {
namespace {

// An entry of the file, or the default, that uses a block.
struct User {
  const ResolvedPolicy* resolved;
  const EndpointPattern* pattern;  // empty for the default
  const JsonNode* json;            // nullptr for the default
  std::string_view place = {};     // the place that states the block
};

std::vector<std::string_view> hosts_of(const EndpointPattern& pattern) {
  std::vector<std::string_view> hosts(pattern.more_hosts.begin(), pattern.more_hosts.end());
  if (pattern.host) hosts.push_back(*pattern.host);
  return hosts;
}

bool is_exact(std::string_view host) { return host.find('*') == std::string_view::npos; }

// Returns whether the pattern is for any host or has a host with a "*".
bool is_wide(const EndpointPattern& pattern) {
  const auto hosts = hosts_of(pattern);
  return hosts.empty() || !std::all_of(hosts.begin(), hosts.end(), is_exact);
}

// Returns whether requests to the pattern's hosts may match another entry.
bool has_further_conditions(const EndpointPattern& pattern) {
  return pattern.path || !pattern.methods.empty() || !pattern.headers.empty() ||
         !pattern.query.empty();
}

bool may_be_one_origin(const EndpointPattern& a, const EndpointPattern& b) {
  return (!a.port || !b.port || *a.port == *b.port) &&
         (!a.scheme || !b.scheme || *a.scheme == *b.scheme);
}

// Returns whether a host may match `wide`, a host with a "*", and `other`. "*.example.com" may
// match the same host as "a.example.com" and "*.b.example.com". What stands before the last "*" is
// ignored.
bool may_overlap(std::string_view wide, std::string_view other) {
  const auto ending = wide.substr(wide.rfind('*') + 1);
  if (other.ends_with(ending)) return true;
  return !is_exact(other) && ending.ends_with(other.substr(other.rfind('*') + 1));
}

// Returns whether requests to one host may use both blocks. `other` matters only if it is not for
// all requests to its hosts.
bool may_share_host(const User& wide, const User& other) {
  if (!has_further_conditions(*other.pattern)) return false;
  if (!wide.pattern->host) return true;
  if (!may_be_one_origin(*wide.pattern, *other.pattern)) return false;
  for (const auto host : hosts_of(*other.pattern)) {
    for (const auto wide_host : hosts_of(*wide.pattern)) {
      if (!is_exact(wide_host) && may_overlap(wide_host, host)) return true;
    }
  }
  return false;
}

// Compares the places that state one kind of block. `BlockOf` gets the block from a policy.
template <class BlockOf>
struct Checker {
  // Adds an entry or the default, and compares its exact hosts with those added before.
  void add(User user) {
    if (!user.resolved->policy) return;  // the policy could not be read
    const auto& block = block_of(*user.resolved->policy);
    if (!block || block->scope != GuardScope::Host) return;
    if (const auto& names = user.resolved->guard_names) user.place = (*names).*place;
    users.push_back(user);
    for (const auto host : hosts_of(*user.pattern)) {
      if (is_exact(host)) add_exact(user, host);
    }
  }

  // Warns if an entry with a wide pattern (for any host, or for hosts with a "*") and another entry
  // may limit the requests to the same host, and the file states the two limits in two places: such
  // limits count these requests separately. Warns once for each wide pattern, because the common
  // host is not known. Must be called after all calls of `add`.
  void warn_of_wide() {
    constexpr std::size_t kMaxCompared = 1'000'000;  // a file may be huge
    std::size_t compared = 0;
    for (const auto& wide : users) {
      if (!is_wide(*wide.pattern)) continue;
      if (compared > kMaxCompared) return;
      compared += users.size();  // at most: the search may end early
      // Entries that take the limit from the same place share one count.
      const auto other = std::ranges::find_if(users, [&](const User& user) {
        return user.json != wide.json && user.place != wide.place && may_share_host(wide, user);
      });
      if (other == users.end()) continue;
      // `wide` may be the default policy, which has no JSON. `other` is always an entry: the
      // default has no conditions, so may_share_host returns false for it as the second argument.
      const auto owner = wide.json == nullptr ? "the default" : pointer_to(*wide.json);
      problems.warn(*other->json, "its \"" + std::string(key) + "\" and that of " + owner +
                                      " are counted separately, even for the same host");
    }
  }

  // Reports the first earlier block of another place that is for the same origin.
  void add_exact(const User& user, std::string_view host) {
    auto& earlier = exact[host];
    const auto other = std::ranges::find_if(earlier, [&](const User& one) {
      return one.place != user.place && may_be_one_origin(*one.pattern, *user.pattern);
    });
    if (other != earlier.end()) report(user, *other, host);
    // One user for each place and origin is enough.
    const bool has_same = std::ranges::any_of(earlier, [&](const User& one) {
      return one.place == user.place && one.pattern->port == user.pattern->port &&
             one.pattern->scheme == user.pattern->scheme;
    });
    if (!has_same) earlier.push_back(user);
  }

  // Reports two blocks for the same host: a warning if they are equal, otherwise an error.
  void report(const User& user, const User& other, std::string_view host) {
    auto message = "its \"" + std::string(key) + "\" and that of " + pointer_to(*other.json) +
                   " are both for the host " + quoted_text(host);
    if (block_of(*user.resolved->policy) == block_of(*other.resolved->policy)) {
      problems.warn(*user.json,
                    message + ", but are counted separately, because they are in two places");
    } else {
      problems.error(*user.json, message +
                                     ", and differ; state it in one policy that both "
                                     "extend, or give it \"scope\": \"endpoint\"");
    }
  }

  std::string_view key;            // of the block, for messages
  std::string GuardNames::*place;  // the member that names the place of the block
  BlockOf block_of;
  Problems& problems;
  std::vector<User> users{};
  std::map<std::string_view, std::vector<User>> exact{};  // by host
};

}  // namespace

// Renames the blocks that an entry's own policy states: from the JSON pointer of the policy to the
// identity of the entry, which does not change when entries move.
void name_guards(ResolvedPolicy& resolved, const JsonNode& entry) {
  if (!resolved.guard_names) return;
  const auto own_place = pointer_to(entry) + "/policy";
  auto names = *resolved.guard_names;
  for (auto* const name :
       {&names.pause, &names.rate, &names.concurrency, &names.breaker, &names.hedge}) {
    if (*name == own_place) *name = resolved.identity;
  }
  if (names != *resolved.guard_names) {
    resolved.guard_names = std::make_shared<const GuardNames>(std::move(names));
  }
}

// Reports guards (rate limits, breakers, ...) of scope "host" that a policy file states in several
// places for the same host, because each place would count the requests to the host separately.
// Compares the default policy and all entries, one kind of guard after the other. `entry_json` is
// the JSON of each of data.entries, for the positions of the problems.
void check_guards_of_hosts(const PolicySet::Data& data, std::span<const JsonNode* const> entry_json,
                           Problems& problems) {
  const EndpointPattern any_request;  // the pattern of the default policy, which has no entry
  const auto check = [&](std::string_view key, std::string GuardNames::*place, auto guard_of) {
    Checker<decltype(guard_of)> checker{key, place, guard_of, problems};
    checker.add({.resolved = &data.fallback, .pattern = &any_request, .json = nullptr});
    for (std::size_t i = 0; i < data.entries.size(); ++i) {
      const auto& entry = data.entries[i];
      // Compares the exact hosts of the entry with those that were added before it.
      checker.add({.resolved = &entry.resolved, .pattern = &entry.pattern, .json = entry_json[i]});
    }
    checker.warn_of_wide();  // compares the hosts with a "*" with all others
  };
  using Policy = const RetryPolicy&;
  // For each kind of guard: its key in the file; the member of GuardNames that names the place
  // where the guard is stated, because equal places share one state; and how to get it from a
  // policy.
  check("rate", &GuardNames::rate, [](Policy p) { return p.guards.rate; });
  check("concurrency", &GuardNames::concurrency, [](Policy p) { return p.guards.concurrency; });
  check("breaker", &GuardNames::breaker, [](Policy p) { return p.guards.breaker; });
  check("hedge", &GuardNames::hedge, [](Policy p) { return p.hedge; });
}

}  // namespace httpretry::detail::policy_file
