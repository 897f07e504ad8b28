// What calls feel of a hostile server on the same loop.
//
//   hostile FAULT COUNT    COUNT calls to a healthy server, alone, and then while a transfer from a
//                          server with that fault (gzip_bomb, http2_empty_data, ...) is running
#include "measure.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stop_token>
#include <thread>
#include <vector>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT

namespace {

using Clock = std::chrono::steady_clock;

// A FaultServer in a child process, so that it does not run on the CPU time of the client.
class HostileServer {
 public:
  explicit HostileServer(Fault fault) {
    void* shared =
        ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    demand(shared != MAP_FAILED, "mmap");
    state_ = new (shared) State;
    child_ = ::fork();
    demand(child_ >= 0, "fork");
    if (child_ == 0) serve(fault);
    while (state_->port == 0) {
      demand(::waitpid(child_, nullptr, WNOHANG) == 0, "the hostile server did not start");
      std::this_thread::yield();
    }
  }
  ~HostileServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::munmap(state_, sizeof(State));
  }
  HostileServer(const HostileServer&) = delete;
  HostileServer& operator=(const HostileServer&) = delete;

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(state_->port) + "/";
  }
  [[nodiscard]] long requests() const { return state_->requests; }

 private:
  struct State {
    std::atomic<int> port = 0;
    std::atomic<long> requests = 0;
  };
  [[noreturn]] void serve(Fault fault) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if the parent fails
    Step step(fault);
    step.size = std::uint64_t{1} << 60;
    FaultServerOptions options;
    options.on_request = [this](const SeenRequest&) { ++state_->requests; };
    const FaultServer server({step}, options);
    state_->port = server.port();
    for (;;) ::pause();
  }

  State* state_ = nullptr;
  pid_t child_ = 0;
};

// Requests the hostile server again and again: one transfer at a time, without a break.
class Attack {
 public:
  Attack(Client& client, const HostileServer& server, Fault fault)
      : client_(client), server_(server), bomb_(fault == Fault::GzipBomb) {
    send();
  }
  ~Attack() {
    ending_ = true;
    stop_.request_stop();
    running_.wait(true);
  }
  Attack(const Attack&) = delete;
  Attack& operator=(const Attack&) = delete;

  // Waits until the attack goes on: more of the bomb is decoded, or the next flood begins. A flood
  // that goes on for longer did not keep libcurl from returning, so it was not ended.
  void wait_for_progress() {
    const auto enough = Clock::now() + std::chrono::milliseconds(500);
    while (progress() == seen_ && Clock::now() < enough) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    seen_ = progress();
    demand(running_, "no attack is running");
  }
  [[nodiscard]] long calls() const { return calls_; }

 private:
  [[nodiscard]] long progress() const { return bomb_ ? decoded_.load() : server_.requests(); }

  void send() {
    auto request = Request::get(server_.url());
    auto& options = request.edit_options();
    options.compressed = bomb_;
    options.sink = pass_to([this](std::string_view bytes) {
      decoded_ += static_cast<long>(bytes.size());
      return true;
    });
    if (!bomb_) options.http_version = HttpVersion::Http2PriorKnowledge;
    CallOptions call;
    call.stop = stop_.get_token();
    const auto ended = [this](const Outcome& outcome) {
      demand(!outcome, "an attack ended well");
      ++calls_;
      if (!ending_) return send();
      running_ = false;
      running_.notify_one();
    };
    client_.send_then(std::move(request), ended, std::move(call));
  }

  Client& client_;
  const HostileServer& server_;
  const bool bomb_;
  long seen_ = 0;
  std::stop_source stop_;
  std::atomic<long> decoded_ = 0;
  std::atomic<long> calls_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> running_ = true;
};

struct Times {
  double p50 = 0;
  double p99 = 0;
};

// In milliseconds. `before` runs before each call.
Times times_of(Client& client, const std::string& url, int count, const auto& before) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    before();
    const auto begin = Clock::now();
    const auto outcome = client.send_async(Request::get(url)).get();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    demand(outcome && outcome->status == 200, "a call to the healthy server failed");
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1) + 0.5)];
  };
  return {at(0.5), at(0.99)};
}

}  // namespace

int main(int argc, char** argv) {
  demand(argc == 3, "usage: hostile FAULT COUNT");
  const auto fault = parse_fault(argv[1]);
  demand(fault.has_value(), "no such fault");
  const int count = std::atoi(argv[2]);
  const HostileServer hostile(*fault);  // first: it forks
  const Server healthy;
  auto client = Client::bare();

  times_of(client, healthy.url(), 10, [] {});  // connections, caches
  const auto alone = times_of(client, healthy.url(), count, [] {});
  Attack attack(client, hostile, *fault);
  const auto beside = times_of(client, healthy.url(), count, [&] { attack.wait_for_progress(); });
  std::printf(R"({"fault": "%s", "count": %d, "p50_alone": %.3f, "p50": %.3f, )"
              R"("p99_alone": %.3f, "p99": %.3f, "attacks": %ld})"
              "\n",
              argv[1], count, alone.p50, beside.p50, alone.p99, beside.p99, attack.calls() + 1);
}
