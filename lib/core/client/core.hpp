// ClientCore: what a Client shares with its calls.
#pragma once

#include "admission.hpp"
#include "event_loop_core.hpp"
#include "run_call.hpp"

#include <httpretry/client/client.hpp>

#include <future>

namespace httpretry::detail {

// Throws std::invalid_argument.
void check(const ClientOptions& options);
bool has_retry(const ClientOptions& options);

class ClientCore : public std::enable_shared_from_this<ClientCore> {
 public:
  explicit ClientCore(ClientOptions options);

  Outcome send(Request&& request, CallOptions&& options);
  std::future<Outcome> send_async(Request&& request, CallOptions&& options);
  void start(Request&& request, CallOptions&& options, std::unique_ptr<Completion> completion);
  void run(std::shared_ptr<Work> work);
  DrainResult drain(Time deadline);
  static Task<DrainResult> co_drain(std::shared_ptr<ClientCore> self, Time deadline);
  void shut_down();
  // The loop of the program where there is one, else one of ours. Throws Failure.
  Scheduler& scheduler();
  // By the clock that a deadline of `drain` is compared with.
  [[nodiscard]] Time now() const;
  // Blocks, by that clock, as `send` does: drives the loop that this thread drives, or the
  // scheduler of the client. True when it is `when`, false as soon as stop is requested.
  bool wait_until(Time when, const std::stop_token& stop);

 private:
  // Returns the scheduler that a blocking function drives while it waits: the program's event loop
  // if this thread drives it, or the client's own scheduler. nullptr: it drives none, and just
  // waits.
  [[nodiscard]] std::shared_ptr<Scheduler> scheduler_driven_here() const;
  // Prepares a call. Returns where it runs, or why it cannot begin.
  Result<RunsOn> begin(Request& request, CallOptions& options, UnderWay::Ticket& ticket,
                       LoopPool::Lease* lent);
  // Returns where a call runs. With `lent`, that is a loop from the pool, which the calling thread
  // drives; otherwise it is a background loop. `request` is nullptr for work that is no call.
  Result<RunsOn> find_loop(const Request* request = nullptr, LoopPool::Lease* lent = nullptr);
  BackgroundLoop& choose_loop(std::string_view origin);
  BackgroundLoop& add_loop();
  void stop_with_client(RunsOn& where, CallOptions& options);
  // Cancels what is under way, and does not wait.
  void cancel_all();
  Transport* transport_of(Loop* loop);
  // Keeps this object alive.
  std::shared_ptr<const ForCalls> for_calls() { return {shared_from_this(), &for_calls_}; }

  ClientOptions options_;
  const bool retries_;
  const bool on_event_loop_;
  const int process_;  // that made it
  std::shared_ptr<const TransportOptions> connection_;
  std::shared_ptr<Resolver> resolver_;
  std::optional<Admission> admission_;  // where there are limits
  std::stop_source end_;                // of the client
  const std::stop_token at_end_ = end_.get_token();
  const ForCalls for_calls_{
      options_,
      {&at_end_, &options_.random, &options_.observers,
       options_.policies ? &*options_.policies : nullptr, options_.shared_state}};
  UnderWay under_way_;
  LoopPool pool_;
  mutable std::mutex mutex_;  // guards the rest
  bool closed_ = false;
  std::vector<std::shared_ptr<BackgroundLoop>> loops_;
  std::shared_ptr<EventLoop> event_loop_;  // of the program: drives the only loop of `loops_`
};

// Grants the blocking functions of the library access to the core of a Client.
struct CoreOf {
  static const std::shared_ptr<ClientCore>& get(const Client& client) { return client.core(); }
};

}  // namespace httpretry::detail
