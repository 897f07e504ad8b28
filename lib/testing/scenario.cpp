#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

// In the order of Fault.
constexpr std::array<std::string_view, 19> kWords{
    "none",      "reset",     "close",        "reset_early",     "reset_during",
    "truncate",  "timeout",   "drip",         "garbage",         "stale",
    "huge",      "bad_chunk", "huge_headers", "endless_interim", "gzip_cut_short",
    "tls_stall", "tls",       "refused",      "resolve"};
static_assert(kWords.back() == "resolve" &&
              kWords.size() == static_cast<std::size_t>(Fault::Resolve) + 1);

}  // namespace

std::string_view to_string(Fault fault) {
  const auto index = static_cast<std::size_t>(fault);
  return index < kWords.size() ? kWords[index] : "";
}

std::optional<Fault> parse_fault(std::string_view word) {
  if (word == "hang") return Fault::Hang;
  const auto* const found = std::find(kWords.begin(), kWords.end(), word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<Fault>(found - kWords.begin());
}

}  // namespace httpretry
