// RedisState: limits that several processes share on a Redis server.
#pragma once

#include "limit_scripts.hpp"
#include "remote_state.hpp"

namespace httpretry::fleet {

class RedisState final : public RemoteState {
 public:
  struct Options {
    Address address;
    Duration reply_timeout = std::chrono::milliseconds(50);
    Duration connect_timeout = std::chrono::milliseconds(500);
    Duration tick = std::chrono::milliseconds(250);  // between the news
  };
  explicit RedisState(Options options);

  [[nodiscard]] bool up() const override { return link_.expects_reply(); }
  [[nodiscard]] Duration patience() const override {
    return link_.up() ? options_.reply_timeout : options_.connect_timeout;
  }
  [[nodiscard]] int workers() const override;
  bool take_tokens(const std::string& key, const RatePolicy& policy, std::int64_t wanted,
                   std::int64_t given_back, Done<Tokens> done) override;
  bool hold_slots(const std::string& key, int max, int used, int wanted, Done<Slots> done) override;
  bool vote(const std::string& key, const BreakerPolicy& policy, const Votes& votes,
            Done<CircuitView> done) override;
  bool pause(const std::string& key, Duration duration) override;
  bool change_budget(const std::string& key, const BudgetPolicy& policy, const BudgetChange& change,
                     Done<BudgetView> done) override;
  bool send_rate(const std::string& key, const Sends& sends, Done<SendsView> done) override;
  bool forget(const std::string& key) override;
  bool open_circuit(const std::string& key, Duration duration) override;
  void flush(Duration limit) override { link_.flush(limit); }
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
  void check_server();
  void set_degraded(bool degraded, const std::string& why);
  void tell(News news);
  void tell_away();
  // A script that fails is a bug or a server that is full: told once.
  void on_error(const Reply& reply);

  const Options options_;
  const std::string process_;
  const std::string salt_;  // if no other process has stored one
  std::atomic<int> workers_;
  std::mutex mutex_;  // guards the listeners
  std::vector<std::weak_ptr<Listener>> listeners_;
  // Of the link's thread:
  SharedStateChange change_;  // the last
  bool error_told_ = false;
  std::vector<std::string> server_problems_;
  Link link_;  // the last: its thread uses all the others
};

}  // namespace httpretry::fleet
