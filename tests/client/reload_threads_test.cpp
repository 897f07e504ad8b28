// A file that changes under the calls of many threads.
#include "heard.hpp"

#include "tests/policy/temporary.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Two policies, told apart by their attempts: nothing between them may ever be seen.
std::string file_with(int attempts) {
  const auto count = std::to_string(attempts);
  return R"({"version": 1, "default": {"max_attempts": )" + count +
         R"(, "idempotency_key": "Key-)" + count +
         R"(", "backoff": {"kind": "none"}, "throttle_backoff": "none", "budget": "none"}})";
}

class Down final : public Transport {
 public:
  Task<Outcome> send(Request, Call&) override {
    Response response(503);
    response.exchange.sent = Sent::Answered;
    response.exchange.wire_sends = 1;
    co_return response;
  }
};

class CountReloads final : public Observer {
 public:
  void policies_reloaded(const Call& /*call*/, const PolicyReload& reload) noexcept override {
    (reload.accepted ? accepted : refused).fetch_add(1);
  }
  std::atomic<int> accepted = 0;
  std::atomic<int> refused = 0;
};

}  // namespace

TEST_CASE("many threads call while a file is replaced, broken, removed and read again") {
  const Heard heard;
  const TemporaryFile file(file_with(2));
  const auto source = PolicySource::watch(file.path()).value();
  const auto counted = std::make_shared<CountReloads>();
  ClientOptions options;
  options.middlewares = {retry()};
  options.policies = source;
  options.transport = std::make_shared<Down>();
  options.observers = {counted};
  Client client(options);

  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> calls = 0;
  std::vector<std::thread> threads;
  for (auto thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      while (!done) {
        const auto outcome = client.get("http://x/");
        const auto sends = outcome ? outcome->history.attempts.size() : 0;
        if (sends != 2 && sends != 4) ++wrong;
        ++calls;
      }
    });
  }
  threads.emplace_back([&] {  // another reader of the source, with a clock that always says: look
    for (Time now{}; !done; now += 1s) (void)source.current(now);
  });
  for (auto i = 0; i < 200 || calls < 200; ++i) {
    file.replace(file_with(i % 2 == 0 ? 4 : 2));
    if (i % 5 == 0) file.write("{");
    if (i % 7 == 0) file.remove();
    (void)source.reload();
  }
  file.replace(file_with(4));
  CHECK(source.reload().has_value());
  done = true;
  for (auto& thread : threads) thread.join();

  CHECK(wrong == 0);
  CHECK(client.get("http://x/")->history.attempts.size() == 4);
  CHECK(counted->accepted > 0);
}
