// Kills workers of a queue at random moments, again and again, and then compares what the queue
// says with what the server saw: each id has one line in the results or is unknown; what must not
// be sent twice was executed at most once; a key went with one body, and a body with one key.
//
//   kill_workers --program HTTPRETRY --clock-ahead LIBRARY [--lines N] [--kills N] [--seed N]
//
// Meanwhile one worker's clock is an hour ahead, one is stopped for three leases, and the Redis
// server is killed, too, and forgets its scripts.
#include "options.hpp"

#include "tests/fleet/redis_server.hpp"

#include <httpretry/client/report.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <sstream>
#include <thread>

using namespace httpretry;
using namespace httpretry::crash;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kWorkers = 4;
constexpr auto kLease = 2s;

// A program that runs.
class Process {
 public:
  Process(const std::vector<std::string>& words, const std::string& output,
          const std::string& preload = {})
      : output_(output) {
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::string path = "PATH=/usr/bin:/bin";
    std::string loaded = "LD_PRELOAD=" + preload;
    std::string asan = "ASAN_OPTIONS=verify_asan_link_order=0";
    std::vector<char*> environment{path.data()};
    if (!preload.empty()) environment.insert(environment.end(), {loaded.data(), asan.data()});
    environment.push_back(nullptr);
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const int failed = ::posix_spawn(&process_, arguments.front(), &actions, nullptr,
                                     arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    check(failed == 0, "cannot run " + words.front());
  }
  ~Process() {
    if (process_ > 0) kill();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { ::kill(process_, signal); }
  void kill() {
    send(SIGKILL);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(process_, 0), &status, 0);
    check(WIFEXITED(status), "a program ended by a signal that was not ours: " + said());
    return WEXITSTATUS(status);
  }
  [[nodiscard]] std::string said() const {
    std::ostringstream text;
    text << std::ifstream(output_).rdbuf();
    return text.str();
  }

 private:
  std::string output_;
  pid_t process_ = 0;
};

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class Run {
 public:
  Run(const Options& options, Server& server)
      : options_(options),
        server_(server),
        random_(options.seed),
        // With everysec, while the disk is busy, Redis may reply before it has written to its log.
        // Killed then, it forgets an intent that it has confirmed.
        redis_({"--appendonly", "yes", "--appendfsync", "no"}) {
    auto name = (fs::temp_directory_path() / "httpretry-workers-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "no folder");
    folder_ = name;
  }
  ~Run() {
    workers_.clear();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void enqueue() {
    const auto deadline = rfc3339(std::chrono::system_clock::now() + 30min);
    write_input(folder_ / "in.jsonl", server_, options_.lines, deadline);
    // Killed halfway, and then once more: the ids are the same.
    Process first(words({"batch", "--enqueue", folder_ / "in.jsonl"}), folder_ / "said");
    std::this_thread::sleep_for(std::chrono::milliseconds(below(100)));
    first.kill();
    run({"batch", "--enqueue", folder_ / "in.jsonl"});
  }

  void work() {
    for (std::size_t i = 0; i < kWorkers; ++i) workers_.push_back(start(i));
    const auto per_kill = options_.lines / (options_.kills + 4);
    for (std::size_t i = 0; i < options_.kills; ++i) {
      await_requests(1 + below(per_kill * 2));
      std::this_thread::sleep_for(std::chrono::microseconds(below(5'000)));
      const auto index = below(kWorkers);
      workers_[index]->kill();
      workers_[index] = start(index);
      if (i == options_.kills / 4) stop_one((index + 1) % kWorkers);
      if (i == options_.kills / 2) restart_redis();
    }
    continue_stopped();
    for (auto& worker : workers_) {
      auto status = worker->wait();
      // It began while the Redis server was away.
      if (status == 23) {
        worker = start(kWorkers);
        status = worker->wait();
      }
      check(status == 0 || status == 22 || status == 75,
            "status " + std::to_string(status) + ": " + worker->said());
    }
  }

  void compare() {
    run({"work", "--results", folder_ / "results", "--dead", folder_ / "dead"});
    auto states = states_of(lines_of(folder_ / "results"), "results");
    const auto dead = states_of(lines_of(folder_ / "dead"), "dead");
    std::size_t dead_results = 0;
    for (const auto& [id, state] : states) {
      check((state == "dead") == dead.contains(id),
            std::to_string(id) + " is dead in one file only");
      dead_results += state == "dead" ? 1 : 0;
    }
    check(dead_results == dead.size(), "there are dead letters that are not in the results");
    const auto in_results = states.size();
    for (std::size_t id = 1; id <= options_.lines; ++id) states.emplace(id, "unknown");
    check(states.size() == options_.lines, "there are results of jobs that nobody added");
    const auto unknown = states.size() - in_results;
    const auto status = run({"work", "--status"});
    check(status.find(" " + std::to_string(unknown) + "  unknown\n") != std::string::npos,
          std::to_string(unknown) + " jobs are not in the results, and it says:\n" + status);
    check(status.find(" 0  queued\n") != std::string::npos, "some are queued:\n" + status);
    for (const auto& [id, state] : states) {
      check(state != "unknown" || kind_of(id) == Kind::Unkeyed,
            std::to_string(id) + " is safe to repeat, and unknown");
    }
    compare_with(server_, states);
    std::printf("%zu jobs: %zu in the results, %zu of them dead; %zu unknown\n%s", states.size(),
                in_results, dead.size(), unknown, status.c_str());
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  std::vector<std::string> words(std::vector<std::string> more) {
    more.insert(more.begin(), options_.program);
    more.insert(more.end(), {"--queue", redis_.url() + "?job=jobs", "--progress", "none"});
    return more;
  }
  std::string run(const std::vector<std::string>& more) {
    Process process(words(more), folder_ / "said");
    const auto status = process.wait();
    check(status == 0, "status " + std::to_string(status) + ": " + process.said());
    return process.said();
  }
  std::unique_ptr<Process> start(std::size_t index) {
    const auto output = folder_ / ("worker" + std::to_string(++started_));
    auto all = words({"work", "--drain", "--lease", std::to_string(kLease.count()) + "s",
                      "--parallel", "16", "--set", "max_attempts=6", "--set", "budget=none",
                      "--set", "backoff.initial=1ms", "--set", "throttle_backoff=\"none\""});
    return std::make_unique<Process>(all, output, index == 0 ? options_.preload : "");
  }
  // Until the server has seen so many more; or seems to see no more.
  void await_requests(std::size_t more) {
    const auto least = server_.requests() + more;
    for (int i = 0; i < 1'000 && server_.requests() < least; ++i) std::this_thread::sleep_for(1ms);
  }
  void stop_one(std::size_t index) {
    stopped_ = workers_[index].get();
    stopped_->send(SIGSTOP);
    stopped_until_ = std::chrono::steady_clock::now() + 3 * kLease;
    // It is not killed meanwhile.
    workers_.push_back(std::move(workers_[index]));
    workers_[index] = start(index);
  }
  void continue_stopped() {
    if (stopped_ == nullptr) return;
    std::this_thread::sleep_until(stopped_until_);
    stopped_->send(SIGCONT);
  }
  void restart_redis() {
    {
      fleet::Link::Options options;
      options.address = redis_.address();
      // This machine may be busy.
      options.reply_timeout = options.connect_timeout = std::chrono::seconds(30);
      fleet::Link link(std::move(options));
      check(ask(link, {"SCRIPT", "FLUSH"}).text == "OK", "SCRIPT FLUSH failed");
    }
    await_requests(20);
    redis_.kill();
    redis_.start();
  }

  const Options& options_;
  Server& server_;
  std::mt19937 random_;
  RedisServer redis_;
  fs::path folder_;
  std::vector<std::unique_ptr<Process>> workers_;
  std::size_t started_ = 0;
  Process* stopped_ = nullptr;
  std::chrono::steady_clock::time_point stopped_until_;
};

}  // namespace

int main(int count, char** words) {
  return run_checked([&] {
    const auto options = parse(count, words, {"", "", 5'000, 10}, "--clock-ahead");
    Server server(options.seed);
    Run run(options, server);
    run.enqueue();
    run.work();
    run.compare();
  });
}
