// Shared by the tests of a queue's scripts: the scripts of one queue, run directly on a real
// server.
#pragma once

#include "tests/fleet/redis_server.hpp"

#include "lib/extras/queue/remote_queue.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace httpretry::queue {

using fleet::Reply;

inline constexpr std::int64_t kLease = 3'600'000;  // ms; no test lasts as long

// A job that was delivered to a worker.
struct Taken {
  std::string entry;
  std::string id;
  std::int64_t deliveries = 0;
  std::int64_t attempts = 0;
  std::int64_t since = 0;
  std::string key;
  std::string request;
};

// How many jobs are queued, sent, waiting, done, dead, unknown.
using Numbers = std::vector<std::int64_t>;

// A queue on a server of its own. Each function runs one script or command, and returns its reply.
class Scripts {
 public:
  Scripts() : remote_(options()) {
    static_cast<void>(remote_.connect());
    remote_.open_or_make("policy");
  }

  Reply run(const fleet::Script& script, std::vector<std::string> arguments) {
    auto reply = remote_.ask(script, std::move(arguments));
    CAPTURE(reply.text);
    REQUIRE(!reply.failed());
    return reply;
  }
  Reply plain(std::vector<std::string> words) {
    return remote_.ask(plain_command(std::move(words)));
  }
  Reply add(const std::string& id, const std::string& request = "http://a/",
            const std::string& key = "", std::int64_t not_before = 0) {
    return run(kEnqueue, {"", "1", id, "7", key, std::to_string(not_before), request});
  }

  std::vector<Taken> take(const std::string& worker, int count = 1) {
    const auto reply = plain({"XREADGROUP", "GROUP", "w", worker, "COUNT", std::to_string(count),
                              "STREAMS", remote_.key(Key::Entries), ">"});
    std::vector<std::string> arguments{worker};
    if (!reply.list.empty()) {
      for (const auto& entry : reply.list[0].list[1].list) {
        arguments.push_back(entry.list[0].text);
        arguments.push_back(entry.list[1].list[1].text);
      }
    }
    return taken_of(run(kFetch, arguments));
  }
  std::vector<Taken> reap(const std::string& worker, std::int64_t lease = kLease) {
    const auto reply = run(kReap, {worker, std::to_string(lease), "100", "0-0", "3600000"});
    return taken_of(reply.list.at(1));
  }
  // The same after all leases have ended.
  std::vector<Taken> reap_later(const std::string& worker) {
    all_are_silent();
    return reap(worker);
  }
  // Ends all leases.
  void all_are_silent() {
    const auto& stream = remote_.key(Key::Entries);
    for (const auto& one : plain({"XPENDING", stream, "w", "-", "+", "1000"}).list) {
      plain({"XCLAIM", stream, "w", one.list[1].text, "0", one.list[0].text, "IDLE",
             std::to_string(2 * kLease), "JUSTID"});
    }
  }
  // Waits until so much of the server's time has passed.
  void pass(std::int64_t ms) {
    const auto until = time() + ms;
    while (time() < until) std::this_thread::yield();
  }
  // Returns the server's time.
  std::int64_t time() { return run(kReadTotals, {""}).at(9); }

  bool intend(const std::string& worker, const Taken& job) {
    return run(kIntend, {worker, job.entry, std::to_string(job.deliveries), job.id}).at(0) == 1;
  }
  std::int64_t finish(const std::string& worker, const Taken& job, const std::string& expected,
                      const std::string& state = "d", const std::string& reason = "") {
    const auto line = job.id + " by " + worker;
    return run(kFinish, {worker, job.entry, std::to_string(job.deliveries), job.id, expected, state,
                         "3", line, "dead " + line, reason})
        .integer;
  }
  std::int64_t wait(const std::string& worker, const Taken& job, const std::string& expected,
                    std::int64_t time) {
    return run(kWait, {worker, job.entry, std::to_string(job.deliveries), job.id, expected, "2",
                       std::to_string(time)})
        .integer;
  }
  std::int64_t release(const std::string& worker, const Taken& job, const std::string& expected) {
    return run(kWait, {worker, job.entry, std::to_string(job.deliveries), job.id, expected})
        .integer;
  }
  std::vector<std::string> beat(const std::string& worker, const std::vector<Taken>& jobs) {
    std::vector<std::string> arguments{worker};
    for (const auto& job : jobs) {
      arguments.push_back(job.entry);
      arguments.push_back(std::to_string(job.deliveries));
    }
    std::vector<std::string> entries;
    for (const auto& index : run(kBeat, arguments).list) {
      entries.push_back(jobs.at(static_cast<std::size_t>(index.integer)).entry);
    }
    return entries;
  }
  // Returns the ids of the unknown jobs.
  std::set<std::string> unknown() {
    std::set<std::string> ids;
    std::string cursor = "0";
    do {
      const auto page = run(kUnknown, {"", cursor, "10"});
      REQUIRE(page.list.size() == 2);
      for (const auto& job : page.list[1].list) {
        REQUIRE(job.list.size() == 4);
        ids.insert(job.list[0].text);
      }
      cursor = page.list[0].text;
    } while (cursor != "0");
    return ids;
  }
  std::int64_t retry(int most) { return run(kRetry, {"", std::to_string(most)}).integer; }
  Numbers numbers() {
    const auto totals = run(kReadTotals, {""});
    Numbers found;
    for (std::size_t i = 0; i < 6; ++i) found.push_back(totals.at(i));
    return found;
  }
  std::int64_t late() { return run(kReadTotals, {""}).at(6); }
  std::int64_t poison() { return run(kReadTotals, {""}).at(7); }
  // Returns the lines of the results, or those of the dead letters.
  std::vector<std::string> lines(Key key = Key::Results) {
    std::vector<std::string> found;
    for (const auto& entry : plain({"XRANGE", remote_.key(key), "-", "+"}).list) {
      found.push_back(entry.list[1].list[3].text);
    }
    return found;
  }
  // Returns the number of entries that were delivered and have not ended.
  std::size_t pending() {
    return plain({"XPENDING", remote_.key(Key::Entries), "w", "-", "+", "1000"}).list.size();
  }
  std::int64_t length() { return plain({"XLEN", remote_.key(Key::Entries)}).integer; }
  RemoteQueue& remote() { return remote_; }
  RedisServer& server() { return server_; }

 private:
  RemoteOptions options() {
    RemoteOptions options;
    options.address = server_.address();
    options.address.job = "jobs";
    options.reply_timeout = std::chrono::seconds(10);
    return options;
  }
  static std::vector<Taken> taken_of(const Reply& reply) {
    std::vector<Taken> found;
    for (const auto& one : reply.list) {
      REQUIRE(one.list.size() == 8);
      CHECK(one.at(5) == 7);  // the line
      found.push_back({one.list[0].text, one.list[1].text, one.at(2), one.at(3), one.at(4),
                       one.list[6].text, one.list[7].text});
    }
    return found;
  }

  RedisServer server_;
  RemoteQueue remote_;
};

inline Taken only(const std::vector<Taken>& jobs) {
  REQUIRE(jobs.size() == 1);
  return jobs.front();
}

}  // namespace httpretry::queue
