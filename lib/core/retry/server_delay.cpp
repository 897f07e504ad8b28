#include <httpretry/retry/server_delay.hpp>

#include "lib/core/base/saturating.hpp"
#include "lib/core/base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace httpretry {
namespace {

using namespace std::chrono_literals;
using namespace saturating;

constexpr std::size_t kRawKept = 64;  // documented in server_delay.hpp

// Returns the number of digits with which the text begins.
std::size_t digit_count(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// Returns the number that `digits`, which has only digits, stands for. Saturates.
std::uint64_t value_of_digits(std::string_view digits) {
  return to_number<std::uint64_t>(digits).value_or(UINT64_MAX);
}

// Returns the time of a text such as "120". Returns nullopt if it is not a whole number.
std::optional<Duration> whole_number(std::string_view text, Duration unit) {
  if (text.empty() || digit_count(text) != text.size()) return std::nullopt;
  return times(value_of_digits(text), unit);
}

// The number in a text that begins with "12" or "12.5".
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t billionths = 0;
  bool inexact = false;  // a nonzero digit follows the ninth of the fraction
  std::size_t size = 0;  // in characters

  // Returns that many times `unit`, rounded up to nanoseconds. Saturates.
  [[nodiscard]] Duration of(Duration unit) const {
    const auto count = static_cast<Duration::rep>(billionths);
    // From a second on, a billionth of the unit is a whole number of nanoseconds.
    const auto part = unit >= 1s ? Duration(count * (unit / 1s) + (inexact ? 1 : 0))
                                 : Duration((count * unit.count() + 999'999'999) / 1'000'000'000);
    return plus(times(whole, unit), part);
  }
};

// Returns the number with which the text begins: for "2.5h" that is 2 whole and 500'000'000
// billionths, with a size of 3 characters. Returns nullopt if the text does not begin with a digit,
// or if no digit follows the decimal point. Digits after the ninth one of the fraction do not
// count, but set `inexact`, so that the caller can round up.
std::optional<Decimal> decimal_at_front(std::string_view text) {
  Decimal decimal;
  decimal.size = digit_count(text);
  if (decimal.size == 0) return std::nullopt;
  decimal.whole = value_of_digits(text.substr(0, decimal.size));
  if (text.substr(decimal.size, 1) != ".") return decimal;

  text.remove_prefix(decimal.size + 1);
  const auto fraction = text.substr(0, digit_count(text));
  if (fraction.empty()) return std::nullopt;
  std::string nine_digits(fraction.substr(0, 9));
  nine_digits.resize(9, '0');
  decimal.billionths = value_of_digits(nine_digits);
  decimal.inexact = fraction.find_first_not_of('0', 9) != std::string_view::npos;
  decimal.size += 1 + fraction.size();
  return decimal;
}

struct Unit {
  std::string_view name;
  Duration size;
};
// "ms" precedes "m", because the longest matching name counts.
constexpr Unit kUnits[] = {{"ms", 1ms}, {"us", 1us}, {"ns", 1ns},
                           {"h", 1h},   {"m", 1min}, {"s", 1s}};

// Returns the time from which dates and epochs are counted: the server's own clock, if its Date is
// within a day of ours.
WallTime reference(const Headers& headers, WallTime wall_now) {
  const auto date = parse_http_date(headers.get("date").value_or(""), wall_now);
  if (!date) return wall_now;
  const auto ahead = between(wall_now, *date);
  return ahead >= -24h && ahead <= 24h ? *date : wall_now;
}

// Returns the time of "120", or the time until a date. Returns nullopt if the text is neither.
std::optional<Duration> seconds_or_date(std::string_view text, const Headers& headers,
                                        WallTime wall_now) {
  const auto seconds = decimal_at_front(text);
  if (seconds && seconds->size == text.size()) return seconds->of(1s);
  const auto date = parse_http_date(text, wall_now);
  if (!date) return std::nullopt;
  return round_up(between(reference(headers, wall_now), *date), 1s);
}

// Returns the longest wait in the value of Retry-After. It usually has one, but a proxy may join
// two headers to "2, 3". Returns nullopt if the text has none.
std::optional<Duration> retry_after(std::string_view text, const Headers& headers,
                                    WallTime wall_now) {
  std::optional<Duration> longest;
  while (!text.empty()) {
    auto end = text.find(',');
    auto wait = seconds_or_date(trimmed(text.substr(0, end)), headers, wall_now);
    if (!wait && end != std::string_view::npos) {  // a date may have a comma itself
      const auto next = text.find(',', end + 1);
      wait = seconds_or_date(trimmed(text.substr(0, next)), headers, wall_now);
      if (wait) end = next;
    }
    longest = std::max(longest, wait);                       // nullopt is less than any wait
    text.remove_prefix(std::min(end, text.size() - 1) + 1);  // all of it if `end` is npos
  }
  return longest;
}

// Returns the time until a quota is reset, or nullopt if the text is malformed. Guesses what a
// number means from its size. Below 10^9 (September 2001 as an epoch, 31 years as a delta) it is a
// delta in seconds; up to 10^11 an epoch in seconds; up to 10^14 an epoch in milliseconds. Anything
// larger can only be a delta that is too long to wait for.
std::optional<Duration> reset(std::string_view text, const Headers& headers, WallTime wall_now) {
  if (const auto date = parse_rfc3339(text)) {
    return round_up(between(reference(headers, wall_now), *date), 1s);
  }
  const auto decimal = decimal_at_front(text);
  if (!decimal) return seconds_or_date(text, headers, wall_now);
  if (decimal->size != text.size()) return parse_go_duration(text);  // such as "6m0s"
  if (decimal->whole < 1'000'000'000) return decimal->of(1s);
  if (decimal->whole >= 100'000'000'000'000) return kForever;
  const auto unit = decimal->whole < 100'000'000'000 ? Duration(1s) : Duration(1ms);
  return round_up(between(reference(headers, wall_now), WallTime(decimal->of(unit))), unit);
}

bool is_zero(std::string_view text) {
  return !text.empty() && text.find_first_not_of('0') == std::string_view::npos;
}

// Returns whether the source reads headers of this name. "*" in the source's own name stands for
// any text.
bool reads(ServerDelaySource source, std::string_view name) {
  auto end = to_string(source);
  const auto star = end.find('*');
  if (star == std::string_view::npos) return equal_ignoring_case(name, end);
  const auto front = end.substr(0, star);
  end.remove_prefix(star + 1);
  return name.size() > front.size() + end.size() &&
         equal_ignoring_case(name.substr(0, front.size()), front) &&
         equal_ignoring_case(name.substr(name.size() - end.size()), end);
}

// Returns whether the quota whose reset the header `reset_name` has is used up. It is if the server
// does not say what remains: "x-ratelimit-remaining-tokens" for "x-ratelimit-reset-tokens".
bool is_used_up(std::string_view reset_name, const Headers& headers) {
  auto name = to_lower(reset_name);
  // Discord sends the time of "x-ratelimit-reset" a second time, as "x-ratelimit-reset-after".
  if (name.ends_with("-after")) name.resize(name.rfind('-'));
  constexpr std::string_view kReset = "reset";
  const auto remaining = headers.get(name.replace(name.rfind(kReset), kReset.size(), "remaining"));
  return !remaining || is_zero(*remaining);
}

// The next four functions remove what they read from the front of a structured header (RFC 9651).
std::string_view take_run(std::string_view& text, std::string_view allowed) {
  const auto run = text.substr(0, text.find_first_not_of(allowed));
  text.remove_prefix(run.size());
  return run;
}

// Reads a quoted string, without its quotes, or a token, number or boolean. Returns nullopt if
// there is none, or if a string lacks its closing quote.
std::optional<std::string_view> take_value(std::string_view& text) {
  if (take(text, '"')) {
    std::size_t end = 0;
    // A backslash and the character after it stand for that character.
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

// An item of a list, `"burst";r=0;t=30`, or an entry of a dictionary, `reset=30`.
struct Item {
  std::string_view name;
  std::string_view value;  // only for an entry
  std::vector<Item> parameters;
};

// Reads the name of an item of a list.
bool take_name(std::string_view& text, Item& item) {
  const auto name = take_value(text);
  item.name = name.value_or("");
  return name.has_value();
}

// Reads "key=value", or a single key, whose value is "?1" (true).
bool take_entry(std::string_view& text, Item& entry) {
  entry.name = take_run(text, "abcdefghijklmnopqrstuvwxyz0123456789_-.*");
  const auto value = take(text, '=') ? take_value(text) : std::optional<std::string_view>("?1");
  entry.value = value.value_or("");
  return !entry.name.empty() && value;
}

// Returns the items of a list (with take_name) or of a dictionary (with take_entry). Returns no
// items if the text is malformed.
std::vector<Item> items_of(std::string_view text, bool (*take_item)(std::string_view&, Item&)) {
  std::vector<Item> items;
  do {
    take_run(text, " \t");
    auto& item = items.emplace_back();
    if (!take_item(text, item)) return {};
    while (take(text, ';')) {
      take_run(text, " \t");
      if (!take_entry(text, item.parameters.emplace_back())) return {};
    }
    take_run(text, " \t");
  } while (take(text, ','));
  return text.empty() ? items : std::vector<Item>();
}

// Returns whether the limit counts requests, according to the response's policies
// (`"name";q=100;qu="content-bytes"`). A limit on bytes, for example, does not say when the next
// request may come.
bool counts_requests(std::string_view limit, const Headers& headers) {
  for (const auto header : headers) {
    if (!equal_ignoring_case(header.name, "ratelimit-policy")) continue;
    std::string_view unit = "requests";
    for (const auto& policy : items_of(header.value, take_name)) {
      for (const auto& parameter : policy.parameters) {
        if (policy.name == limit && parameter.name == "qu") unit = parameter.value;
      }
    }
    if (unit != "requests") return false;
  }
  return true;
}

// Returns the longest wait among the limits that are used up. A limit such as `"burst";r=0;t=30`
// has the parameters r or "remaining" (how many requests are left) and t or "reset" (seconds until
// more are allowed). Without the first, it counts as used up; without the second, it asks for no
// wait. Ignores a limit if `headers` say that it counts something else, such as bytes. Returns
// nullopt if no limit asks for a wait, or if any has a malformed time.
std::optional<Duration> longest_wait(const std::vector<Item>& limits, const Headers& headers) {
  std::optional<Duration> longest;
  for (const auto& limit : limits) {
    bool used_up = true;
    std::optional<Duration> wait;
    for (const auto& parameter : limit.parameters) {
      const auto name = parameter.name;
      if (name == "r" || name == "remaining") used_up = is_zero(parameter.value);
      if (name != "t" && name != "reset") continue;
      wait = whole_number(parameter.value, 1s);
      if (!wait) return std::nullopt;
    }
    if (used_up && wait && counts_requests(limit.name, headers)) longest = std::max(longest, wait);
  }
  return longest;
}

// Reads `limit=2, remaining=0, reset=3` (up to draft 7 of the header's specification) or
// `"name";r=0;t=30, "other";r=5;t=60`. Returns how long to wait, or nullopt if no limit is used up.
std::optional<Duration> rate_limit(std::string_view text, const Headers& headers) {
  const Item only_limit{.name = {}, .value = {}, .parameters = items_of(text, take_entry)};
  const Headers no_policies;  // the older form has none
  if (const auto wait = longest_wait({only_limit}, no_policies)) return wait;
  return longest_wait(items_of(text, take_name), headers);
}

// Returns the wait that one header of a response asks for, for example 2 minutes for "Retry-After:
// 120". Returns nullopt if the value is malformed, or if the header only describes a quota and the
// response is not a throttle: then the client need not wait for the quota. `headers` are all
// headers of the response; dates are compared with its Date.
std::optional<ServerDelay> read_header(ServerDelaySource source, Headers::Field header,
                                       const Headers& headers, bool throttled, WallTime wall_now) {
  const auto text = header.value;
  std::optional<Duration> wait;
  bool do_not_retry = false;
  switch (source) {
    // These count milliseconds.
    case ServerDelaySource::RetryAfterMs:
    case ServerDelaySource::XMsRetryAfterMs:
    case ServerDelaySource::XAmzRetryAfter: wait = whole_number(text, 1ms); break;
    case ServerDelaySource::RetryAfter: wait = retry_after(text, headers, wall_now); break;
    // The next five say when a quota is full again, which matters only after a throttle.
    case ServerDelaySource::XRateLimitReset:
    case ServerDelaySource::XRateLimitResets:
    case ServerDelaySource::AnthropicResets:
    case ServerDelaySource::RateLimitReset:
      if (throttled && is_used_up(header.name, headers)) wait = reset(text, headers, wall_now);
      break;
    case ServerDelaySource::RateLimit:
      if (throttled) wait = rate_limit(text, headers);
      break;
    case ServerDelaySource::GrpcRetryPushback: {  // milliseconds; negative means "do not retry"
      const bool has_minus = text.starts_with('-');
      wait = whole_number(text.substr(has_minus ? 1 : 0), 1ms);
      if (!has_minus || !wait) break;
      do_not_retry = *wait > 0s;  // "-0" is 0
      wait = 0s;
      break;
    }
    case ServerDelaySource::RetryInfo:  // not reached: these three are not headers
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

// Returns the delay of the first source that the response has. If it has several headers of this
// source, the longest delay counts.
std::optional<ServerDelay> server_delay(const Headers& headers,
                                        std::span<const ServerDelaySource> sources, bool throttled,
                                        WallTime wall_now) {
  for (const auto source : sources) {
    std::optional<ServerDelay> longest;
    for (const auto header : headers) {
      if (!reads(source, header.name)) continue;
      auto delay = read_header(source, header, headers, throttled, wall_now);
      if (delay && (!longest || delay->delay > longest->delay)) longest = std::move(delay);
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

// Returns the sum of the amounts in a text such as "1h30m" or "1.5s", which is how Go writes a
// duration. Returns nullopt if the text is malformed.
std::optional<Duration> parse_go_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Duration sum{};
  while (!text.empty()) {
    const auto amount = decimal_at_front(text);
    if (!amount) return std::nullopt;
    text.remove_prefix(amount->size);
    const auto* const unit =
        std::ranges::find_if(kUnits, [&](auto& each) { return text.starts_with(each.name); });
    if (unit == std::end(kUnits)) return std::nullopt;
    text.remove_prefix(unit->name.size());
    sum = plus(sum, amount->of(unit->size));
  }
  return sum;
}

}  // namespace httpretry
