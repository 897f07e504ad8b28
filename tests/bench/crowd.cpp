// Many at once, over one client.
//
//   crowd flight COUNT              calls in flight together on one loop, twice: with connections
//                                   to be made, and with those made; and what is kept of them
//   crowd clients COUNT             clients that have a loop and no connection
//   crowd threads COUNT REQUESTS    threads that send blocking calls
#include "measure.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT

namespace {

// All are answered when the last has come, so the first response finds all the others in flight.
class Wave {
 public:
  explicit Wave(long count) : left_(count) {}
  void answered(const Outcome& outcome) {
    demand(outcome && outcome->status == 200, "a call of the crowd failed");
    if (heap_ == 0) {
      heap_ = heap_bytes();
      resident_ = resident_bytes();
    }
    if (left_.fetch_sub(1) == 1) left_.notify_one();
  }
  void wait() const {
    for (auto now = left_.load(); now > 0; now = left_.load()) left_.wait(now);
  }
  [[nodiscard]] std::size_t heap() const { return heap_; }
  [[nodiscard]] std::size_t resident() const { return resident_; }

 private:
  std::atomic<long> left_;
  std::size_t heap_ = 0;  // the loop's thread writes them
  std::size_t resident_ = 0;
};

void flight(const Server& server, long count) {
  demand(raise_file_limit() > count + 100, "this process may not open that many files");
  Client client({retry()});
  demand(client.send_async(Request::get(server.url())).get().has_value(), "no server");
  const auto url = server.url("/hold/" + std::to_string(count));
  const auto heap = heap_bytes();
  const auto resident = resident_bytes();
  for (const auto* connections : {"cold", "warm"}) {
    Wave wave(count);
    const auto spent = spent_in([&] {
      for (long i = 0; i < count; ++i) {
        client.send_then(Request::get(url),
                         [&](const Outcome& outcome) { wave.answered(outcome); });
      }
      wave.wait();
    });
    const auto each = static_cast<double>(count);
    let_rest();
    std::printf(R"({"case": "flight, %s", "count": %ld, "cpu_us": %.1f, "per_second": %.0f, )"
                R"("heap_bytes": %.0f, "resident_bytes": %.0f, "idle_bytes": %.0f})"
                "\n",
                connections, count, spent.cpu_us / each, each / spent.wall_us * 1e6,
                static_cast<double>(wave.heap() - heap) / each,
                static_cast<double>(wave.resident() - resident) / each,
                static_cast<double>(heap_bytes() - heap) / each);
  }
}

void many_threads(const Server& server, long count, long requests) {
  Client client({retry()});
  const auto url = server.url();
  const auto work = [&](long each) {
    std::vector<std::jthread> threads;
    for (long i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        for (long sent = 0; sent < each; ++sent) {
          const auto outcome = client.get(url);
          demand(outcome && outcome->status == 200, "a request of a thread failed");
        }
      });
    }
  };
  work(20);
  const auto each = requests / count;
  const auto spent = spent_in([&] { work(each); });
  const auto all = static_cast<double>(each * count);
  std::printf(R"({"case": "threads", "count": %ld, "cpu_us": %.1f, "per_second": %.0f})"
              "\n",
              count, spent.cpu_us / all, all / spent.wall_us * 1e6);
}

// What clients hold that have a loop and no connection.
void clients(long count) {
  std::vector<std::unique_ptr<Client>> all;
  const auto add = [&] {
    ClientOptions options;
    options.middlewares = {retry()};
    all.push_back(std::make_unique<Client>(std::move(options)));
    demand(!all.back()->send_async(Request::get("nonsense")).get().has_value(),
           "nonsense was sent");
  };
  add();
  const auto heap = heap_bytes();
  for (long i = 0; i < count; ++i) add();
  std::printf(R"({"case": "client", "count": %ld, "heap_bytes": %.0f})"
              "\n",
              count, static_cast<double>(heap_bytes() - heap) / static_cast<double>(count));
}

}  // namespace

int main(int argc, char** argv) {
  const Server server;
  if (argc == 3 && std::strcmp(argv[1], "flight") == 0) {
    flight(server, std::atol(argv[2]));
  } else if (argc == 3 && std::strcmp(argv[1], "clients") == 0) {
    clients(std::atol(argv[2]));
  } else {
    demand(argc == 4 && std::strcmp(argv[1], "threads") == 0,
           "usage: crowd flight COUNT | crowd clients COUNT | crowd threads COUNT REQUESTS");
    many_threads(server, std::atol(argv[2]), std::atol(argv[3]));
  }
}
