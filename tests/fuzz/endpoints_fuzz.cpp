// Any lines as patterns, one "host path" a line with an optional method behind, the last line as a
// request's URL. What is accepted must answer the same by find, by matches, and whatever the order.
#include <httpretry/policy/endpoint.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace httpretry;  // NOLINT

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

std::string_view take_until(std::string_view& text, char end) {
  const auto taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

EndpointPattern pattern_of(std::string_view line) {
  EndpointPattern pattern;
  const auto host = take_until(line, ' ');
  const auto path = take_until(line, ' ');
  if (!host.empty()) pattern.host = host;
  if (!path.empty()) pattern.path = path;
  if (!line.empty()) pattern.methods.emplace_back(line);
  return pattern;
}

void look_up(const std::vector<EndpointPattern>& patterns, const Url& url) {
  const EndpointIndex index(patterns);
  const EndpointIndex reversed({patterns.rbegin(), patterns.rend()});
  demand(index.ties().empty() == reversed.ties().empty());
  for (const std::string_view method : {"GET", "PUT"}) {
    const auto found = index.find(method, url);
    const auto all = index.matches(method, url);
    demand(found.has_value() == !all.empty());
    if (!found) continue;
    demand(all.front().pattern == *found);
    for (std::size_t i = 1; i < all.size(); ++i) {
      demand(!EndpointIndex::why_less(all[i], all[0]).empty());
    }
    demand(reversed.matches(method, url).size() == all.size());
    if (!index.ties().empty()) continue;
    demand(patterns.size() - 1 - *reversed.find(method, url) == *found);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<EndpointPattern> patterns;
  while (text.find('\n') != std::string_view::npos) {
    auto pattern = pattern_of(take_until(text, '\n'));
    const auto problems = problems_of(pattern);
    for (const auto& problem : problems) demand(!problem.message.empty());
    if (problems.empty()) patterns.push_back(std::move(pattern));
  }
  const auto url = Url::parse(text);
  if (url) look_up(patterns, *url);
  return 0;
}
