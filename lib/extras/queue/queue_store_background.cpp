// The part of QueueStore that runs in the background, on the threads of its two connections. It
// renews leases, takes jobs, takes over jobs of workers whose leases have ended, and requests news.
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
constexpr Duration kShortestError = std::chrono::seconds(2);
constexpr Duration kConsumersLive = std::chrono::hours(1);
constexpr std::size_t kMostMoved = 100;
constexpr std::size_t kMostRenewed = 500;  // in one script
constexpr std::size_t kLeastTakenOver = 10;

// Sets the host and the priority of a job. If its request cannot be read, LineJobs ends it later.
void set_lane(Job& job) {
  batch::RequestLine line;
  Problems problems("");
  if (!batch::read_request_line(job.text, batch::InputFormat::Auto, line, problems)) return;
  if (!line.parsed_url) return;
  job.host = line.parsed_url->origin();
  job.priority = line.priority;
}

// Returns a value by which entries, which have the form "MS-NUMBER", are sorted.
std::pair<std::uint64_t, std::uint64_t> order_of(std::string_view entry) {
  const auto ms = take_until(entry, '-');
  return {to_number<std::uint64_t>(ms).value_or(0), to_number<std::uint64_t>(entry).value_or(0)};
}

}  // namespace

// Posts filings that have failed, and each of the regular commands whose time has come. Called by
// the link several times a second.
void QueueStore::on_tick() {
  const auto now = now_is();
  const std::lock_guard lock(mutex_);
  if (!open_ || !remote_.up() || !gone_.empty()) return;
  for (const auto& [number, filing] : filings_) {
    if (!filing.awaits_reply && now >= filing.retry_at) post_filing(number, now);
  }
  if (now >= renew_at_) renew_leases(now);
  // A worker sends each kind of command at least once in a lease, so other errors are over.
  if (failing_ == 0) report_ended_errors(now - std::max(options_.lease, kShortestError));
  if (closing_) return;
  if (now >= take_over_at_ && !taking_over_) take_over_jobs(now);
  if (now >= move_due_at_) move_due(now);
  if (now >= news_at_) ask_for_news(now);
  ask_for_jobs();
}

// Renews the leases of all jobs of this worker with kBeat, a limited number in each script. kBeat
// needs the jobs in the order of their entries.
void QueueStore::renew_leases(Time now) {
  renew_at_ = later(now, options_.lease / 3);
  std::vector<const Held*> sorted;
  for (const auto& [number, held] : held_) sorted.push_back(&held);
  std::ranges::sort(sorted, {}, [](const Held* held) { return order_of(held->entry); });
  for (std::size_t begin = 0; begin < sorted.size(); begin += kMostRenewed) {
    const auto end = std::min(begin + kMostRenewed, sorted.size());
    std::vector<std::string> arguments{consumer_};
    // An entry may occur twice if this worker has taken over its own job.
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
  if (reply.failed()) {
    const std::lock_guard lock(mutex_);
    return on_error(reply);
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

// Takes over jobs of workers whose leases have ended. kReap replies with a cursor and the jobs. A
// random wait keeps the workers from doing this at the same time.
void QueueStore::take_over_jobs(Time now) {
  const auto wait = options_.lease / 2 * (0.5 + random_number());
  take_over_at_ = later(now, std::chrono::duration_cast<Duration>(wait));
  const auto count = std::max(free_places(), kLeastTakenOver);
  taking_over_ = true;
  auto command = remote_.command(
      kReap, {consumer_, std::to_string(to_ms(options_.lease)), std::to_string(count),
              take_over_from_, std::to_string(to_ms(kConsumersLive))});
  remote_.post(std::move(command), [this, now](const Reply& reply) {
    const std::lock_guard lock(mutex_);
    taking_over_ = false;
    if (reply.failed()) return on_error(reply);
    if (reply.list.size() != 2) return;
    take_over_from_ = reply.list[0].text;
    // A cursor other than "0-0" means that there are more entries.
    if (take_over_from_ != "0-0") take_over_at_ = now;
    add_jobs(reply.list[1].list, now);
  });
}

// Queues jobs that have waited until their time, a limited number at once. kTick replies with their
// number.
void QueueStore::move_due(Time now) {
  move_due_at_ = later(now, kTickEvery);
  remote_.post(remote_.command(kTick, {kNoConsumer, std::to_string(kMostMoved)}),
               [this](const Reply& reply) {
                 const std::lock_guard lock(mutex_);
                 if (reply.failed()) return on_error(reply);
                 const bool may_be_more = reply.integer == static_cast<std::int64_t>(kMostMoved);
                 if (may_be_more) move_due_at_ = Time{};  // with the next tick
               });
}

void QueueStore::ask_for_news(Time now) {
  news_at_ = later(now, kTickEvery);
  remote_.post(remote_.command(kNews, {kNoConsumer}), [this](const Reply& reply) {
    const std::lock_guard lock(mutex_);
    if (reply.failed()) return on_error(reply);
    handle_news(reply, now_is());
  });
}

void QueueStore::handle_news(const Reply& reply, Time now) {
  const auto news = read_news(reply);
  if (!news) return on_error(unexpected_reply());
  counts_ = news->counts;
  due_at_.reset();
  if (news->next_due) due_at_ = later(now, *news->next_due);
  server_offset_ = news->time - now.time_since_epoch();
  if (news->damaged) on_damage("its counters are not those of its jobs");
}

// Returns how many more jobs may be taken: so many that at most `parallel` are busy, and that at
// most `most_held_` exist, including those between two sends.
std::size_t QueueStore::free_places() const {
  const auto busy = static_cast<std::size_t>(
      std::ranges::count_if(held_, [](const auto& entry) { return !entry.second.lease->idle(); }));
  const auto places_left = [this](std::size_t most, std::size_t used) {
    used += arriving_;
    return used < most ? most - used : 0;
  };
  return std::min(places_left(options_.parallel, busy), places_left(most_held_, held_.size()));
}

// Requests as many jobs as there are free places, unless a request has no reply yet. The server
// replies at once if it has any, otherwise after kLongestTake at most.
void QueueStore::ask_for_jobs() {
  if (asking_ || closing_ || !taker_ || !remote_.up() || failing_ > 0 || !gone_.empty()) return;
  const auto count = free_places();
  if (count == 0) return;
  asking_ = true;
  auto command = plain_command({"XREADGROUP", "GROUP", "w", consumer_, "COUNT",
                                std::to_string(count), "BLOCK", std::to_string(to_ms(kLongestTake)),
                                "STREAMS", remote_.key(Key::Entries), ">"});
  taker_->post(std::move(command), [this](const Reply& reply) { on_delivered(reply); });
}

// Handles the reply to XREADGROUP: [[stream, [[entry, ["i", id]], …]]], or nil if no job arrived in
// time. An entry has only the id of its job, so this reads the jobs with kFetch.
void QueueStore::on_delivered(const Reply& reply) {
  std::vector<std::string> arguments{consumer_};
  {
    const std::lock_guard lock(mutex_);
    asking_ = false;
    if (reply.failed()) return on_error(reply);
    if (!reply.list.empty() && reply.list[0].list.size() == 2) {
      for (const auto& entry : reply.list[0].list[1].list) {
        if (entry.list.size() != 2 || entry.list[1].list.size() != 2) continue;
        arguments.push_back(entry.list[0].text);
        arguments.push_back(entry.list[1].list[1].text);
      }
    }
    const bool none_arrived = arguments.size() == 1;  // only the consumer
    if (none_arrived) return ask_for_jobs();
    arriving_ += (arguments.size() - 1) / 2;
  }
  const auto count = (arguments.size() - 1) / 2;  // two arguments for each job
  const std::string no_job;                       // the filing is not about a single job
  file(no_job, kFetch, std::move(arguments), [this, count](const Reply& fetched, Time posted) {
    const std::lock_guard lock(mutex_);
    arriving_ -= count;
    add_jobs(fetched.list, posted);
  });
}

// Adds jobs that kFetch or kReap has returned. Each is [entry, id, deliveries, attempts, since,
// line, key, request], and `since` is 0 if the job was not sent before. Their leases begin at
// `posted`.
void QueueStore::add_jobs(const std::vector<Reply>& jobs, Time posted) {
  for (const auto& fields : jobs) {
    if (fields.list.size() != 8) continue;
    const auto sent_since = fields.at(4);
    Job job;
    job.number = ++last_number_;
    job.id = fields.list[1].text;
    job.attempts = static_cast<int>(fields.at(3));
    if (sent_since != 0) job.maybe_sent_since = WallTime(std::chrono::milliseconds(sent_since));
    job.key = fields.list[6].text;
    job.text = fields.list[7].text;
    set_lane(job);
    Held held;
    held.id = job.id;
    held.entry = fields.list[0].text;
    held.deliveries = fields.at(2);
    held.line = static_cast<std::uint64_t>(fields.at(5));
    held.lease = std::make_shared<Lease>(posted, options_.lease);
    held_.emplace(job.number, std::move(held));
    ready_.push_back(std::move(job));
  }
  if (!jobs.empty() && wake_) wake_();
}

}  // namespace httpretry::queue
