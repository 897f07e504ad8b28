// The client of a service. It signs each attempt, counts attempts and retries, caches responses,
// and reloads its policies when their file changes.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Stands below retry(), so that each attempt has its own date and signature.
MiddlewarePtr sign(std::string key) {
  return on_request("sign", [key = std::move(key)](Request& request, Call& call) {
    const auto date = std::to_string(call.scheduler().wall_now().time_since_epoch() / 1s);
    const auto signature = std::hash<std::string>()(key + date + request.url());
    request.set_header("X-Date", date);
    request.set_header("X-Signature", std::to_string(signature));
  });
}

// Keeps each successful response to a GET for some time. Stands above retry(), so that a call whose
// response is in the cache sends nothing.
class Cache final : public Middleware {
 public:
  explicit Cache(Duration lifetime) : lifetime_(lifetime) {}
  [[nodiscard]] std::string_view name() const override { return "cache"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    if (request.method() != "GET") {
      Outcome passed = co_await next(std::move(request), call);
      co_return passed;
    }
    const auto url = request.url();
    if (auto cached = find(url, call.scheduler().now())) co_return *std::move(cached);
    Outcome outcome = co_await next(std::move(request), call);
    if (succeeded(outcome)) put(url, *outcome, call.scheduler().now() + lifetime_);
    co_return outcome;
  }

 private:
  struct Entry {
    Response response;
    Time until;
  };
  std::optional<Response> find(const std::string& url, Time now) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(url);
    if (found == entries_.end() || found->second.until <= now) return std::nullopt;
    return found->second.response;
  }
  void put(const std::string& url, const Response& response, Time until) {
    const std::lock_guard lock(mutex_);
    entries_[url] = {response, until};
  }

  const Duration lifetime_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

class Counters final : public Observer {
 public:
  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    ++attempts;
    if (attempt.retried) ++retries;
  }
  void policies_reloaded(const Call& /*call*/, const PolicyReload& reload) noexcept override {
    if (reload.accepted) ++reloads;
  }
  std::atomic<int> attempts = 0;
  std::atomic<int> retries = 0;
  std::atomic<int> reloads = 0;
};

void write_policy(const std::string& path, int max_attempts) {
  std::ofstream(path) << R"({"version": 1, "default": {"max_attempts": )" << max_attempts
                      << R"(, "backoff": {"kind": "constant", "interval": "10ms"}}})";
}

}  // namespace

int main() {
  Scenario scenario{503, 503, 503, 200};  // one step for each request, except to /ping
  scenario.paths["/ping"] = {200};
  FaultServer server(scenario);
  const auto unique_name = new_idempotency_key();
  const auto directory = std::filesystem::temp_directory_path() / unique_name;
  std::filesystem::create_directory(directory);
  const auto policy_file = (directory / "policy.json").string();
  write_policy(policy_file, /*max_attempts=*/1);

  const auto counters = std::make_shared<Counters>();
  ClientOptions options;
  options.call_middlewares = {std::make_shared<Cache>(1min)};
  options.attempt_middlewares = {sign("secret")};
  options.policies = PolicySource::watch(policy_file).value();
  options.observers = {counters};
  Client client(options);

  const Outcome first = client.get(server.url("/"));  // one attempt, which gets the first 503
  write_policy(policy_file, /*max_attempts=*/3);
  // No thread watches the file. A call checks it if the last check was at least a second ago. These
  // calls go to /ping, so they take none of the steps above.
  for (int tries = 0; counters->reloads == 0 && tries < 100; ++tries) {
    std::this_thread::sleep_for(100ms);
    static_cast<void>(client.head(server.url("/ping")));
  }
  const Outcome second = client.get(server.url("/"));  // three attempts: 503, 503, 200
  const auto sent_before = server.seen().size();
  const Outcome cached = client.get(server.url("/"));  // sends nothing

  std::printf("%d, then %d with %d retries\n", first ? first->status : 0,
              second ? second->status : 0, counters->retries.load());
  const bool is_signed = server.seen().front().headers.contains("X-Signature");
  const bool sent_nothing = server.seen().size() == sent_before;
  std::filesystem::remove_all(directory);
  return succeeded(second) && succeeded(cached) && is_signed && sent_nothing ? 0 : 1;
}
