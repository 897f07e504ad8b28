#include "redis_state.hpp"

#include "lib/flow/log.hpp"
#include "lib/http/random.hpp"

#include <httpretry/fleet/redis.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace httpretry {
namespace fleet {
namespace {

Time now_is() { return std::chrono::steady_clock::now(); }

// Longer ones are for ever, and a double would round them.
constexpr Duration kLongest = std::chrono::hours(24 * 365);

std::int64_t in_us(Duration duration) {
  const auto bounded = std::clamp<Duration>(duration, {}, kLongest);
  return std::chrono::ceil<std::chrono::microseconds>(bounded).count();
}

Duration from_us(std::int64_t us) {
  return std::chrono::duration_cast<Duration>(std::chrono::microseconds(us));
}

// One hash tag for all: a cluster keeps them on one node.
std::string key_of(std::string_view kind, std::string_view scope) {
  return std::string("{httpretry}:").append(kind).append(":").append(scope);
}

std::string to_text(std::int64_t number) { return std::to_string(number); }

std::string millionths(double number) { return to_text(std::llround(number * 1e6)); }

SharedState::CircuitView to_view(std::int64_t state, std::int64_t left, std::int64_t generation,
                                 std::int64_t openings, Time now) {
  SharedState::CircuitView view;
  view.state = static_cast<SharedState::Circuit>(std::clamp<std::int64_t>(state, 0, 2));
  view.until = later(now, from_us(left));
  view.generation = generation;
  view.openings = static_cast<int>(openings);
  return view;
}

}  // namespace

RedisState::RedisState(Options options)
    : options_(std::move(options)),
      process_(random_hex(8)),
      workers_(options_.address.workers),
      link_(link_options()) {}

Link::Options RedisState::link_options() {
  Link::Options link;
  link.address = options_.address;
  link.scripts = limit_scripts();
  link.reply_timeout = options_.reply_timeout;
  link.tick = options_.tick;
  link.on_change = [this](bool up, const std::string& why) { on_change(up, why); };
  link.on_tick = [this] { ask_for_news(); };
  return link;
}

int RedisState::workers() const { return workers_.load(std::memory_order_relaxed); }

bool RedisState::post(const Script& script, std::size_t keys, std::vector<std::string> words,
                      std::function<void(const Reply&, Time)> done) {
  if (!link_.up()) return false;
  Command command;
  command.script = &script;
  command.keys = keys;
  command.words = std::move(words);
  link_.post(std::move(command), [this, done = std::move(done)](const Reply& reply) {
    if (reply.kind == Reply::Kind::Error) on_error(reply);
    done(reply, now_is());
  });
  return true;
}

bool RedisState::take_tokens(const std::string& key, const RatePolicy& policy, std::int64_t wanted,
                             std::int64_t given_back, Done<Tokens> done) {
  const auto each = std::max(policy.per / policy.requests, Duration(1));
  return post(kTakeTokens, 1,
              {key_of("rate", key), to_text(policy.requests), to_text(in_us(policy.per)),
               to_text(policy.burst), to_text(wanted), to_text(given_back), to_text(in_us(kAhead))},
              [done = std::move(done), each](const Reply& reply, Time now) {
                Tokens tokens;
                tokens.away = reply.failed();
                tokens.count = reply.at(0);
                tokens.first = now + from_us(reply.at(1));
                tokens.each = each;
                tokens.ask_again = later(now, from_us(reply.at(2)));
                done(tokens, now);
              });
}

bool RedisState::hold_slots(const std::string& key, int max, int used, int wanted,
                            Done<Slots> done) {
  return post(kHoldSlots, 1,
              {key_of("slots", key), to_text(max), process_, to_text(used), to_text(wanted),
               to_text(in_us(kLease))},
              [done = std::move(done)](const Reply& reply, Time now) {
                Slots slots;
                slots.away = reply.failed();
                slots.granted = static_cast<int>(reply.at(0));
                slots.contended = reply.at(2) != 0;
                done(slots, now);
              });
}

bool RedisState::vote(const std::string& key, const BreakerPolicy& policy, const Votes& votes,
                      Done<CircuitView> done) {
  const bool ratio = policy.kind == BreakerPolicy::Kind::Ratio;
  const bool slow = policy.slow_after != kForever;
  return post(kVote, 2,
              {key_of("circuit", key),
               key_of("circuits", "all"),
               ratio ? "ratio" : "consecutive",
               millionths(policy.failure_ratio),
               to_text(policy.min_requests),
               to_text(in_us(policy.window)),
               to_text(policy.failures),
               slow ? millionths(policy.slow_ratio) : "-1",
               to_text(policy.probes),
               to_text(in_us(policy.probe_timeout)),
               to_text(votes.generation),
               to_text(votes.all),
               to_text(votes.good),
               to_text(votes.slow),
               to_text(votes.leading),
               to_text(votes.trailing),
               to_text(votes.good_probes),
               to_text(votes.failed_probes),
               to_text(in_us(votes.open_for)),
               process_,
               votes.wants_probe ? "1" : "0",
               key},
              [done = std::move(done)](const Reply& reply, Time now) {
                auto view = to_view(reply.at(0), reply.at(1), reply.at(2), reply.at(3), now);
                view.away = reply.failed();
                view.all = reply.at(4);
                view.good = reply.at(5);
                view.slow = reply.at(6);
                view.failed_in_a_row = static_cast<int>(reply.at(7));
                view.probe = reply.at(8) != 0;
                done(view, now);
              });
}

bool RedisState::pause(const std::string& key, Duration duration) {
  return post(kPause, 1, {key_of("pauses", "all"), key, to_text(in_us(duration))},
              [](const Reply&, Time) {});
}

void RedisState::listen(std::weak_ptr<Listener> listener) {
  const std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
  listeners_.push_back(std::move(listener));
}

// --- on the link's thread ---

void RedisState::on_change(bool up, const std::string& why) {
  const auto where = options_.address.text();
  if (!up) {
    write_log(LogLevel::Warning, "limits are not shared any more: " + where + ": " + why +
                                     "; this process goes on with 1/" + to_text(workers()) +
                                     " of each limit until it is back");
  } else if (was_up_ || error_told_) {
    write_log(LogLevel::Info, "limits are shared again: " + where + " is back");
  }
  was_up_ = true;
  error_told_ = false;
  News news;
  news.away = !up;
  tell(news);
  if (up) ask_for_news();
}

void RedisState::ask_for_news() {
  post(kNews, 3,
       {key_of("processes", "all"), key_of("pauses", "all"), key_of("circuits", "all"), process_,
        to_text(in_us(kLease))},
       [this](const Reply& reply, Time now) {
         if (reply.kind != Reply::Kind::List || reply.list.size() != 3) return;
         const auto seen = std::max<std::int64_t>(reply.at(0), options_.address.workers);
         workers_.store(static_cast<int>(seen), std::memory_order_relaxed);
         News news;
         const auto& pauses = reply.list[1].list;
         for (std::size_t at = 0; at + 1 < pauses.size(); at += 2) {
           news.pauses.push_back({pauses[at].text, later(now, from_us(pauses[at + 1].integer))});
         }
         const auto& circuits = reply.list[2].list;
         for (std::size_t at = 0; at + 4 < circuits.size(); at += 5) {
           news.circuits.push_back(
               {circuits[at].text,
                to_view(circuits[at + 1].integer, circuits[at + 2].integer,
                        circuits[at + 3].integer, circuits[at + 4].integer, now)});
         }
         tell(news);
       });
}

void RedisState::tell(const News& news) {
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : listeners_) {
      if (auto listener = one.lock()) listeners.push_back(std::move(listener));
    }
  }
  const auto now = now_is();
  for (const auto& listener : listeners) listener->on_news(news, now);
}

void RedisState::on_error(const Reply& reply) {
  if (std::exchange(error_told_, true)) return;
  write_log(LogLevel::Warning, "limits are not shared: " + options_.address.text() + ": " +
                                   reply.text + "; each send asks again");
}

}  // namespace fleet

std::shared_ptr<SharedState> redis(std::string_view url) {
  auto address = fleet::parse_address(url);
  if (!address) throw std::invalid_argument(address.error().message);
  if (!address->job.empty()) {
    throw std::invalid_argument("Redis URL: 'job' is the name of a queue; limits have none");
  }
  fleet::RedisState::Options options;
  options.address = *std::move(address);
  return std::make_shared<fleet::RedisState>(std::move(options));
}

}  // namespace httpretry
