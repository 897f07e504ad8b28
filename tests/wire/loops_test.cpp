// Which of its loops a client sends on: one that has a connection for the call, if there is one.
#include "file_limit.hpp"
#include "holding_server.hpp"
#include "wire.hpp"

#include <atomic>
#include <future>
#include <vector>

using namespace httpretry;

namespace {

ClientOptions two_loops() {
  ClientOptions options;
  options.middlewares = {};
  options.threads = 2;
  return options;
}

// Keeps `width` calls in flight, each begun in the callback of the one before.
class Flow {
 public:
  Flow(Client& client, std::vector<Request> requests, int count)
      : client_(client), requests_(std::move(requests)), to_start_(count), to_end_(count) {}
  void run(int width) {
    for (int i = 0; i < width; ++i) next();
    for (int left = to_end_; left > 0; left = to_end_) to_end_.wait(left);
  }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  void next() {
    const int number = --to_start_;
    if (number < 0) return;
    const auto& request = requests_[static_cast<std::size_t>(number) % requests_.size()];
    client_.send_then(request, [this](const Outcome& outcome) {
      if (!outcome) ++failed_;
      next();
      if (--to_end_ == 0) to_end_.notify_one();
    });
  }

  Client& client_;
  const std::vector<Request> requests_;
  std::atomic<int> to_start_;
  std::atomic<int> to_end_;
  std::atomic<int> failed_ = 0;
};

}  // namespace

TEST_CASE("calls in flight on two loops need no more connections than on one") {
  constexpr int kWidth = 32;
  FaultServer server;
  Client client(two_loops());
  Flow flow(client, {Request::get(server.url())}, 1000);
  flow.run(kWidth);
  CHECK(flow.failed() == 0);
  CHECK(server.connections() <= kWidth);
}

TEST_CASE("a call goes to the loop that has an idle connection to its origin") {
  FaultServer server;
  const HoldingServer pairs(2);
  Client client(two_loops());
  const auto send_pair = [&] { return client.send_async(Request::get(pairs.url())); };
  const auto send_one = [&] { return client.send_async(Request::get(server.url())).get(); };

  auto first = send_pair();  // on the first loop
  REQUIRE(send_one());       // on the second
  auto second = send_pair();
  REQUIRE(first.get());
  REQUIRE(second.get());

  for (int i = 0; i < 3; ++i) REQUIRE(send_one());
  CHECK(server.connections() == 1);
  auto third = send_pair();
  auto fourth = send_pair();
  const auto outcomes = {third.get(), fourth.get()};
  for (const auto& outcome : outcomes) {
    REQUIRE(outcome);
    CHECK(outcome->exchange.reused_connection);
  }
}

TEST_CASE("idle connections leave 32 of the descriptors that the process may have") {
  const FaultServer first;
  auto options = two_loops();
  options.threads = 1;
  Client client(options);
  CHECK_FALSE(client.send_async(Request::get("nonsense")).get());  // now there is a loop
  const auto limit = next_file() + 40;
  {
    const FileLimit few(limit);
    REQUIRE(client.send_async(Request::get(first.url())).get());
  }
  const auto most_idle = limit - 32;
  const auto width = most_idle + 20;
  const HoldingServer server(width);
  std::size_t reused = 0;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::future<Outcome>> outcomes;
    for (std::size_t i = 0; i < width; ++i) {
      outcomes.push_back(client.send_async(Request::get(server.url())));
    }
    reused = 0;
    for (auto& one : outcomes) {
      const auto outcome = one.get();
      REQUIRE(outcome);
      if (outcome->exchange.reused_connection) ++reused;
    }
  }
  CHECK(reused <= most_idle);
  CHECK(reused >= most_idle / 2);
}
