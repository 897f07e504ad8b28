// Kills `httpretry batch` at random moments, again and again, and then compares what it says with
// what the server saw: each id has one line in the results or is unknown; what must not be sent
// twice was executed at most once; a key went with one body, and a body with one key.
//
//   crash --program HTTPRETRY [--lines N] [--kills N] [--seed N] [--power-loss LIBRARY]
//
// With --power-loss, each kill leaves only what was synced: LIBRARY is synced_copies.
#include "options.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <thread>

using namespace httpretry;
using namespace httpretry::crash;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

fs::path new_folder(const fs::path& parent) {
  auto name = (parent / "httpretry-crash-XXXXXX").string();
  check(::mkdtemp(name.data()) != nullptr, "no folder");
  return name;
}

// The folder of a run, and the process that works there.
class Run {
 public:
  explicit Run(const Options& options) : options_(options) {
    const fs::path memory = "/dev/shm";
    folder_ = new_folder(fs::is_directory(memory) ? memory : fs::temp_directory_path());
    fs::create_directory(state());
    fs::create_directory(copies());
    if (options_.preload.empty()) return;
    // A copy, because a space in a path would end it in LD_PRELOAD. Nothing may be loaded from
    // /dev/shm where that is mounted with noexec.
    library_folder_ = new_folder(fs::temp_directory_path());
    fs::copy_file(options_.preload, library());
  }
  ~Run() {
    fs::remove_all(folder_);
    if (!library_folder_.empty()) fs::remove_all(library_folder_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] fs::path input() const { return folder_ / "in.jsonl"; }
  [[nodiscard]] fs::path state() const { return folder_ / "state"; }
  [[nodiscard]] fs::path copies() const { return folder_ / "copies"; }
  [[nodiscard]] fs::path library() const { return library_folder_ / "power_loss.so"; }

  void start() {
    spawn({"batch",
           "--journal",
           state() / "journal",
           "--results",
           state() / "results",
           "--dead",
           state() / "dead",
           "--progress",
           "none",
           "--set",
           "max_attempts=6",
           "--set",
           "budget=none",
           "--set",
           "backoff.initial=1ms",
           "--set",
           "throttle_backoff=\"none\"",
           "--durability",
           options_.preload.empty() ? "process" : "power",
           input()},
          folder_ / "said");
  }
  // The exit status; empty while it runs.
  std::optional<int> ended(bool wait = false) {
    int status = 0;
    const auto found = ::waitpid(process_, &status, wait ? 0 : WNOHANG);
    if (found == 0) return std::nullopt;
    check(found == process_ && WIFEXITED(status),
          "the program ended by a signal that was not ours");
    return WEXITSTATUS(status);
  }
  void kill() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    if (!options_.preload.empty()) lose_power();
  }
  std::vector<std::string> unknown() {
    spawn({"batch", "--export", "unknown", state() / "journal"}, folder_ / "unknown");
    check(ended(true) == 0, "--export unknown failed");
    return lines(folder_ / "unknown");
  }
  [[nodiscard]] static std::vector<std::string> lines(const fs::path& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  [[nodiscard]] std::string said() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "said").rdbuf();
    return text.str();
  }

 private:
  void spawn(const std::vector<std::string>& args, const fs::path& output) {
    std::vector<char*> words{const_cast<char*>(options_.program.c_str())};
    for (const auto& arg : args) words.push_back(const_cast<char*>(arg.c_str()));
    words.push_back(nullptr);
    std::vector<std::string> variables{"PATH=/usr/bin:/bin"};
    if (!options_.preload.empty()) {
      variables.push_back("LD_PRELOAD=" + library().string());
      variables.push_back("SYNCED_FOLDER=" + state().string());
      variables.push_back("SYNCED_COPIES=" + copies().string());
      variables.emplace_back("ASAN_OPTIONS=verify_asan_link_order=0");
    }
    std::vector<char*> environment;
    for (auto& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const int failed = ::posix_spawn(&process_, options_.program.c_str(), &actions, nullptr,
                                     words.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    check(failed == 0, "cannot run " + options_.program);
  }

  // Replaces the files by what was synced of them.
  void lose_power() const {
    fs::remove_all(state());
    fs::create_directory(state());
    for (const auto& line : lines(copies() / "names")) {
      const auto space = line.find(' ');
      const auto copy = copies() / ("i" + line.substr(0, space));
      const auto file = state() / line.substr(space + 1);
      if (fs::exists(copy)) {
        fs::copy_file(copy, file);
      } else {
        std::ofstream(file).flush();
      }
    }
    // These files are others, with other numbers.
    for (const auto& entry : fs::directory_iterator(copies())) fs::remove(entry);
    std::ofstream names(copies() / "names");
    for (const auto& entry : fs::directory_iterator(state())) {
      struct stat about {};
      check(::stat(entry.path().c_str(), &about) == 0, "no " + entry.path().string());
      fs::copy_file(entry.path(), copies() / ("i" + std::to_string(about.st_ino)));
      fs::create_hard_link(entry.path(), copies() / ("p" + std::to_string(about.st_ino)));
      names << about.st_ino << " " << entry.path().filename().string() << "\n";
    }
  }

  const Options& options_;
  fs::path folder_;
  fs::path library_folder_;  // empty: nothing is loaded
  pid_t process_ = 0;
};

void compare(Run& run, Server& server, const Options& options) {
  auto states = states_of(Run::lines(run.state() / "results"), "results");
  const auto dead = states_of(Run::lines(run.state() / "dead"), "dead");
  const auto unknown = states_of(run.unknown(), "unknown");
  std::size_t dead_results = 0;
  for (const auto& [id, state] : states) {
    check(!unknown.contains(id), std::to_string(id) + " is in the results, and unknown");
    check((state == "dead") == dead.contains(id), std::to_string(id) + " is dead in one file only");
    dead_results += state == "dead" ? 1 : 0;
  }
  check(dead_results == dead.size(), "there are dead letters that are not in the results");
  states.insert(unknown.begin(), unknown.end());
  check(states.size() == options.lines, "of " + std::to_string(options.lines) + " jobs only " +
                                            std::to_string(states.size()) +
                                            " are in the results or unknown");
  compare_with(server, states);
  std::printf("%zu jobs: %zu in the results, %zu of them dead; %zu unknown\n", states.size(),
              states.size() - unknown.size(), dead.size(), unknown.size());
}

// Runs that are killed at random moments: early ones while they read the input or the journal,
// others when the server has seen so many requests more.
void kill_some(Run& run, const Server& server, const Options& options) {
  std::mt19937 random(options.seed);
  const auto below = [&](std::size_t count) { return random() % count; };
  const auto per_kill = options.lines * 12 / 10 / options.kills;
  for (std::size_t i = 0; i < options.kills; ++i) {
    const auto more = below(4) == 0 ? 0 : below(per_kill * 2);
    const auto least = server.requests() + more;
    run.start();
    while (server.requests() < least) {
      if (const auto status = run.ended()) {
        check(*status == 0 || *status == 22 || *status == 75,
              "status " + std::to_string(*status) + ": " + run.said());
        std::printf("all was done before kill %zu\n", i + 1);
        return;
      }
      std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(below(more == 0 ? 60'000 : 5'000)));
    run.kill();
  }
}

}  // namespace

int main(int count, char** words) {
  return run_checked([&] {
    const auto options = parse(count, words, {"", "", 10'000, 20}, "--power-loss");
    Server server(options.seed);
    Run run(options);
    write_input(run.input(), server, options.lines);
    kill_some(run, server, options);
    run.start();
    const auto status = run.ended(true);
    check(status == 0 || status == 22 || status == 75,
          "status " + std::to_string(*status) + ": " + run.said());
    compare(run, server, options);
  });
}
