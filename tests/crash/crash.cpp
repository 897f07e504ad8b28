// Kills `httpretry batch` at random moments, again and again, and then compares what it says with
// what the server saw: each id has one line in the results or is unknown; what must not be sent
// twice was executed at most once; a key went with one body, and a body with one key.
//
//   crash --program HTTPRETRY [--lines N] [--kills N] [--seed N] [--power-loss LIBRARY]
//
// With --power-loss, each kill leaves only what was synced: LIBRARY is synced_copies.
#include <httpretry/testing/testing.hpp>

#include "lib/http/text.hpp"
#include "lib/json/json.hpp"

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
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

struct Options {
  std::string program;
  std::string power_loss;
  std::size_t lines = 10'000;
  std::size_t kills = 20;
  unsigned seed = 1;
};

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "crash: %s\n", text.c_str());
  std::exit(1);
}

void check(bool holds, const std::string& text) {
  if (!holds) fail(text);
}

// What the server saw of a job.
struct Entry {
  int seen = 0;
  int executed = 0;  // or may have been, as a client must think
  int answered = 0;  // with 200
  std::set<std::string> keys;
  std::set<std::string> bodies;
};

enum class Kind : std::uint8_t { Get, Put, Keyed, Unkeyed };

Kind kind_of(std::size_t line) { return static_cast<Kind>(line % 4); }

// A server of which a fifth of the responses are faults.
class Server {
 public:
  explicit Server(unsigned seed) : random_(seed), server_(scenario(), options()) {}

  [[nodiscard]] std::string url(std::size_t line) const {
    return server_.url("/" + std::to_string(line));
  }
  [[nodiscard]] std::size_t requests() const { return server_.requests(); }
  std::map<std::size_t, Entry> entries() {
    server_.stop();
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  static FaultServerOptions options() {
    FaultServerOptions options;
    options.max_seen = 1;
    return options;
  }
  Scenario scenario() {
    Step step;
    step.respond = [this](const SeenRequest& request) { return respond(request); };
    return {step};
  }

  Step respond(const SeenRequest& request) {
    const std::lock_guard lock(mutex_);
    auto step = choose();
    const auto line = to_number<std::size_t>(std::string_view(request.path).substr(1));
    check(line.has_value(), "a request to " + request.path);
    auto& entry = entries_[*line];
    ++entry.seen;
    const bool refused = step.fault == Fault::None && step.headers.contains("Retry-After");
    if (!refused) ++entry.executed;
    const bool responds = step.fault == Fault::None || step.fault == Fault::Stale;
    if (responds && step.status == 200) ++entry.answered;
    entry.keys.insert(std::string(request.headers.get("Idempotency-Key").value_or("")));
    entry.bodies.insert(request.body);
    return step;
  }

  Step choose() {
    const auto dice = random_() % 50;
    switch (dice) {
      case 0: return {Fault::Reset};
      case 1: return {Fault::ResetDuring};
      case 2: return {Fault::Close};
      case 3: return {Fault::Truncate};
      case 4: return {Fault::Stale};
      case 5: return {Fault::Garbage};
      case 6: return {500, "bad"};
      case 7: return {503, "busy"};
      case 8: return {503, Headers{{"Retry-After", "0"}}, "later"};
      case 9: return {429, Headers{{"Retry-After", "0"}}, "less"};
      default: return {200, "ok"};
    }
  }

  std::mutex mutex_;
  std::mt19937 random_;
  std::map<std::size_t, Entry> entries_;
  FaultServer server_;  // last: its threads use the others
};

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
    if (options_.power_loss.empty()) return;
    // A copy, because a space in a path would end it in LD_PRELOAD. Nothing may be loaded from
    // /dev/shm where that is mounted with noexec.
    library_folder_ = new_folder(fs::temp_directory_path());
    fs::copy_file(options_.power_loss, library());
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
           options_.power_loss.empty() ? "process" : "power",
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
    if (!options_.power_loss.empty()) lose_power();
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
    if (!options_.power_loss.empty()) {
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

void write_input(const Run& run, const Server& server, std::size_t lines) {
  std::ofstream input(run.input());
  for (std::size_t i = 1; i <= lines; ++i) {
    const auto number = std::to_string(i);
    const auto url = server.url(i);
    const auto body = R"(,"json":{"n":)" + number + "}";
    switch (kind_of(i)) {
      case Kind::Get: input << url << "\n"; break;
      case Kind::Put: input << R"({"method":"PUT","url":")" << url << "\"" << body << "}\n"; break;
      case Kind::Keyed: input << R"({"key":true,"url":")" << url << "\"" << body << "}\n"; break;
      case Kind::Unkeyed: input << R"({"url":")" << url << "\"" << body << "}\n"; break;
    }
  }
  check(input.flush().good(), "cannot write the input");
}

std::string text_of(const JsonNode& line, std::string_view name) {
  const auto* const member = line.member(name);
  check(member != nullptr, "a line without " + std::string(name));
  return std::string(member->text);
}

// The state of each id, from lines of JSON. Each id may occur once.
std::map<std::size_t, std::string> states_of(const std::vector<std::string>& lines,
                                             std::string_view what) {
  std::map<std::size_t, std::string> states;
  for (const auto& line : lines) {
    JsonTree tree;
    Problems problems("");
    read_json(line, tree, problems);
    check(tree.root != nullptr, "not a whole line in " + std::string(what) + ": " + line);
    const auto id = to_number<std::size_t>(text_of(*tree.root, "id"));
    check(id.has_value(), "an id that is no number");
    const auto state = what == "results" ? text_of(*tree.root, "state") : std::string(what);
    const bool is_new = states.emplace(*id, state).second;
    check(is_new, "two lines for " + std::to_string(*id) + " in " + std::string(what));
  }
  return states;
}

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
  for (const auto& [id, entry] : server.entries()) {
    const auto name = "the job " + std::to_string(id);
    const auto& state = states.at(id);
    check(entry.bodies.size() == 1, name + " was sent with two bodies");
    check(entry.keys.size() == 1, name + " was sent with two keys");
    check(entry.keys.begin()->empty() == (kind_of(id) != Kind::Keyed), name + " has a wrong key");
    if (kind_of(id) == Kind::Unkeyed) check(entry.executed <= 1, name + " was executed twice");
    if (kind_of(id) != Kind::Unkeyed)
      check(state != "unknown", name + " is safe to repeat, and unknown");
    if (state == "done")
      check(entry.answered > 0, name + " is done, and the server did not say so");
  }
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

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const std::string value = words[i + 1];
    const auto number = [&] { return static_cast<std::size_t>(std::stoul(value)); };
    if (name == "--program")
      options.program = value;
    else if (name == "--power-loss")
      options.power_loss = value;
    else if (name == "--lines")
      options.lines = number();
    else if (name == "--kills")
      options.kills = number();
    else if (name == "--seed")
      options.seed = static_cast<unsigned>(number());
    else
      fail(name + " is not an option");
  }
  if (options.program.empty()) fail("--program is missing");
  return options;
}

}  // namespace

int main(int count, char** words) {
  const auto options = parse(count, words);
  Server server(options.seed);
  Run run(options);
  write_input(run, server, options.lines);
  kill_some(run, server, options);
  run.start();
  const auto status = run.ended(true);
  check(status == 0 || status == 22 || status == 75,
        "status " + std::to_string(*status) + ": " + run.said());
  compare(run, server, options);
  return 0;
}
