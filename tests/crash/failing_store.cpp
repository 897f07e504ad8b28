// Lets each call about a file, each allocation of SQLite and each of ours fail in turn while a
// journal is made, used and closed. Whatever fails: what the journal confirmed stays, nothing is
// given out again that must not be, and when nothing fails any more, the next run ends the rest.
//
//   failing_store [STEP]    of the allocations of SQLite, which are thousands, each STEP-th (7)
#include "failures.hpp"

#include "tests/batch/journal_files.hpp"

#include <httpretry/batch/batch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <string>

using namespace httpretry::batch;
using httpretry::failures::kNames;
using httpretry::failures::What;
namespace failures = httpretry::failures;

namespace {

// What the journal confirmed.
struct Promised {
  std::map<std::uint64_t, State> ended;
  std::set<std::uint64_t> intended;  // by a run that did not say how they ended
};

constexpr std::uint64_t kIntended = 99;  // in place of a state

[[noreturn]] void fail(const std::string& text) {
  failures::no_failures();
  std::fprintf(stderr, "failing_store: %s\n", text.c_str());
  std::abort();
}

// A run as the Runner does it: the third of its jobs must not be sent twice, some wait.
void run(JournalFiles& files, Journal* journal, Promised& promised) {
  if (journal == nullptr) fail("the input is refused");
  for (;;) {
    const auto jobs = take(*journal, 3);
    if (jobs.empty()) return;
    std::vector<const Job*> unsafe;
    for (const auto& job : jobs) {
      if (promised.ended.contains(job.number)) fail("a job was given out that had ended");
      if (promised.intended.contains(job.number))
        fail("a job was given out that may have been sent");
      if (job.number % 3 == 0 && job.number % 5 != 1) unsafe.push_back(&job);
    }
    if (!unsafe.empty()) journal->intend(unsafe);
    for (const auto* job : unsafe) promised.intended.insert(job->number);
    Promised next = promised;
    for (const auto& job : jobs) {
      next.intended.erase(job.number);
      if (job.number % 5 == 1 && job.attempts == 0) {
        journal->wait(job, std::chrono::seconds(1), 1, "busy");
        continue;
      }
      const auto state = job.number % 4 == 0 ? State::Dead : State::Done;
      journal->finish(job, end_of(*journal, job, state));
      next.ended[job.number] = state;
    }
    journal->hold("http://a", std::chrono::seconds(1));
    journal->commit();
    promised = std::move(next);
    files.pass(std::chrono::seconds(2));
  }
}

void check(JournalFiles& files, const Promised& promised) {
  const auto status = read_status(files.folder / "j.db");
  if (status.counts.queued + status.counts.waiting + status.counts.sending != 0)
    fail("a job is left");
  std::map<std::uint64_t, State> found;
  for (const auto& line : files.folder.lines("results")) {
    const auto result = read_result_line(line);
    if (!result) fail("a line of the results that is none: " + line);
    if (!found.emplace(result->input_line, result->end.state).second) fail("two lines about a job");
  }
  for (const auto& [number, state] : promised.ended) {
    if (!found.contains(number) || found.at(number) != state) fail("a job has lost its line");
  }
  if (found.size() + status.counts.unknown != status.counts.total())
    fail("a job is neither in the results nor unknown");
  if (status.counts.dead != files.folder.lines("dead").size()) fail("a dead letter is missing");
}

void run_with_failure(JournalFiles& files, What what, long k, bool is_killed, Promised& promised) {
  failures::fail_at(what, k);
  try {
    auto journal = files.open();
    // What is killed closes nothing.
    auto* const used = is_killed ? journal.release() : journal.get();
    run(files, used, promised);
  } catch (const StoreError& error) {
    if (std::string_view(error.what()).empty()) fail("an error without words");
  } catch (const std::bad_alloc&) {
    // As for an error: the run ends.
  }
  failures::no_failures();
}

// The same in a process that is killed where something fails.
bool run_and_kill(JournalFiles& files, What what, long k, Promised& promised) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) fail("no pipe");
  std::fflush(stdout);
  const auto child = ::fork();
  if (child == 0) {
    run_with_failure(files, what, k, true, promised);
    std::vector<std::uint64_t> words{static_cast<std::uint64_t>(failures::asked(what))};
    for (const auto& [number, state] : promised.ended) {
      words.insert(words.end(), {number, static_cast<std::uint64_t>(state)});
    }
    for (const auto number : promised.intended) words.insert(words.end(), {number, kIntended});
    const auto size = words.size() * sizeof words.front();
    ::_exit(::write(ends[1], words.data(), size) == static_cast<ssize_t>(size) ? 0 : 1);
  }
  ::close(ends[1]);
  std::uint64_t asked = 0;
  std::array<std::uint64_t, 2> entry{};
  if (::read(ends[0], &asked, sizeof asked) != sizeof asked) fail("the other process failed");
  while (::read(ends[0], entry.data(), sizeof entry) == sizeof entry) {
    if (entry[1] == kIntended) {
      promised.intended.insert(entry[0]);
    } else {
      promised.ended[entry[0]] = static_cast<State>(entry[1]);
    }
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) fail("the other process failed");
  return asked >= static_cast<std::uint64_t>(k);
}

// Whether something failed.
bool round(What what, long k, bool is_killed) {
  JournalFiles files;
  files.survives_power_loss = true;
  files.input_of(9);
  files.folder.append("in", "{\"url\":\"http://b/\",\"key\":true,\"output\":\"b\",\"id\":\"x\"}\n");
  Promised promised;
  bool reached = false;
  if (is_killed) {
    reached = run_and_kill(files, what, k, promised);
    files.pass(std::chrono::seconds(60));
  } else {
    run_with_failure(files, what, k, false, promised);
    reached = failures::asked(what) >= k;
  }
  run(files, files.open().get(), promised);
  check(files, promised);
  return reached;
}

void fail_in_turn(What what, bool is_killed, long step) {
  long places = 0;
  for (long k = 1; round(what, k, is_killed); k += step) ++places;
  std::printf("%-14s %ld places%s\n", kNames[static_cast<std::size_t>(what)].data(), places,
              is_killed ? ", and killed there" : "");
  if (places < 50) fail("hardly anything has failed");
}

}  // namespace

int main(int count, char** words) {
  const long step = count > 1 ? std::atol(words[1]) : 7;
  if (step < 1) {
    std::fprintf(stderr, "usage: failing_store [STEP]; STEP is a number from 1\n");
    return 2;
  }
  failures::replace_memory_of_sqlite();
  round(What::Call, 0, false);  // what is made only once is there after this
  for (const auto what : {What::Call, What::FullDisk}) {
    for (const bool is_killed : {false, true}) fail_in_turn(what, is_killed, 1);
  }
  fail_in_turn(What::SqliteMemory, false, step);
  fail_in_turn(What::Memory, false, 1);
  return 0;
}
