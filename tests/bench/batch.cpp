// Lists of requests: reading them into a journal, and sending them beside the client alone.
//
//   batch import COUNT     a list of COUNT GETs with ids: reading it, opening it again, and sending
//                          the first 20 000
//   batch send WAY COUNT   COUNT requests, 64 in flight. WAY: client (send_then, with the same
//                          chain and without a list), process and power (what --durability says),
//                          unsafe (power, and none may be sent twice)
//   batch busy WHAT COUNT  COUNT requests, 16 in flight, to a server that takes 12 ms for each. Of
//                          100 sends, `plain` answers 7 with 503, `zero` the same 7 with
//                          "Retry-After: 0", `second` 5 with "Retry-After: 1", `healthy` none
#include "measure.hpp"

#include <httpretry/batch/batch.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

using namespace bench;             // NOLINT
using namespace httpretry;         // NOLINT
using namespace httpretry::batch;  // NOLINT

namespace {

constexpr long kAtOnce = 64;
constexpr std::uint64_t kSent = 20'000;
constexpr const char* kPath = "/item";  // which our own server answers

class Folder {
 public:
  Folder() {
    auto name = (std::filesystem::temp_directory_path() / "httpretry-bench-XXXXXX").string();
    demand(::mkdtemp(name.data()) != nullptr, "no folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

double peak_mib() {
  struct ::rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The bytes of the lines.
std::uint64_t write_list(const std::string& path, const std::string& url, long count, bool unsafe) {
  std::ofstream list(path);
  for (long i = 1; i <= count; ++i) {
    list << R"({"id":"job-)" << 10'000'000 + i << R"(","url":")" << url << "\"";
    if (unsafe) list << R"(,"set":{"repeat":"never"})";
    list << "}\n";
  }
  demand(list.flush().good(), "cannot write the list");
  return std::filesystem::file_size(path);
}

BatchOptions options_of(const Folder& folder) {
  BatchOptions options;
  options.input = folder / "in";
  options.results = folder / "results";
  options.on_problem = [](const Problem& problem) { std::puts(to_string(problem).c_str()); };
  return options;
}

std::uint64_t journal_bytes(const Folder& folder) {
  std::uint64_t bytes = 0;
  for (const auto* name : {"in.httpretry.db", "in.httpretry.db-wal"}) {
    if (std::filesystem::exists(folder / name)) bytes += std::filesystem::file_size(folder / name);
  }
  return bytes;
}

void import(const Server& server, long count) {
  const Folder folder;
  const auto lines = write_list(folder / "in", server.url(), count, false);
  const auto each = static_cast<double>(count);
  const auto read =
      spent_in([&] { demand(Batch::open(options_of(folder)) != nullptr, "problems"); });
  const auto imported = journal_bytes(folder);
  const auto peak = peak_mib();

  std::unique_ptr<Batch> run;
  auto options = options_of(folder);
  Runner* runner = nullptr;
  options.runner.progress_every = std::chrono::milliseconds(1);
  options.runner.on_progress = [&](const RunProgress& progress) {
    if (progress.ended >= kSent) runner->finish_up();
  };
  const auto again = spent_in([&] { run = Batch::open(std::move(options)); });
  runner = &run->runner();
  run->run();
  const auto ended = static_cast<double>(run->counts().done);
  demand(ended > 0, "nothing was sent");
  run.reset();
  std::printf(
      R"({"count": %ld, "lines_per_second": %.0f, "cpu_us": %.2f, "bytes_each": %.1f, )"
      R"("bytes_each_ended": %.1f, "peak_mib": %.1f, "open_again_s": %.3f, "peak_sending_mib": %.1f})"
      "\n",
      count, each / read.wall_us * 1e6, read.cpu_us / each,
      (static_cast<double>(imported) - static_cast<double>(lines)) / each,
      (static_cast<double>(journal_bytes(folder)) - static_cast<double>(imported)) / ended, peak,
      again.wall_us / 1e6, peak_mib());
}

// Sends `count` requests by `send`, and prints what each takes.
void measure(const Server& server, long count, const std::function<void()>& send) {
  const auto before = server.cpu_us();
  const auto spent = spent_in(send);
  const auto each = static_cast<double>(count);
  std::printf(R"({"per_second": %.0f, "cpu_us": %.1f, "server_us": %.1f, "waits": %.3f})"
              "\n",
              each / spent.wall_us * 1e6, spent.cpu_us / each, (server.cpu_us() - before) / each,
              spent.waits / each);
}

void send_by_client(const Server& server, long count) {
  Client client{ClientOptions()};
  std::atomic<long> started = 0;
  std::atomic<long> ended = 0;
  std::function<void()> next = [&] {
    if (started.fetch_add(1) >= count) return;
    client.send_then(Request::get(server.url(kPath)), [&](const Outcome& outcome) {
      demand(outcome && outcome->status == 200, "a request failed");
      next();
      if (ended.fetch_add(1) + 1 == count) ended.notify_one();
    });
  };
  measure(server, count, [&] {
    for (long i = 0; i < kAtOnce; ++i) next();
    for (auto now = ended.load(); now < count; now = ended.load()) ended.wait(now);
  });
}

void send_list(const Server& server, std::string_view way, long count) {
  const Folder folder;
  write_list(folder / "in", server.url(kPath), count, way == "unsafe");
  auto options = options_of(folder);
  options.durability = way == "process" ? Durability::Process : Durability::Power;
  options.runner.parallel = kAtOnce;
  const auto run = Batch::open(std::move(options));
  demand(run != nullptr, "problems");
  measure(server, count, [&] { run->run(); });
  demand(run->counts().total() == static_cast<std::uint64_t>(count), "a request was lost");
  demand(run->counts().queued == 0, "a request was not sent");
}

// For how long pauses held sends, as one time.
class PausedTime final : public Observer {
 public:
  void paused(const Call& call, const PauseBegun& pause) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto from = std::max(call.scheduler().now(), until_);
    if (pause.until > from) all_ += pause.until - from;
    until_ = std::max(until_, pause.until);
  }
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(all_).count(); }

 private:
  std::mutex mutex_;
  Time until_{};
  Duration all_{};
};

void send_to_busy_server(std::string_view what, long count) {
  std::atomic<int> sends = 0;
  const int share = what == "healthy" ? 0 : what == "second" ? 5 : 7;
  Step step;
  step.respond = [&](const SeenRequest&) {
    const int number = sends.fetch_add(1);
    // Not near the end, which would wait for the backoff of the last calls.
    const bool fails = number * share % 100 < share && number < count * 9 / 10;
    Step answer(fails ? 503 : 200);
    if (answer.status == 503 && what == "zero") answer.headers.set("Retry-After", "0");
    if (answer.status == 503 && what == "second") answer.headers.set("Retry-After", "1");
    answer.delay = std::chrono::milliseconds(12);
    return answer;
  };
  const FaultServer server({step});
  const Folder folder;
  write_list(folder / "in", server.url(kPath), count, false);
  auto options = options_of(folder);
  options.runner.parallel = 16;
  const auto paused = std::make_shared<PausedTime>();
  options.client.observers.push_back(paused);
  const auto run = Batch::open(std::move(options));
  demand(run != nullptr, "problems");
  const auto spent = spent_in([&] { run->run(); });
  demand(run->counts().done == static_cast<std::uint64_t>(count), "a request failed");
  std::printf(R"({"seconds": %.3f, "per_second": %.0f, "paused_s": %.3f, "sends": %d})"
              "\n",
              spent.wall_us / 1e6, static_cast<double>(count) / spent.wall_us * 1e6,
              paused->seconds(), sends.load());
}

}  // namespace

int main(int argc, char** argv) {
  const Server server;
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "import" && argc == 3) {
    import(server, std::atol(argv[2]));
  } else if (what == "send" && argc == 4 && std::string_view(argv[2]) == "client") {
    send_by_client(server, std::atol(argv[3]));
  } else if (what == "send" && argc == 4) {
    send_list(server, argv[2], std::atol(argv[3]));
  } else if (what == "busy" && argc == 4) {
    send_to_busy_server(argv[2], std::atol(argv[3]));
  } else {
    demand(false,
           "usage: batch import COUNT | batch send client|process|power|unsafe COUNT | "
           "batch busy healthy|plain|zero|second COUNT");
  }
}
