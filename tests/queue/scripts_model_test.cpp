// Random steps of three workers on one queue, compared with a model of the states of its jobs.
#include "scripts.hpp"

#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::queue;

namespace {

// A job, as the model knows it.
struct Model {
  char state = 'q';  // queued, sent, waiting, done, x: dead, or unknown
  int results = 0;
};

// A job that a worker got. It may have lost the job since.
struct Flight {
  std::string worker;
  Taken job;
  bool intended = false;
};

class ModelTest {
 public:
  explicit ModelTest(unsigned seed) : random_(seed) {}

  // Returns how many unknown jobs were queued again.
  std::size_t run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      check();
    }
    return retried_;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  std::string worker() { return "w" + std::to_string(below(3)); }

  void step() {
    switch (below(10)) {
      case 9: return retry();
      case 0: return add();
      case 1:
      case 2: return take(queue_.take(worker_ = worker(), static_cast<int>(below(3)) + 1), false);
      case 3: return silence();
      case 4: return tick();
      default: return with_flight();
    }
  }
  void add() {
    const auto id = std::to_string(jobs_.size());
    queue_.add(id);
    jobs_[id] = Model();
  }
  void take(const std::vector<Taken>& taken, bool again) {
    for (const auto& job : taken) {
      CHECK(jobs_.at(job.id).state == 'q');
      CHECK((job.deliveries > 1) == again);
      // An earlier flight of the job stays in the list; what it reports is too late.
      flights_.push_back({worker_, job});
      owner_[job.id] = flights_.size() - 1;
    }
  }
  // One worker takes over all jobs that the others have.
  void silence() {
    if (below(3) != 0) return;
    worker_ = worker();
    std::vector<std::string> sent;
    for (const auto& [id, flight] : owner_) {
      if (flights_[flight].intended) sent.push_back(id);
    }
    take(queue_.reap(worker_, 0), true);
    for (const auto& id : sent) {
      jobs_.at(id).state = 'u';
      owner_.erase(id);
    }
  }
  // Queues some unknown jobs again. The server chooses which.
  void retry() {
    if (below(3) != 0) return;
    const auto most = static_cast<std::int64_t>(below(2)) + 1;
    const auto before = unknown();
    const auto count = std::min(most, static_cast<std::int64_t>(before.size()));
    CHECK(queue_.retry(static_cast<int>(most)) == count);
    const auto after = queue_.unknown();
    for (const auto& id : before) {
      if (after.contains(id)) continue;
      jobs_.at(id).state = 'q';
      holder_.erase(id);
    }
    retried_ += static_cast<std::size_t>(count);
  }
  std::set<std::string> unknown() const {
    std::set<std::string> ids;
    for (const auto& [id, job] : jobs_) {
      if (job.state == 'u') ids.insert(id);
    }
    return ids;
  }
  void tick() {
    queue_.pass(2);
    queue_.run(kTick, {"", "1000"});
    for (auto& [id, job] : jobs_) {
      if (job.state == 'w') job.state = 'q';
    }
  }
  void with_flight() {
    if (flights_.empty()) return;
    const auto index = below(flights_.size());
    auto& flight = flights_[index];
    const auto& id = flight.job.id;
    auto& job = jobs_.at(id);
    const auto owner = owner_.find(id);
    const bool mine = owner != owner_.end() && owner->second == index;
    const auto holder = holder_.find(id);
    const bool resolves = job.state == 'u' && holder != holder_.end() && holder->second == index;
    if (ended_.contains(index)) return;
    const std::string expected = flight.intended ? "s" : "q";
    const auto act = below(4);
    if (act == 0) {
      CHECK(queue_.intend(flight.worker, flight.job) == mine);
      if (!mine) return;
      flight.intended = true;
      holder_[id] = index;
      job.state = 's';
      return;
    }
    ended_.insert({index, true});
    const bool good = mine || resolves;
    if (act == 1) {
      CHECK((queue_.wait(flight.worker, flight.job, expected, 1) == 1) == good);
      if (good) job.state = 'w';
    } else if (act == 2) {
      CHECK((queue_.release(flight.worker, flight.job, expected) == 1) == good);
      if (good) job.state = 'q';
    } else {
      const bool dead = below(4) == 0;
      const int answer = mine ? 1 : resolves ? 2 : 0;
      CHECK(queue_.finish(flight.worker, flight.job, expected, dead ? "x" : "d") == answer);
      if (good) job.state = dead ? 'x' : 'd';
      if (good) ++job.results;
    }
    if (mine) owner_.erase(id);
  }
  void check() {
    std::map<char, std::int64_t> counts;
    std::size_t results = 0;
    for (const auto& [id, job] : jobs_) {
      ++counts[job.state];
      CHECK(job.results <= 1);
      results += static_cast<std::size_t>(job.results);
    }
    CHECK(queue_.numbers() ==
          Numbers{counts['q'], counts['s'], counts['w'], counts['d'], counts['x'], counts['u']});
    CHECK(queue_.unknown() == unknown());
    CHECK(queue_.lines().size() == results);
    CHECK(queue_.pending() == owner_.size());
    CHECK(queue_.length() == counts['q'] + counts['s']);
    CHECK_FALSE(read_totals(queue_.run(kReadTotals, {""}))->damaged);
  }

  std::mt19937 random_;
  Scripts queue_;
  std::string worker_;
  std::map<std::string, Model> jobs_;
  std::vector<Flight> flights_;
  std::map<std::string, std::size_t> owner_;  // the flight that has the job
  std::map<std::string, std::size_t>
      holder_;  // the last flight that announced that it sends the job
  std::size_t retried_ = 0;
  std::map<std::size_t, bool> ended_;
};

}  // namespace

TEST_CASE("random steps of three workers, against a model of the states") {
  std::size_t retried = 0;
  for (unsigned seed = 1; seed <= static_cast<unsigned>(rounds(4)); ++seed) {
    CAPTURE(seed);
    retried += ModelTest(seed).run(250);
  }
  CHECK(retried > 0);
}
