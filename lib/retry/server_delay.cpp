#include <httpretry/retry/server_delay.hpp>

#include "lib/http/text.hpp"
#include "lib/retry/saturating.hpp"

#include <algorithm>
#include <cstdint>

namespace httpretry {
namespace {

using namespace std::chrono_literals;
using policy::between;
using policy::plus;
using policy::round_up;
using policy::times;

constexpr std::size_t kRawKept = 64;  // as server_delay.hpp says

std::size_t digits_at_front(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// Of digits only; saturates.
std::uint64_t number(std::string_view digits) {
  return to_number<std::uint64_t>(digits).value_or(UINT64_MAX);
}

std::optional<Duration> whole_number(std::string_view text, Duration unit) {
  if (text.empty() || digits_at_front(text) != text.size()) return std::nullopt;
  return times(number(text), unit);
}

// "12" or "12.5".
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t billionths = 0;
  bool more = false;  // digits other than 0 after the ninth
  std::size_t size = 0;

  [[nodiscard]] Duration of(Duration unit) const {
    const auto count = static_cast<Duration::rep>(billionths);
    const auto part = unit >= 1s ? Duration(count * (unit / 1s) + (more ? 1 : 0))
                                 : Duration((count * unit.count() + 999'999'999) / 1'000'000'000);
    return plus(times(whole, unit), part);
  }
};

std::optional<Decimal> decimal_at_front(std::string_view text) {
  Decimal decimal;
  decimal.size = digits_at_front(text);
  if (decimal.size == 0) return std::nullopt;
  decimal.whole = number(text.substr(0, decimal.size));
  if (text.substr(decimal.size, 1) != ".") return decimal;

  text.remove_prefix(decimal.size + 1);
  const auto fraction = text.substr(0, digits_at_front(text));
  if (fraction.empty()) return std::nullopt;
  std::string nine(fraction.substr(0, 9));
  nine.resize(9, '0');
  decimal.billionths = number(nine);
  decimal.more = fraction.find_first_not_of('0', 9) != std::string_view::npos;
  decimal.size += 1 + fraction.size();
  return decimal;
}

struct Unit {
  std::string_view name;
  Duration size;
};
// "ms" before "m": the longest name that fits is meant.
constexpr Unit kUnits[] = {{"ms", 1ms}, {"us", 1us}, {"ns", 1ns},
                           {"h", 1h},   {"m", 1min}, {"s", 1s}};

// Dates and epochs are read against the server's own clock where that is believable.
WallTime reference(const Headers& headers, WallTime wall_now) {
  const auto date = parse_http_date(headers.get("date").value_or(""), wall_now);
  if (!date) return wall_now;
  const auto apart = between(wall_now, *date);
  return apart >= -24h && apart <= 24h ? *date : wall_now;
}

std::optional<Duration> seconds_or_date(std::string_view text, const Headers& headers,
                                        WallTime wall_now) {
  const auto seconds = decimal_at_front(text);
  if (seconds && seconds->size == text.size()) return seconds->of(1s);
  const auto date = parse_http_date(text, wall_now);
  if (!date) return std::nullopt;
  return round_up(between(reference(headers, wall_now), *date), 1s);
}

// Below 10^9 (September 2001 as an epoch, 31 years as a delta) a number is a delta; up to 10^11 an
// epoch in seconds; up to 10^14 one in milliseconds; beyond, only a delta too long to wait for.
std::optional<Duration> reset(std::string_view text, const Headers& headers, WallTime wall_now) {
  const auto decimal = decimal_at_front(text);
  if (!decimal) return seconds_or_date(text, headers, wall_now);
  if (decimal->size != text.size()) return parse_go_duration(text);
  if (decimal->whole < 1'000'000'000) return decimal->of(1s);
  if (decimal->whole >= 100'000'000'000'000) return kForever;
  const auto unit = decimal->whole < 100'000'000'000 ? Duration(1s) : Duration(1ms);
  return round_up(between(reference(headers, wall_now), WallTime(decimal->of(unit))), unit);
}

bool is_zero(std::string_view text) {
  return !text.empty() && text.find_first_not_of('0') == std::string_view::npos;
}

bool nothing_remains(ServerDelaySource source, const Headers& headers) {
  const auto* name = source == ServerDelaySource::XRateLimitReset ? "x-ratelimit-remaining"
                                                                  : "ratelimit-remaining";
  return is_zero(headers.get(name).value_or("0"));
}

// The next three take what they find from the front of a header of RFC 9651.
bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::string_view take_run(std::string_view& text, std::string_view allowed) {
  const auto run = text.substr(0, text.find_first_not_of(allowed));
  text.remove_prefix(run.size());
  return run;
}

// A quoted string, without its quotes, or a token, number or boolean.
std::optional<std::string_view> take_value(std::string_view& text) {
  if (take(text, '"')) {
    std::size_t end = 0;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) return std::nullopt;
    const auto inside = text.substr(0, end);
    text.remove_prefix(end + 1);
    return inside;
  }
  const auto run = take_run(
      text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.*:/?!#$%&'+^`|~=");
  return run.empty() ? std::nullopt : std::optional(run);
}

std::string_view take_key(std::string_view& text) {
  return take_run(text, "abcdefghijklmnopqrstuvwxyz0123456789_-.*");
}

// "=value"; "?1" (true) where there is none.
std::optional<std::string_view> take_value_of_key(std::string_view& text) {
  return take(text, '=') ? take_value(text) : std::optional<std::string_view>("?1");
}

// What a RateLimit header says of one limit.
struct RateLimit {
  bool used_up = true;
  std::optional<Duration> reset_after;

  // False where the value is malformed.
  bool set(std::string_view key, std::string_view value) {
    if (key == "r" || key == "remaining") used_up = is_zero(value);
    const bool reset = key == "t" || key == "reset";
    if (reset) reset_after = whole_number(value, 1s);
    return !reset || reset_after;
  }
  [[nodiscard]] std::optional<Duration> wait() const {
    return used_up ? reset_after : std::nullopt;
  }
};

// ";key=value" as often as it comes. `set` says whether it can read the value of a key.
template <typename Set>
bool take_parameters(std::string_view& text, const Set& set) {
  while (take(text, ';')) {
    take_run(text, " \t");
    const auto key = take_key(text);
    const auto value = take_value_of_key(text);
    if (key.empty() || !value || !set(key, *value)) return false;
  }
  take_run(text, " \t");
  return true;
}

// What `"name";q=100;qu="content-bytes", "other";q=5` says that the limit counts; empty where it
// does not say, or where the text is no such list.
std::optional<std::string_view> unit_of(std::string_view limit, std::string_view text) {
  std::optional<std::string_view> unit;
  do {
    take_run(text, " \t");
    const auto name = take_value(text);
    const auto set = [&](std::string_view key, std::string_view value) {
      if (key == "qu" && name == limit) unit = value;
      return true;
    };
    if (!name || !take_parameters(text, set)) return std::nullopt;
  } while (take(text, ','));
  return text.empty() ? unit : std::nullopt;
}

// Bytes, for one, say nothing about when the next request may come.
bool counts_requests(std::string_view limit, const Headers& headers) {
  for (const auto header : headers) {
    if (!equal_ignoring_case(header.name, "ratelimit-policy")) continue;
    if (unit_of(limit, header.value).value_or("requests") != "requests") return false;
  }
  return true;
}

// The longest wait among the limits of `"name";r=0;t=30, "other";r=5;t=60` that are used up; empty
// where none is, or where the text is no such list.
std::optional<Duration> longest_wait(std::string_view text, const Headers& headers) {
  std::optional<Duration> longest;
  do {
    RateLimit limit;
    take_run(text, " \t");
    const auto name = take_value(text);
    const auto set = [&](auto key, auto value) { return limit.set(key, value); };
    if (!name || !take_parameters(text, set)) return std::nullopt;
    if (limit.wait() && counts_requests(*name, headers)) longest = std::max(longest, limit.wait());
  } while (take(text, ','));
  return text.empty() ? longest : std::nullopt;
}

// The wait of `limit=2, remaining=0, reset=3`, as up to draft 7. Empty where the limit is not used
// up, or where the text is no such dictionary.
std::optional<Duration> wait_of_dictionary(std::string_view text) {
  RateLimit limit;
  const auto describes_the_limit = [](auto /*key*/, auto /*value*/) { return true; };
  do {
    take_run(text, " \t");
    const auto key = take_key(text);
    const auto value = take_value_of_key(text);
    if (key.empty() || !value || !limit.set(key, *value)) return std::nullopt;
    if (!take_parameters(text, describes_the_limit)) return std::nullopt;
  } while (take(text, ','));
  return text.empty() ? limit.wait() : std::nullopt;
}

// The delay that a header asks for; empty where it is malformed or does not count.
std::optional<ServerDelay> read(ServerDelaySource source, std::string_view text,
                                const Headers& headers, bool throttled, WallTime wall_now) {
  std::optional<Duration> wait;
  bool do_not_retry = false;
  switch (source) {
    case ServerDelaySource::RetryAfterMs:
    case ServerDelaySource::XMsRetryAfterMs:
    case ServerDelaySource::XAmzRetryAfter: wait = whole_number(text, 1ms); break;
    case ServerDelaySource::RetryAfter: wait = seconds_or_date(text, headers, wall_now); break;
    case ServerDelaySource::XRateLimitReset:
    case ServerDelaySource::RateLimitReset:
      if (throttled && nothing_remains(source, headers)) wait = reset(text, headers, wall_now);
      break;
    case ServerDelaySource::RateLimit:
      if (throttled) wait = wait_of_dictionary(text);
      if (throttled && !wait) wait = longest_wait(text, headers);
      break;
    case ServerDelaySource::GrpcRetryPushback:
      do_not_retry = text.starts_with('-');
      wait = whole_number(text.substr(do_not_retry ? 1 : 0), 1ms);
      if (!do_not_retry || !wait) break;
      do_not_retry = *wait > 0s;  // "-0" is 0
      wait = 0s;
      break;
    case ServerDelaySource::RetryInfo:
    case ServerDelaySource::SecondaryLimit:
    case ServerDelaySource::Function: break;
  }
  if (!wait) return std::nullopt;
  ServerDelay delay(*wait, source, text);
  delay.do_not_retry = do_not_retry;
  return delay;
}

}  // namespace

ServerDelay::ServerDelay(Duration wait, ServerDelaySource from, std::string_view text)
    : delay(wait), source(from), raw(text.substr(0, kRawKept)) {}

std::optional<ServerDelay> server_delay(const Headers& headers,
                                        std::span<const ServerDelaySource> sources, bool throttled,
                                        WallTime wall_now) {
  for (const auto source : sources) {
    const auto name = to_string(source);
    std::optional<ServerDelay> longest;
    for (const auto header : headers) {
      if (!equal_ignoring_case(header.name, name)) continue;
      auto delay = read(source, header.value, headers, throttled, wall_now);
      if (delay && (!longest || delay->delay > longest->delay)) longest = std::move(delay);
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

std::optional<Duration> parse_go_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Duration sum{};
  while (!text.empty()) {
    const auto amount = decimal_at_front(text);
    if (!amount) return std::nullopt;
    text.remove_prefix(amount->size);
    const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) {
      return text.substr(0, u.name.size()) == u.name;
    });
    if (unit == std::end(kUnits)) return std::nullopt;
    text.remove_prefix(unit->name.size());
    sum = plus(sum, amount->of(unit->size));
  }
  return sum;
}

}  // namespace httpretry
