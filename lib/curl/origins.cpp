#include "origins.hpp"

#include <charconv>

namespace httpretry {
namespace {

// Some 100 bytes each. Beyond it all are dropped, and learned again soon enough.
constexpr std::size_t kMaxOrigins = 4096;

}  // namespace

OriginInfo& Origins::edit(const std::string& origin) {
  if (origins_.size() >= kMaxOrigins && !origins_.contains(origin)) origins_.clear();
  return origins_[origin];
}

const OriginInfo& Origins::find(const std::string& origin) const {
  static const OriginInfo unknown;
  const auto found = origins_.find(origin);
  return found == origins_.end() ? unknown : found->second;
}

void Origins::learn(const std::string& origin, const Headers& headers, bool http2) {
  const auto keep_alive = headers.get("Keep-Alive");
  if (!keep_alive && !http2) return;
  auto& info = edit(origin);
  info.speaks_http2 = http2;
  if (!keep_alive) return;
  const auto at = keep_alive->find("timeout=");
  if (at == std::string_view::npos) return;
  const auto digits = keep_alive->substr(at + 8);
  std::from_chars(digits.data(), digits.data() + digits.size(), info.keep_alive_seconds);
}

}  // namespace httpretry
