// Serves the last good response of a URL while the server fails.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

using namespace httpretry;

namespace {

// Keeps the last good response of each URL. Several threads may use it.
class LastGood {
 public:
  void put(const std::string& url, const Response& response) {
    const std::lock_guard lock(mutex_);
    responses_[url] = response;
  }
  std::optional<Response> find(const std::string& url) const {
    const std::lock_guard lock(mutex_);
    const auto found = responses_.find(url);
    return found == responses_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Response> responses_;
};

}  // namespace

int main() {
  // The server responds once, and then fails.
  Step good(200, "fresh");
  good.times = 1;
  FaultServer server({good, 500});

  // fallback() is the outer middleware, so "keep" sees only responses of the server.
  ClientOptions options;
  auto kept = std::make_shared<LastGood>();
  options.call_middlewares = {
      fallback([kept](const Request& request, const Outcome&, Call&) {
        return kept->find(request.url());
      }),
      on_outcome("keep",
                 [kept](const Request& request, Outcome& outcome, Call&) {
                   if (succeeded(outcome)) kept->put(request.url(), *outcome);
                 }),
  };
  options.policies = RetryPolicy::standard({.max_attempts = 2});
  Client client(options);

  const auto first = client.get(server.url("/rates"));
  const auto second = client.get(server.url("/rates"));
  const auto never_seen = client.get(server.url("/news"));
  std::printf("%s\n%s\n", describe(second).c_str(), describe(never_seen).c_str());
  return succeeded(first) && succeeded(second) && second->from_fallback &&
                 second->body == "fresh" && !succeeded(never_seen)
             ? 0
             : 1;
}
