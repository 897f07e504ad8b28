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
constexpr std::size_t kMostBeats = 500;  // in one script
constexpr std::size_t kLeastReaped = 10;

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

void QueueStore::on_tick() {
  const auto now = now_is();
  const std::lock_guard lock(mutex_);
  if (!open_ || !remote_.up() || !gone_.empty()) return;
  for (const auto& [number, filing] : filings_) {
    if (!filing.on_its_way && now >= filing.again_at) post_filing(number, now);
  }
  if (now >= beat_at_) beat(now);
  // A worker sends each kind of command at least once in a lease, so other errors are over.
  if (failing_ == 0) end_errors(now - std::max(options_.lease, kShortestError));
  if (closing_) return;
  if (now >= reap_at_ && !reaping_) reap(now);
  if (now >= move_at_) move_due(now);
  if (now >= news_at_) ask_for_news(now);
  ask_for_jobs();
}

void QueueStore::beat(Time now) {
  beat_at_ = later(now, options_.lease / 3);
  std::vector<std::pair<std::string, const Held*>> all;
  for (const auto& [number, held] : held_) all.emplace_back(held.entry, &held);
  std::ranges::sort(all, {}, [](const auto& one) { return order_of(one.first); });
  for (std::size_t begin = 0; begin < all.size(); begin += kMostBeats) {
    const auto end = std::min(begin + kMostBeats, all.size());
    std::vector<std::string> arguments{consumer_};
    // An entry may occur twice if this worker has taken over its own job.
    std::vector<std::shared_ptr<Lease>> leases;
    for (auto at = begin; at < end; ++at) {
      const auto& held = *all[at].second;
      arguments.push_back(held.entry);
      arguments.push_back(std::to_string(held.deliveries));
      leases.push_back(held.lease);
    }
    remote_.post(remote_.command(kBeat, std::move(arguments)),
                 [this, now, leases = std::move(leases)](const Reply& reply) mutable {
                   if (reply.failed()) {
                     const std::lock_guard lock(mutex_);
                     return on_error(reply);
                   }
                   for (const auto& index : reply.list) {
                     const auto at = static_cast<std::size_t>(index.integer);
                     if (at < leases.size() && leases[at])
                       std::exchange(leases[at], nullptr)->renew(now);
                   }
                   for (const auto& lost : leases) {
                     if (lost) lost->lose();
                   }
                 });
  }
}

void QueueStore::reap(Time now) {
  const auto wait = options_.lease / 2 * (0.5 + random_number());
  reap_at_ = later(now, std::chrono::duration_cast<Duration>(wait));
  const auto count = std::max(room(), kLeastReaped);
  reaping_ = true;
  auto command = remote_.command(
      kReap, {consumer_, std::to_string(to_ms(options_.lease)), std::to_string(count), reap_from_,
              std::to_string(to_ms(kConsumersLive))});
  remote_.post(std::move(command), [this, now](const Reply& reply) {
    const std::lock_guard lock(mutex_);
    reaping_ = false;
    if (reply.failed()) return on_error(reply);
    if (reply.list.size() != 2) return;
    reap_from_ = reply.list[0].text;
    // A cursor other than "0-0" means that there are more entries.
    if (reap_from_ != "0-0") reap_at_ = now;
    add_jobs(reply.list[1].list, now);
  });
}

void QueueStore::move_due(Time now) {
  move_at_ = later(now, kTickEvery);
  remote_.post(remote_.command(kTick, {"", std::to_string(kMostMoved)}),
               [this](const Reply& reply) {
                 const std::lock_guard lock(mutex_);
                 if (reply.failed()) return on_error(reply);
                 // There may be more.
                 if (reply.integer == static_cast<std::int64_t>(kMostMoved)) move_at_ = Time{};
               });
}

void QueueStore::ask_for_news(Time now) {
  news_at_ = later(now, kTickEvery);
  remote_.post(remote_.command(kNews, {""}), [this](const Reply& reply) {
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

// Returns how many more jobs may be taken. Jobs between two sends do not count, up to a limit.
std::size_t QueueStore::room() const {
  const auto busy = static_cast<std::size_t>(
      std::ranges::count_if(held_, [](const auto& entry) { return !entry.second.lease->idle(); }));
  const auto left = [this](std::size_t most, std::size_t taken) {
    taken += arriving_;
    return taken < most ? most - taken : 0;
  };
  return std::min(left(options_.parallel, busy), left(most_held_, held_.size()));
}

void QueueStore::ask_for_jobs() {
  if (asking_ || closing_ || !taker_ || !remote_.up() || failing_ > 0 || !gone_.empty()) return;
  const auto count = room();
  if (count == 0) return;
  asking_ = true;
  auto command =
      plain_command({"XREADGROUP", "GROUP", "w", consumer_, "COUNT", std::to_string(count), "BLOCK",
                     std::to_string(to_ms(kLongestTake)), "STREAMS", remote_.key(0), ">"});
  taker_->post(std::move(command), [this](const Reply& reply) { on_delivered(reply); });
}

// Handles the reply to XREADGROUP: [[stream, [[entry, ["i", id]], …]]], or nil if no job arrived in
// time.
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
    if (arguments.size() == 1) return ask_for_jobs();
    arriving_ += (arguments.size() - 1) / 2;
  }
  const auto count = (arguments.size() - 1) / 2;
  file({}, kFetch, std::move(arguments), [this, count](const Reply& found, Time posted) {
    const std::lock_guard lock(mutex_);
    arriving_ -= count;
    add_jobs(found.list, posted);
  });
}

void QueueStore::add_jobs(const std::vector<Reply>& found, Time posted) {
  for (const auto& one : found) {
    if (one.list.size() != 8) continue;
    const auto since = one.at(4);
    Job job;
    job.number = ++last_number_;
    job.id = one.list[1].text;
    job.attempts = static_cast<int>(one.at(3));
    if (since != 0) job.maybe_sent_since = WallTime(std::chrono::milliseconds(since));
    job.key = one.list[6].text;
    job.text = one.list[7].text;
    set_lane(job);
    Held held;
    held.id = job.id;
    held.entry = one.list[0].text;
    held.deliveries = one.at(2);
    held.line = static_cast<std::uint64_t>(one.at(5));
    held.lease = std::make_shared<Lease>(posted, options_.lease);
    held_.emplace(job.number, std::move(held));
    ready_.push_back(std::move(job));
  }
  if (!found.empty() && wake_) wake_();
}

}  // namespace httpretry::queue
