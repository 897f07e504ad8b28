// ClientCore: the state of a Client, which its calls share and keep alive.
#pragma once

#include "admission.hpp"
#include "event_loop_core.hpp"
#include "run_call.hpp"

#include <httpretry/client/client.hpp>

#include <future>

namespace httpretry::detail {

// Throws std::invalid_argument if the options have a mistake.
void check(const ClientOptions& options);
bool has_retry(const ClientOptions& options);

// Starts the calls of a client, and owns the loops on which they run. The public functions do the
// work of those of Client, and may be called from any thread.
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
  // Returns the program's event loop or scheduler if the client has one, otherwise a background
  // loop. Throws Failure.
  Scheduler& scheduler();
  // Returns the time of the clock to which deadlines of `drain` and `wait_until` refer.
  [[nodiscard]] Time now() const;
  // Makes a relative URL absolute and adds the base query, if the client has a base URL. Does
  // nothing if the URL has a scheme.
  Result<void> add_base_url(Request& request) const;
  // Blocks until `when`, and returns true, or until stop is requested, and returns false. As in
  // `send`, this thread drives its loop or the client's scheduler in the meantime.
  bool wait_until(Time when, const std::stop_token& stop);

 private:
  // Returns the scheduler that a blocking function drives while it waits: the program's event loop
  // if this thread drives it, or the scheduler in the options. Returns nullptr if the function
  // drives nothing and just waits.
  [[nodiscard]] std::shared_ptr<Scheduler> scheduler_driven_here() const;
  // Prepares a call. Returns where it runs, or the error if it cannot begin. `leased_loop`: as for
  // find_loop.
  Result<RunsOn> begin(Request& request, CallOptions& options,
                       CallsInFlight::Registration& registration, LoopPool::Lease* leased_loop);
  // Returns where a call runs. If `leased_loop` is not nullptr, that is a loop from the pool, which
  // the calling thread drives, and `leased_loop` is set to it. Otherwise it is the scheduler in the
  // options or a background loop. `request` is nullptr for work that is not a call.
  Result<RunsOn> find_loop(const Request* request = nullptr,
                           LoopPool::Lease* leased_loop = nullptr);
  BackgroundLoop& choose_loop(std::string_view origin);
  BackgroundLoop& add_loop();
  void stop_with_client(RunsOn& placement, CallOptions& options);
  // Cancels all calls and work in flight, and does not wait for them.
  void cancel_all();
  Transport* transport_of(Loop* loop);
  // The result keeps this object alive.
  std::shared_ptr<const ForCalls> for_calls() { return {shared_from_this(), &for_calls_}; }

  ClientOptions options_;
  const std::optional<Url> base_url_;
  const bool retries_;
  const bool on_event_loop_;
  const int process_;  // the process that made the client
  std::shared_ptr<const TransportOptions> connection_;
  std::shared_ptr<Resolver> resolver_;
  const bool limits_in_flight_ =
      options_.max_in_flight > 0 || options_.max_in_flight_per_origin > 0;
  std::optional<Admission> admission_;  // only if limits_in_flight_
  std::stop_source end_;                // requested when the client ends
  const std::stop_token at_end_ = end_.get_token();
  const ForCalls for_calls_{
      options_,
      {&at_end_, &options_.random, &options_.observers,
       options_.policies ? &*options_.policies : nullptr, options_.shared_state,
       /*transport_adds_headers=*/limits_in_flight_}};
  CallsInFlight calls_in_flight_;
  LoopPool pool_;
  mutable std::mutex mutex_;  // guards the rest
  bool closed_ = false;
  std::vector<std::shared_ptr<BackgroundLoop>> loops_;
  std::shared_ptr<EventLoop> event_loop_;  // the program's; drives the only loop in `loops_`
};

// Gives the library's blocking functions access to the core of a Client.
struct CoreOf {
  static const std::shared_ptr<ClientCore>& get(const Client& client) { return client.core(); }
};

}  // namespace httpretry::detail
