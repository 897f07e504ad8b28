// The part of QueueStore that runs in the background, on the threads of its two connections. It
// renews leases, takes jobs, takes over jobs of workers whose leases have ended, and requests
// totals.
#include "queue_store.hpp"

#include "lib/core/base/random.hpp"
#include "lib/core/base/text.hpp"
#include "lib/extras/batch/request_line.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::Job;
using fleet::Reply;

constexpr Duration kTickEvery = std::chrono::seconds(1);
constexpr Duration kLeastQuietTime = std::chrono::seconds(2);
constexpr Duration kConsumersLive = std::chrono::hours(1);
constexpr std::size_t kMostQueuedAtOnce = 100;
constexpr std::size_t kMostRenewed = 500;  // in one script
constexpr std::size_t kLeastTakenOver = 10;
constexpr int kRenewalsPerLease = 3;
constexpr std::int64_t kMostAttempts = 1'000'000'000;

// The parts of a job in the replies to kFetch and kReap.
enum JobPart { kEntry, kId, kDeliveries, kAttempts, kSince, kLine, kKey, kRequest, kJobParts };

// Sets the host and the priority of a job. If its request cannot be read, LineJobs ends it later.
void set_host_and_priority(Job& job) {
  batch::RequestLine line;
  Problems problems("");
  if (!batch::read_request_line(job.text, batch::InputFormat::Auto, line, problems)) return;
  if (!line.parsed_url) return;
  job.host = line.parsed_url->origin();
  job.priority = line.priority;
}

// Reads a reply to XREADGROUP, which has the form [[stream, [[entry, ["i", id]], …]]]. Returns
// [entry, id, entry, id, …], or an empty vector if the reply is nil.
std::vector<std::string> entries_and_ids(const Reply& reply) {
  std::vector<std::string> found;
  if (reply.list.empty() || reply.list[0].list.size() != 2) return found;
  for (const auto& entry : reply.list[0].list[1].list) {
    if (entry.list.size() != 2 || entry.list[1].list.size() != 2) continue;
    found.insert(found.end(), {entry.list[0].text, entry.list[1].list[1].text});
  }
  return found;
}

}  // namespace

// Posts the commands whose time has come: filings that have failed, and the regular commands of a
// worker. A filing is a command that must be carried out, for example because it has the result of
// a job. Also reports that errors of the server have ended. The connection to the server calls this
// several times a second, on its own thread.
void QueueStore::on_tick() {
  const auto now = now_is();
  const std::lock_guard lock(mutex_);
  // open_ is set at the end of the constructor. gone_ says why the queue cannot be used any more.
  const bool can_use_queue = open_ && remote_.up() && gone_.empty();
  if (!can_use_queue) return;
  for (const auto& [number, filing] : filings_) {
    if (!filing.awaits_reply && now >= filing.retry_at) post_filing(number, now);
  }
  if (now >= renew_at_) renew_leases(now);
  // A worker sends each regular command at least this often, so an error that has not occurred for
  // this time has ended, unless a filing still fails.
  const auto quiet_time = std::max(options_.lease, kLeastQuietTime);
  if (failing_ == 0) report_ended_errors(/*before=*/now - quiet_time);
  if (closing_) return;  // the rest prepares for more jobs; close() reads the totals itself
  if (now >= take_over_at_ && !taking_over_) take_over_jobs(now);
  if (now >= queue_due_at_) queue_due_jobs(now);
  if (now >= request_totals_at_) request_totals(now);
  ask_for_jobs();
}

// Extends, in the background, the leases of all jobs that this worker has, so that no other worker
// takes them over. Uses the script kBeat, for a limited number of jobs at a time, because the
// server does nothing else while a script runs.
void QueueStore::renew_leases(Time now) {
  renew_at_ = later(now, options_.lease / kRenewalsPerLease);
  // A job is an entry of a stream. kBeat searches only from the first of these entries to the last,
  // so it needs them in order.
  std::vector<const TakenJob*> sorted;
  for (const auto& [number, taken] : taken_) sorted.push_back(&taken);
  std::ranges::sort(sorted, {}, [](const TakenJob* taken) { return order_of(taken->entry); });
  for (std::size_t begin = 0; begin < sorted.size(); begin += kMostRenewed) {
    const auto end = std::min(begin + kMostRenewed, sorted.size());
    std::vector<std::string> arguments{consumer_};  // then two for each job
    // In the order of the arguments, because the reply has the indexes of the renewed leases. The
    // entries would not identify them: one occurs twice if this worker has taken over its own job.
    std::vector<std::shared_ptr<Lease>> leases;
    for (auto i = begin; i < end; ++i) {
      arguments.push_back(sorted[i]->entry);
      arguments.push_back(std::to_string(sorted[i]->deliveries));
      leases.push_back(sorted[i]->lease);
    }
    remote_.post(remote_.command(kBeat, std::move(arguments)),
                 [this, now, leases = std::move(leases)](const Reply& reply) {
                   on_leases_renewed(reply, leases, now);
                 });
  }
}

// Handles the reply to kBeat: the indexes of the leases that were renewed. The others are lost,
// because other workers have their jobs. An error renews none, and they end unless a later script
// renews them.
void QueueStore::on_leases_renewed(const Reply& reply, std::vector<std::shared_ptr<Lease>> leases,
                                   Time posted) {
  if (reply.kind != Reply::Kind::List) {
    const std::lock_guard lock(mutex_);
    return on_error(reply.failed() ? reply : unexpected_reply());
  }
  for (const auto& element : reply.list) {
    const auto index = static_cast<std::size_t>(element.integer);
    if (index < leases.size() && leases[index]) {
      std::exchange(leases[index], nullptr)->renew(posted);
    }
  }
  for (const auto& lost : leases) {
    if (lost) lost->lose();
  }
}

// Takes over, in the background, jobs of workers that have stopped renewing their leases, for
// example because they were killed. The script kReap searches a part of the jobs that workers have,
// from a cursor on, and replies with [next cursor, [job, …]]. It also deletes the consumers of
// workers that have no job and were silent for kConsumersLive.
void QueueStore::take_over_jobs(Time now) {
  // The next search is after 1/4 to 3/4 of a lease, so that the workers do not search all at once.
  const auto wait = options_.lease / 2 * (0.5 + random_number());
  take_over_at_ = later(now, Duration(wait));
  // Even a worker without free places takes over a few jobs.
  const auto count = std::max(free_places(), kLeastTakenOver);
  taking_over_ = true;  // until the reply; on_tick() begins no other search
  auto command = remote_.command(
      kReap, {consumer_, std::to_string(to_ms(options_.lease)), std::to_string(count),
              take_over_from_, std::to_string(to_ms(kConsumersLive))});
  remote_.post(std::move(command), [this, now](const Reply& reply) {
    const std::lock_guard lock(mutex_);
    taking_over_ = false;
    if (reply.failed()) return on_error(reply);
    if (reply.list.size() != 2) return on_error(unexpected_reply());
    take_over_from_ = reply.list[0].text;
    // "0-0": the search has reached the end. Otherwise it continues with the next tick.
    if (take_over_from_ != "0-0") take_over_at_ = now;
    add_jobs(reply.list[1].list, now);
  });
}

// Queues jobs that have waited until their time, a limited number at once. kTick replies with their
// number.
void QueueStore::queue_due_jobs(Time now) {
  queue_due_at_ = later(now, kTickEvery);
  remote_.post(remote_.command(kTick, {kNoConsumer, std::to_string(kMostQueuedAtOnce)}),
               [this](const Reply& reply) {
                 const std::lock_guard lock(mutex_);
                 if (reply.failed()) return on_error(reply);
                 const bool may_be_more =
                     reply.integer == static_cast<std::int64_t>(kMostQueuedAtOnce);
                 if (may_be_more) queue_due_at_ = Time{};  // with the next tick
               });
}

// Requests the number of jobs in each state, in the background.
void QueueStore::request_totals(Time now) {
  request_totals_at_ = later(now, kTickEvery);
  remote_.post(remote_.command(kReadTotals, {kNoConsumer}), [this](const Reply& reply) {
    const std::lock_guard lock(mutex_);
    if (reply.failed()) return on_error(reply);
    handle_totals(reply, now_is());
  });
}

// Notes what a reply to kReadTotals says: the number of jobs in each state, when the next waiting
// job is due, and the server's clock. Warns if the counters show that keys were lost or changed.
void QueueStore::handle_totals(const Reply& reply, Time now) {
  const auto totals = read_totals(reply);
  if (!totals) return on_error(unexpected_reply());
  counts_ = totals->counts;
  due_at_.reset();
  if (totals->next_due) due_at_ = later(now, *totals->next_due);
  server_offset_ = totals->time - now.time_since_epoch();
  if (totals->damaged) on_damage("its counters are not those of its jobs");
}

// Returns how many more jobs this worker may take. At most `parallel` of its jobs may be busy, and
// it may have at most `most_taken_` jobs, with those that wait here between two sends.
std::size_t QueueStore::free_places() const {
  const auto busy = static_cast<std::size_t>(
      std::ranges::count_if(taken_, [](const auto& entry) { return !entry.second.lease->idle(); }));
  const auto places_left = [this](std::size_t most, std::size_t used) {
    used += arriving_;
    return used < most ? most - used : 0;
  };
  return std::min(places_left(options_.parallel, busy), places_left(most_taken_, taken_.size()));
}

// Requests as many jobs as there are free places, unless a request has no reply yet. The server
// replies at once if it has any, otherwise after kLongestTake at most.
void QueueStore::ask_for_jobs() {
  if (asking_ || closing_ || !taker_ || !remote_.up() || failing_ > 0 || !gone_.empty()) return;
  if (now_is() < take_at_) return;
  const auto count = free_places();
  if (count == 0) return;
  asking_ = true;
  auto command = plain_command({"XREADGROUP", "GROUP", "w", consumer_, "COUNT",
                                std::to_string(count), "BLOCK", std::to_string(to_ms(kLongestTake)),
                                "STREAMS", remote_.key(Key::Entries), ">"});
  taker_->post(std::move(command), [this](const Reply& reply) { on_delivered(reply); });
}

// Handles the reply to ask_for_jobs(): jobs that the server has given to this worker, or none if
// none arrived in time. The reply has only the ids of the jobs, so this requests their contents, in
// the background, with kFetch.
void QueueStore::on_delivered(const Reply& reply) {
  auto arguments = entries_and_ids(reply);
  const auto count = arguments.size() / 2;  // each job has an entry and an id
  arguments.insert(arguments.begin(), consumer_);
  {
    const std::lock_guard lock(mutex_);
    asking_ = false;
    if (reply.failed()) return on_error(reply);
    // The next tick requests jobs again. Requesting them here would make an endless loop if the
    // server always replies at once.
    if (count == 0) return;
    arriving_ += count;  // until kFetch replies, they take places in free_places()
  }
  // Without an id, because the command is not about a single job.
  file(/*id=*/{}, kFetch, std::move(arguments), [this, count](const Reply& fetched, Time posted) {
    const std::lock_guard lock(mutex_);
    arriving_ -= count;
    add_jobs(fetched.list, posted);
  });
}

// Adds jobs of a reply to kFetch or kReap to those that this worker has, and wakes the thread that
// takes them. Their leases begin at `posted`, when the command was posted, and so do not end later
// here than on the server. The caller must hold the mutex.
void QueueStore::add_jobs(const std::vector<Reply>& jobs, Time posted) {
  for (const auto& parts : jobs) {
    if (parts.list.size() != kJobParts) continue;  // no working server sends this
    Job job;
    job.number = ++last_number_;
    job.id = parts.list[kId].text;
    job.attempts =
        static_cast<int>(std::clamp<std::int64_t>(parts.at(kAttempts), 0, kMostAttempts));
    const auto sent_since = ms_in(parts, kSince);  // since 1970; 0: it was not sent before
    if (sent_since != Duration()) job.maybe_sent_since = WallTime(sent_since);
    job.key = parts.list[kKey].text;
    job.text = parts.list[kRequest].text;
    set_host_and_priority(job);
    // What this worker needs for later commands about the job.
    TakenJob taken;
    taken.id = job.id;
    taken.entry = parts.list[kEntry].text;
    taken.deliveries = parts.at(kDeliveries);
    taken.line = static_cast<std::uint64_t>(parts.at(kLine));
    taken.lease = std::make_shared<Lease>(posted, options_.lease);
    taken_.emplace(job.number, std::move(taken));
    ready_.push_back(std::move(job));
  }
  if (!jobs.empty() && wake_) wake_();
}

}  // namespace httpretry::queue
