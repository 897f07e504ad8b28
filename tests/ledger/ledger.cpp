#include "ledger.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace httpretry::ledger {
namespace {

constexpr std::size_t kMostAttempts = 16;

std::string name(std::size_t call) { return "call " + std::to_string(call); }

}  // namespace

void fail(const std::string& text) {
  std::fprintf(stderr, "ledger: %s\n", text.c_str());
  std::abort();  // for the core, and the sanitizers' stacks
}

// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return value;
}

void Ledger::call_begins(std::size_t call, Kind kind, std::string_view body) {
  auto& entry = calls_[call];
  entry.kind = kind;
  entry.body_hash = hash(body);
}

std::string Ledger::attempt_begins(std::size_t call, int attempt) {
  auto& entry = calls_[call];
  const auto bit = bit_of(call, attempt);
  if ((entry.begun & bit) != 0) {
    fail(name(call) + " begins attempt " + std::to_string(attempt) + " twice");
  }
  entry.begun |= bit;
  return std::to_string(call) + "." + std::to_string(attempt - 1);
}

Ledger::Attempts Ledger::bit_of(std::size_t call, int attempt) {
  if (attempt < 1 || static_cast<std::size_t>(attempt) > kMostAttempts) {
    fail(name(call) + " has an attempt " + std::to_string(attempt) +
         ", which its limits do not allow");
  }
  return static_cast<Attempts>(1U << static_cast<unsigned>(attempt - 1));
}

void Ledger::call_ends(std::size_t call, const Outcome& outcome) {
  auto& entry = calls_[call];
  if (++entry.ends != 1) fail(name(call) + " ended twice");
  entry.good = outcome && outcome->is_2xx();
  const auto& history = history_of(outcome);
  Attempts told = 0;
  for (const auto& attempt : history.attempts) {
    const auto bit = bit_of(call, attempt.number);
    if ((told & bit) != 0) fail(name(call) + " tells of one attempt twice");
    told |= bit;
    if (attempt.wire_sends != (attempt.sent == Sent::Never ? 0 : 1)) {
      fail(name(call) + " tells of " + std::to_string(attempt.wire_sends) + " sends in an attempt");
    }
    if (attempt.sent != Sent::Never) entry.sent |= bit;
    if (attempt.sent == Sent::Answered) entry.answered |= bit;
    if (attempt.hedge) entry.hedges |= bit;
  }
  if (told != entry.begun) fail(name(call) + " does not tell of the attempts that it made");
  if (entry.kind == Kind::Unsafe && entry.hedges != 0) fail(name(call) + " is unsafe and hedged");
}

void Ledger::server_saw(const Sight& sight) {
  std::size_t call = 0;
  std::size_t attempt = 0;
  const char* end = sight.id.data() + sight.id.size();
  const auto number = std::from_chars(sight.id.data(), end, call);
  if (number.ec != std::errc() || number.ptr == end || call >= calls_.size() ||
      std::from_chars(number.ptr + 1, end, attempt).ec != std::errc() || attempt >= kMostAttempts) {
    fail("a server saw a request that nobody sent: \"" + std::string(sight.id) + "\"");
  }
  auto& entry = calls_[call];
  const auto bit = static_cast<Attempts>(1U << attempt);
  if ((entry.seen.fetch_or(bit) & bit) != 0) {
    fail("a server saw one attempt of " + name(call) + " twice");
  }
  if (sight.whole && sight.body_hash != entry.body_hash) {
    fail("a server saw another body of " + name(call));
  }
  if (entry.kind == Kind::Unsafe) {
    if (entry.executed) fail(name(call) + " is unsafe, was executed, and was seen again");
    if (!sight.refused) entry.executed = true;
  }
  if ((entry.kind == Kind::Keyed) == sight.key.empty()) {
    fail(name(call) + " has a key that it should not have, or none");
  }
  if (sight.key.empty()) return;
  const auto key = hash(sight.key);
  const auto before = entry.key_hash.exchange(key);
  if (before != 0 && before != key) fail(name(call) + " was seen with two keys");
}

void Ledger::balance(std::size_t call, const Entry& entry) {
  if (entry.ends != 1) fail(name(call) + " did not end once");
  const Attempts seen = entry.seen;
  if ((seen & ~entry.sent) != 0) fail(name(call) + " says that it never sent what a server saw");
  if ((entry.answered & ~seen) != 0) fail(name(call) + " has a response that no server gave");
}

Ledger::Totals Ledger::balance() const {
  Totals totals;
  std::vector<std::uint64_t> keys;
  for (std::size_t call = 0; call < calls_.size(); ++call) {
    const auto& entry = calls_[call];
    balance(call, entry);
    const Attempts seen = entry.seen;
    const auto count = [](unsigned bits) {
      return static_cast<std::uint64_t>(std::popcount(bits));
    };
    ++totals.calls;
    totals.hedges += count(entry.hedges);
    ++totals.kinds[static_cast<std::size_t>(entry.kind)];
    totals.good[static_cast<std::size_t>(entry.kind)] += entry.good ? 1 : 0;
    totals.sends += count(entry.sent);
    totals.answered += count(entry.answered);
    totals.seen += count(seen);
    totals.lost += count(static_cast<unsigned>(entry.sent) & ~static_cast<unsigned>(seen));
    totals.unsent += count(entry.begun) - count(entry.sent);
    if (entry.key_hash != 0) keys.push_back(entry.key_hash);
  }
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) fail("two calls had one key");
  if (totals.sends != totals.seen + totals.lost) fail("the sums differ");
  return totals;
}

}  // namespace httpretry::ledger
