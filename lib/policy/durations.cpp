#include "lib/http/text.hpp"
#include "lib/policy/types.hpp"

#include <algorithm>

namespace httpretry::policy_file {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestDuration = std::chrono::duration_cast<Duration>(365 * 24h);

constexpr std::string_view kDigits = "0123456789";

// Those at the front.
std::string_view digits_of(std::string_view text) {
  return text.substr(0, text.find_first_not_of(kDigits));
}

struct Unit {
  std::string_view name;
  Duration size;
};
constexpr Unit kUnits[] = {{"h", 1h},   {"m", 1min}, {"s", 1s},
                           {"ms", 1ms}, {"us", 1us}, {"ns", 1ns}};

// "1.5" of `unit`, exactly; empty where it has more digits than nanoseconds have.
std::optional<Duration> amount(std::uint64_t whole, std::string_view fraction, Duration unit) {
  auto sum = Duration(static_cast<Duration::rep>(whole) * unit.count());
  auto part = unit.count();
  // A minute and an hour have no decimal thousandths: the whole fraction is worked out at once.
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (fraction.size() > 12) return std::nullopt;
  __extension__ using Wide = __int128;
  Wide numerator = 0;
  Wide denominator = 1;
  for (const auto digit : fraction) {
    numerator = numerator * 10 + (digit - '0');
    denominator *= 10;
  }
  if ((numerator * part) % denominator != 0) return std::nullopt;
  return sum + Duration(static_cast<Duration::rep>(numerator * part / denominator));
}

constexpr std::string_view kDurations = R"(write it like "250ms", "1.5s" or "1h30m")";

}  // namespace

std::pair<Duration, std::string> duration_in(std::string_view text) {
  const auto no_duration = [] {
    return std::pair(Duration(), "is not a duration: " + std::string(kDurations));
  };
  if (text.starts_with('-')) return {{}, "is negative"};
  Duration sum{};
  std::size_t next_unit = 0;
  do {
    const auto digits = digits_of(text);
    if (digits.empty()) return no_duration();
    text.remove_prefix(digits.size());
    std::string_view fraction;
    if (text.starts_with('.')) {
      fraction = digits_of(text.substr(1));
      if (fraction.empty()) return no_duration();
      text.remove_prefix(1 + fraction.size());
    }
    const auto name = text.substr(0, text.find_first_of(kDigits));
    const auto* const unit = std::find_if(std::begin(kUnits) + next_unit, std::end(kUnits),
                                          [&](const Unit& one) { return one.name == name; });
    if (unit == std::end(kUnits)) return no_duration();
    next_unit = static_cast<std::size_t>(unit - std::begin(kUnits)) + 1;
    text.remove_prefix(name.size());
    const auto most = static_cast<std::uint64_t>(kLongestDuration / unit->size);
    const auto whole = to_number<std::uint64_t>(digits);  // empty where it does not fit
    if (!whole || *whole > most) return {{}, "is over 365 days"};
    const auto part = amount(*whole, fraction, unit->size);
    if (!part) return {{}, "is finer than a nanosecond"};
    sum += *part;
    if (sum > kLongestDuration) return {{}, "is over 365 days"};
  } while (!text.empty());
  return {sum, {}};
}

}  // namespace httpretry::policy_file
