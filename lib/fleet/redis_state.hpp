// RedisState: the shared state of clients on a Redis server.
#pragma once

#include "limit_scripts.hpp"

#include <httpretry/flow/shared_state.hpp>

namespace httpretry::fleet {

class RedisState final : public SharedState {
 public:
  struct Options {
    Address address;
    Duration reply_timeout = std::chrono::milliseconds(50);
    Duration tick = std::chrono::milliseconds(250);  // between the news
  };
  explicit RedisState(Options options);

  [[nodiscard]] bool up() const override { return link_.up(); }
  [[nodiscard]] int workers() const override;
  bool take_tokens(const std::string& key, const RatePolicy& policy, std::int64_t wanted,
                   std::int64_t given_back, Done<Tokens> done) override;
  bool hold_slots(const std::string& key, int max, int used, int wanted, Done<Slots> done) override;
  bool vote(const std::string& key, const BreakerPolicy& policy, const Votes& votes,
            Done<CircuitView> done) override;
  bool pause(const std::string& key, Duration duration) override;
  void listen(std::weak_ptr<Listener> listener) override;

  // Waits until the server has been reached, or has not: then why.
  [[nodiscard]] std::string wait_for_first() { return link_.wait_for_first(); }

 private:
  // How long a process that says nothing more counts, and keeps its slots.
  static constexpr Duration kLease = std::chrono::seconds(3);
  bool post(const Script& script, std::size_t keys, std::vector<std::string> words,
            std::function<void(const Reply&, Time)> done);
  [[nodiscard]] Link::Options link_options();
  void on_change(bool up, const std::string& why);
  void ask_for_news();
  void tell(const News& news);
  // A script that fails is a bug or a server that is full: told once.
  void on_error(const Reply& reply);

  const Options options_;
  const std::string process_;
  std::atomic<int> workers_;
  std::mutex mutex_;  // guards the listeners
  std::vector<std::weak_ptr<Listener>> listeners_;
  bool was_up_ = false;  // of the link's thread, as the next one
  bool error_told_ = false;
  Link link_;  // the last: its thread uses all the others
};

}  // namespace httpretry::fleet
