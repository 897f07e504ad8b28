// The part of QueueStore that posts commands until the server has carried them out, reports errors
// of the server, and waits at the end of a run until everything is filed.
#include "queue_store.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <utility>

namespace httpretry::queue {
namespace {

using fleet::Reply;

// How often `close` gives back jobs that arrive late.
constexpr int kMostLeaves = 100;
// How long `close` waits for replies after `hurry`.
constexpr Duration kHurriedWait = std::chrono::seconds(1);

}  // namespace

// Posts a command about the job `id`, and again until it has a reply that is not an error. Then
// calls `done` with the reply, on the link's thread.
void QueueStore::file(const std::string& id, const Script& script,
                      std::vector<std::string> arguments,
                      std::function<void(const Reply&, Time posted)> done) {
  const std::lock_guard lock(mutex_);
  auto& filing = filings_[++last_filing_];
  filing.id = id;
  filing.command = remote_.command(script, std::move(arguments));
  filing.done = std::move(done);
  post_filing(last_filing_, now_is());
}

// Posts the command of a filing, for the first time or once more. on_filing_reply() gets the reply.
void QueueStore::post_filing(std::uint64_t number, Time now) {
  auto& filing = filings_.at(number);
  filing.awaits_reply = true;
  remote_.post(filing.command, [this, number, now](Reply reply) {
    on_filing_reply(number, std::move(reply), now);
  });
}

// Handles the reply to a filing: a command that must be carried out, for example because it has the
// result of a job. After a failure, keeps the command, and on_tick() posts it again. Otherwise
// passes the reply on to the function that file() was given. The command was posted at `posted`.
void QueueStore::on_filing_reply(std::uint64_t number, Reply reply, Time posted) {
  Filing filing;
  {
    const std::lock_guard lock(mutex_);
    auto& pending = filings_.at(number);
    const bool has_failed_before = pending.retry_at != Time{};
    // Only kFetch, which is not about a single job, replies with a list.
    const auto expected = pending.id.empty() ? Reply::Kind::List : Reply::Kind::Integer;
    if (!reply.failed() && reply.kind != expected) reply = unexpected_reply();
    if (reply.failed()) {
      if (!has_failed_before) ++failing_;  // counts the kept filings that have failed
      pending.awaits_reply = false;
      // If the reply was lost, the next tick posts the command again, because `posted` is past. A
      // server that has returned an error gets it again after a while.
      pending.retry_at = reply.lost() ? posted : later(now_is(), kTryAgain);
      return on_error(reply);
    }
    if (has_failed_before) --failing_;
    filing = std::move(filings_.extract(number).mapped());
  }
  if (filing.done) filing.done(reply, posted);  // without the mutex, which `done` locks
  const std::lock_guard lock(mutex_);
  filed_.notify_all();  // close() may wait for this filing
  ask_for_jobs();       // it requests none while a filing fails
}

// Reports an error, but not again until it is over. An error is identified by its first word. Does
// not report a lost reply, because on_change reports that the server is away. The caller must hold
// the mutex.
void QueueStore::on_error(const Reply& reply) {
  filed_.notify_all();
  if (says_gone(reply)) return give_up("was deleted: the results of its jobs are lost");
  if (reply.lost()) return;
  if (options_.drain && says_damaged(reply)) return on_damage(printable(reply.text));
  const auto [entry, is_new] = errors_.try_emplace(reply.text.substr(0, reply.text.find(' ')));
  entry->second = now_is();
  if (!is_new) return;
  options_.tell(std::string(remote_.error(reply).what()) + "; results are kept, and filed later");
}

// Notes that the queue cannot be used any more, which ends the run.
void QueueStore::give_up(const std::string& why) {
  if (gone_.empty()) gone_ = remote_.name() + " " + why;
  if (wake_) wake_();
}

// Ends the run of a worker that drains. Others continue after a warning, because there may be other
// jobs, and more may be added.
void QueueStore::on_damage(const std::string& why) {
  const auto text = "is damaged: " + why + ". --results and --dead still write what is there";
  if (options_.drain) return give_up(text);
  if (!std::exchange(damage_reported_, true)) options_.tell(remote_.name() + " " + text);
}

// Reports that errors are over which have not occurred since `before`.
void QueueStore::report_ended_errors(Time before) {
  for (auto error = errors_.begin(); error != errors_.end();) {
    if (error->second >= before) {
      ++error;
      continue;
    }
    options_.tell(remote_.name() + ": " + printable(error->first) + " no longer occurs");
    error = errors_.erase(error);
  }
}

// Reports that the server is away or back, unless it was so before.
void QueueStore::on_change(bool up, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!open_ || up == std::exchange(was_up_, up)) return;
  // Other workers may connect again later than this one. Their leases may have ended while the
  // server was away, and they need time to renew them.
  if (up) take_over_at_ = later(now_is(), options_.lease / 2);
  filed_.notify_all();
  options_.tell(remote_.name() +
                (up ? ": it is back"
                    : " cannot be reached: " + printable(why) +
                          "; until it is back, no jobs are taken, and results are kept"));
}

// --- the end of a run ---

// Ends the work of this worker: gives its unsent jobs back, and waits for up to `limit` until the
// server has recorded the results. Returns the ids of the jobs whose results it has not recorded
// by then; other workers take these jobs over. Usually there are none.
std::vector<std::string> QueueStore::close(Duration limit) {
  stop_taking();  // gives back the jobs in ready_
  // The jobs that wait here for a short time wait on the server from now on. short_waits_ needs no
  // mutex, because only this thread uses it.
  for (const auto& [due, job] : short_waits_) {
    wait_remotely(job, std::max<Duration>(due - now_is(), Duration::zero()), job.attempts);
  }
  short_waits_.clear();
  std::vector<std::string> unfiled_ids;
  {
    std::unique_lock lock(mutex_);
    wait_until_filed(lock, limit);
    for (const auto& [number, filing] : filings_) {
      if (!filing.id.empty()) unfiled_ids.push_back(filing.id);  // empty: it is not about one job
    }
    // Without a server that replies, the commands below would only take time.
    if (!filings_.empty() || !remote_.up()) return unfiled_ids;
    report_ended_errors(/*before=*/kNever);  // the server works, so all errors are over
  }
  // Gives back the jobs that have arrived in the meantime. kLeave replies with their number. More
  // may be delivered to this worker until the server notices that the connection which takes jobs
  // is closed, so this is repeated. If the command is lost, other workers take the jobs over.
  //
  // The PING makes sure that the server has read everything from that connection. It may read two
  // connections in another order than they were written to, and a request for jobs that it reads
  // after kLeave would make this worker known again.
  static_cast<void>(remote_.ask(plain_command({"PING"})));
  int leaves = 0;
  while (remote_.ask(kLeave, {consumer_}).integer > 0 && ++leaves < kMostLeaves) continue;
  const auto totals = remote_.ask(kReadTotals, {kNoConsumer});  // the counts for the final report
  const std::lock_guard lock(mutex_);
  if (!totals.failed()) handle_totals(totals, now_is());
  return unfiled_ids;
}

// Waits until all filings have replies, for up to `limit`, or until the queue is found to be gone.
// After hurry(), waits only for kHurriedWait, which is enough for a server that works, and not at
// all for one that is away or returns errors.
void QueueStore::wait_until_filed(std::unique_lock<std::mutex>& lock, Duration limit) {
  const auto is_over = [this] { return filings_.empty() || !gone_.empty(); };
  filed_.wait_for(lock, limit, [&] { return is_over() || hurry_; });
  filed_.wait_for(lock, kHurriedWait,
                  [&] { return is_over() || !hurry_ || !remote_.up() || failing_ > 0; });
}

void QueueStore::hurry() {
  const std::lock_guard lock(mutex_);
  hurry_ = true;
  filed_.notify_all();
}

}  // namespace httpretry::queue
