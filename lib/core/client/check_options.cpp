// Checks the options of a client when the client is made, so that mistakes do not show up only in
// production.
#include "core.hpp"

#include "lib/core/middleware/missing_stages.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace httpretry::detail {
namespace {

[[noreturn]] void fail(const char* why) { throw std::invalid_argument(why); }

// Returns the first middleware of that name, or nullptr.
const Middleware* find(const std::vector<MiddlewarePtr>& chain, std::string_view name) {
  const auto found = std::find_if(chain.begin(), chain.end(),
                                  [name](const auto& each) { return each->name() == name; });
  return found == chain.end() ? nullptr : found->get();
}

// A rule about the order of the chain: a middleware named `above` must, or must not, stand above
// one named `name`.
struct Order {
  std::string_view name;
  std::string_view above;
  bool must_stand_above;
  const char* why;
};
constexpr Order kOrders[] = {
    {"hedge", "retry", true, "hedge is above retry: put it below, to race single attempts"},
    {"hedge", "guards", false,
     "guards is above hedge: put it below, so that it applies to each send"},
    {"hedge", "hedge", false, "two hedge middlewares in one chain: remove one"},
    {"retry", "retry", false,
     "two retry middlewares in one chain: each attempt of the outer would be retried by the "
     "inner; remove one"},
    {"redirect", "retry", false,
     "redirect is below retry: put it above, so that each redirect is retried by the policy of its "
     "own endpoint"},
    {"fallback", "retry", false,
     "fallback is below retry: put it above, so that it is used only when the call has failed"},
    {"retry", "guards", false,
     "guards is above retry: put it below, so that it applies to each attempt; above, it holds "
     "nothing back"},
};

// Refuses a null middleware, and an order of the chain that breaks a rule of kOrders.
void check_chain(const std::vector<MiddlewarePtr>& chain) {
  std::set<std::string_view> above;
  for (const auto& middleware : chain) {
    if (!middleware) fail("a middleware of the client is null");
    for (const auto& order : kOrders) {
      if (order.name != middleware->name()) continue;
      if (above.contains(order.above) != order.must_stand_above) fail(order.why);
    }
    above.insert(middleware->name());
  }
}

// Refuses options whose policies have settings that need a middleware which the chain lacks.
void check_stages(const ClientOptions& options) {
  const auto& chain = options.middlewares;
  const auto* const retry = find(chain, "retry");
  if (retry == nullptr) return;
  const auto* policies = policies_of(*retry);
  if (policies == nullptr && options.policies) policies = &*options.policies;
  if (policies == nullptr) return;
  const auto problem = missing_stages(
      policies->in_force(), [&](std::string_view stage) { return find(chain, stage) != nullptr; });
  if (!problem.empty()) fail(problem.c_str());
}

// Returns what is wrong with the base URL, or "".
std::string base_problem(const std::string& base) {
  if (base.empty()) return {};
  const auto url = Url::parse(base);
  if (!url) return url.error().message;
  if (base.find_first_of("?#") != std::string::npos) {
    return "a query belongs in base_query, and a fragment is not sent";
  }
  if (url->path().ends_with('/')) return {};
  return "its path must end with \"/\", because a relative URL replaces what follows the last one";
}

}  // namespace

bool has_retry(const ClientOptions& options) {
  return find(options.middlewares, "retry") != nullptr;
}

// Checks the options with which a client is made, so that a mistake shows at once and not with the
// first request that it breaks. Throws std::invalid_argument for the first mistake.
void check(const ClientOptions& options) {
  check(options.connection);         // certificates, proxy, DNS and other settings of libcurl
  check_chain(options.middlewares);  // null pointers and the order
  const auto& observers = options.observers;
  if (std::find(observers.begin(), observers.end(), nullptr) != observers.end()) {
    fail("an observer of the client is null");
  }
  if (options.max_in_flight < 0 || options.max_in_flight_per_origin < 0) {
    fail("ClientOptions::max_in_flight must not be negative (0: no limit)");
  }
  if (const auto problem = base_problem(options.base_url); !problem.empty()) {
    fail(("ClientOptions::base_url: " + problem).c_str());
  }
  if (options.threads < 1) fail("ClientOptions::threads must be at least 1");
  // A scheduler that is no EventLoop cannot drive libcurl, which is the default transport.
  const bool is_event_loop = options.scheduler && EventLoop::is_one(*options.scheduler);
  if (options.scheduler && !options.transport && !is_event_loop) {
    fail("ClientOptions::scheduler is set: set ClientOptions::transport, too, or use an EventLoop");
  }
  if (options.policies && !has_retry(options)) {
    fail("the client has policies but no retry middleware: add retry() to its middlewares");
  }
  check_stages(options);  // refuses policies that need a middleware which the chain lacks
}

}  // namespace httpretry::detail
