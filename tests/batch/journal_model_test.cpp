// A journal against a model of it: random jobs, waits, ends, crashes and new lines.
#include "tests/batch/journal_files.hpp"
#include "tests/rounds.hpp"

#include <httpretry/batch/batch.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

using namespace httpretry;
using namespace httpretry::batch;

namespace {

struct Known {
  State state = State::Queued;
  WallTime until{};
};

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) { add_lines(20); }

  void run(int steps) {
    reopen();
    for (int i = 0; i < steps; ++i) step();
    crash();
    check();
  }

 private:
  std::size_t below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }

  void add_lines(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      const char* const host = below(2) == 0 ? "http://a/" : "http://b/";
      const char* const words[] = {"high", "normal", "low"};
      text += std::string(R"({"url":")") + host + R"(","priority":")" + words[below(3)] + "\"}\n";
      durable_[durable_.size() + 1] = Known();
    }
    files_.folder.append("in", text);
    now_ = durable_;
  }

  void reopen() {
    journal_ = files_.open();
    REQUIRE(journal_ != nullptr);
    check();
  }

  // What was not committed is as before, and what was on its way is unknown.
  void crash() {
    journal_.reset();
    flying_.clear();
    pending_.clear();
    for (auto& [line, known] : durable_) {
      if (known.state == State::Sending) known.state = State::Unknown;
      if (known.state == State::Unknown && files_.retry_unknown) known = {State::Waiting, {}};
    }
    now_ = durable_;
    reopen();
  }

  void step() {
    switch (below(12)) {
      case 0: return crash_or_append();
      case 1: return files_.pass(std::chrono::seconds(below(20)));
      case 2:
      case 3:
      case 4: return take_some();
      case 5:
        journal_->commit();
        durable_ = now_;
        pending_.clear();
        return check_results();
      case 6: return intend_some();
      default: return end_one();
    }
  }

  void crash_or_append() {
    if (below(4) != 0) return;
    files_.retry_unknown = below(4) == 0;
    if (below(2) == 0 && durable_.size() < 60) {
      journal_.reset();
      add_lines(below(4) + 1);
    }
    crash();
  }

  void take_some() {
    const auto host = below(3);
    std::vector<Job> jobs;
    journal_->take(
        below(5) + 1,
        [&](std::string_view name) {
          return host == 0 || name == (host == 1 ? "http://a" : "http://b");
        },
        jobs);
    for (auto& job : jobs) {
      const auto& known = now_.at(job.number);
      CAPTURE(job.number);
      // Given once, and only when it may be sent.
      CHECK_FALSE(flying_.contains(job.number));
      const bool due = known.state == State::Waiting && known.until <= files_.wall;
      CHECK((known.state == State::Queued || due));
      if (host != 0) CHECK(job.host == (host == 1 ? "http://a" : "http://b"));
      flying_.emplace(job.number, std::move(job));
    }
    if (jobs.empty() && host == 0) {
      for (const auto& [line, known] : now_) {
        const bool due = known.state == State::Waiting && known.until <= files_.wall;
        if (!flying_.contains(line) && !pending_.contains(line))
          CHECK_FALSE((known.state == State::Queued || due));
      }
    }
  }

  void intend_some() {
    std::vector<const Job*> jobs;
    for (const auto& [line, job] : flying_) {
      if (now_.at(line).state == State::Sending || below(2) == 0) continue;
      jobs.push_back(&job);
      now_[line].state = durable_[line].state = State::Sending;  // at once
    }
    if (!jobs.empty()) journal_->intend(jobs);
  }

  void end_one() {
    if (flying_.empty()) return;
    const auto at = std::next(flying_.begin(), static_cast<std::ptrdiff_t>(below(flying_.size())));
    const auto job = at->second;
    flying_.erase(at);
    auto& known = now_[job.number];
    switch (below(5)) {
      case 0: {
        const auto time = std::chrono::seconds(below(30));
        journal_->wait(job, time, 1, "busy");
        pending_.insert(job.number);
        known = {State::Waiting, files_.wall + time};
        break;
      }
      case 1:
        journal_->give_back(job);
        // It may have been in the journal as on its way.
        if (known.state == State::Sending) {
          known = {State::Waiting, {}};
          pending_.insert(job.number);
        }
        break;
      case 2: return finish(job, State::Dead);
      case 3: return finish(job, State::Unknown);
      default: return finish(job, State::Done);
    }
  }

  void finish(const Job& job, State state) {
    journal_->finish(job, end_of(*journal_, job, state));
    now_[job.number].state = state;
  }

  void check() {
    Counts counts;
    for (const auto& [line, known] : now_) {
      ++counts.of(known.state);
      const auto story = read_job(files_.folder / "j.db", std::to_string(line));
      REQUIRE(story.has_value());
      CAPTURE(story->line);
      CHECK(story->state == known.state);
    }
    CHECK(journal_->counts() == counts);
    check_results();
  }

  // Each job that has ended has one line, and no other has one.
  void check_results() {
    std::multiset<std::uint64_t> found;
    for (const auto& line : files_.folder.lines("results")) {
      const auto result = read_result_line(line);
      REQUIRE(result.has_value());
      found.insert(result->input_line);
    }
    std::multiset<std::uint64_t> dead;
    for (const auto& line : files_.folder.lines("dead")) {
      const auto result = read_result_line(result_in_dead_letter(line));
      REQUIRE(result.has_value());
      dead.insert(result->input_line);
    }
    std::multiset<std::uint64_t> ended;
    std::multiset<std::uint64_t> failed;
    for (const auto& [line, known] : durable_) {
      if (known.state == State::Done || known.state == State::Dead) ended.insert(line);
      if (known.state == State::Dead) failed.insert(line);
    }
    CHECK(found == ended);
    CHECK(dead == failed);
  }

  std::mt19937 random_;
  JournalFiles files_;
  std::unique_ptr<Journal> journal_;
  std::map<std::uint64_t, Known> durable_;  // what a crash leaves
  std::map<std::uint64_t, Known> now_;
  std::map<std::uint64_t, Job> flying_;
  std::set<std::uint64_t> pending_;  // wait, and are not committed yet
};

}  // namespace

TEST_CASE("a journal says of each job what its model says, through crashes and new lines") {
  for (unsigned seed = 1; seed <= static_cast<unsigned>(rounds(12)); ++seed) {
    CAPTURE(seed);
    Model(seed).run(400);
  }
}
