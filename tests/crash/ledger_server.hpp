// A server that fails now and then and remembers what it saw of each job, for programs that kill
// clients; and what must be true of it, and of their results, afterwards.
#pragma once

#include "lib/core/base/text.hpp"
#include "lib/core/json/detail/json.hpp"

#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace httpretry::crash {

[[noreturn]] inline void fail(const std::string& text) { throw std::runtime_error(text); }

inline void check(bool holds, const std::string& text) {
  if (!holds) fail(text);
}

// Returns the status of the program. What it started is stopped also where a check fails.
template <class Action>
int run_checked(Action action) {
  try {
    action();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
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

inline Kind kind_of(std::size_t line) { return static_cast<Kind>(line % 4); }

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

// A quarter of each kind. With `deadline`, a date, each line has that and an id, its number.
inline void write_input(const std::filesystem::path& path, const Server& server, std::size_t lines,
                        const std::string& deadline = {}) {
  std::ofstream input(path);
  for (std::size_t i = 1; i <= lines; ++i) {
    const auto number = std::to_string(i);
    std::string line = "{\"url\":\"" + server.url(i) + "\"";
    if (!deadline.empty()) line += R"(,"id":")" + number + R"(","deadline":")" + deadline + "\"";
    if (kind_of(i) == Kind::Put) line += R"(,"method":"PUT")";
    if (kind_of(i) == Kind::Keyed) line += R"(,"key":true)";
    if (kind_of(i) != Kind::Get) line += R"(,"json":{"n":)" + number + "}";
    const bool bare = kind_of(i) == Kind::Get && deadline.empty();
    input << (bare ? server.url(i) : line + "}") << "\n";
  }
  check(input.flush().good(), "cannot write the input");
}

inline std::string text_of(const JsonNode& line, std::string_view name) {
  const auto* const member = line.member(name);
  check(member != nullptr, "a line without " + std::string(name));
  return std::string(member->text);
}

// The state of each id, from lines of JSON. Each id may occur once.
inline std::map<std::size_t, std::string> states_of(const std::vector<std::string>& lines,
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

// Each job that was sent, by the state that it is said to have.
inline void compare_with(Server& server, const std::map<std::size_t, std::string>& states) {
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
}

}  // namespace httpretry::crash
