// QueueStore is a Store on a Redis server that is shared with other workers.
//
// A job that this worker has taken belongs to it as long as its lease is renewed, which happens in
// the background. The result of a job is filed without blocking. While the server is away, results
// stay in memory and nothing is taken; the results are filed when the server is back.
#pragma once

#include "lease.hpp"
#include "remote_queue.hpp"

#include <httpretry/batch/store.hpp>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace httpretry::queue {

struct StoreOptions {
  RemoteOptions remote;  // without on_change and on_tick
  std::size_t parallel = 64;
  Duration lease = std::chrono::seconds(30);
  std::string policy;  // a hash of the policies
  // True if the run ends when no job is left. A queue that does not exist is an error then. So are
  // lost or changed keys, because the jobs that they count may never arrive. If false, a missing
  // queue is created.
  bool drain = false;
  // Called with warnings, on any thread.
  std::function<void(const std::string&)> tell;
};

class QueueStore final : public batch::Store {
 public:
  // A job that this worker has taken. A job that it takes again gets another Job::number.
  struct TakenJob {
    std::string id;
    std::string entry;            // of the stream of jobs
    std::int64_t deliveries = 0;  // how often the entry was given to a worker
    std::uint64_t line = 0;
    // The server may have recorded that the job is being sent, because `intend` requested that.
    bool intended = false;
    std::shared_ptr<Lease> lease;
  };

  // Throws StoreError.
  explicit QueueStore(StoreOptions options);
  ~QueueStore() override;

  void take(std::size_t most, const WantsHost& wants, std::vector<batch::Job>& jobs) override;
  std::vector<const batch::Job*> intend(std::span<const batch::Job* const> jobs) override;
  void wait(const batch::Job& job, Duration time, int attempts, std::string_view why) override;
  void finish(const batch::Job& job, batch::JobEnd end) override;
  void give_back(const batch::Job& job) override;
  void stop_taking() override;
  void hold(std::string_view host, Duration time) override;
  // Returns nothing, because the server records the waits of jobs, not the holds of hosts.
  [[nodiscard]] std::vector<batch::HeldHost> holds() override { return {}; }
  void commit() override;
  [[nodiscard]] batch::Counts counts() const override;
  [[nodiscard]] std::optional<Duration> next_due() override;

  // Called on another thread when there are jobs to take.
  void on_jobs(std::function<void()> wake);
  [[nodiscard]] TakenJob taken(const batch::Job& job) const;
  [[nodiscard]] const std::string& token() const { return remote_.token(); }
  // Returns the date by the server's clock.
  [[nodiscard]] WallTime date() const;

  // Takes nothing more, gives back the jobs that were not sent, and waits until everything is
  // filed. Returns the ids of the jobs whose results could not be filed within the limit.
  std::vector<std::string> close(Duration limit);
  // Makes `close` not wait for a server that is away or refuses results. May be called from any
  // thread.
  void hurry();
  // Returns how many results were late, because other workers had taken the jobs over.
  [[nodiscard]] std::uint64_t late() const;

 private:
  // A command that must be carried out, for example to record the result of a job. It is posted
  // again until the server has carried it out.
  struct Filing {
    std::string id;  // of the job; empty: the command is not about one job
    fleet::Command command;
    std::function<void(const fleet::Reply&, Time posted)> done;
    bool awaits_reply = false;
    Time retry_at{};  // after a failure: when to post it again; the epoch: it has not failed
  };

  [[nodiscard]] RemoteOptions remote_link_options();
  void take_ready(std::size_t most_jobs, const WantsHost& wants, std::vector<batch::Job>& jobs);
  void wait_until_filed(std::unique_lock<std::mutex>& lock, Duration limit);
  void file(const std::string& id, const Script& script, std::vector<std::string> arguments,
            std::function<void(const fleet::Reply&, Time posted)> done);
  void post_filing(std::uint64_t number, Time now);
  void on_filing_reply(std::uint64_t number, fleet::Reply reply, Time posted);
  void on_change(bool up, const std::string& why);
  void on_tick();
  void renew_leases(Time now);
  void on_leases_renewed(const fleet::Reply& reply, std::vector<std::shared_ptr<Lease>> leases,
                         Time posted);
  void take_over_jobs(Time now);
  void queue_due_jobs(Time now);
  void request_totals(Time now);
  void ask_for_jobs();
  [[nodiscard]] std::size_t free_places() const;
  void on_delivered(const fleet::Reply& reply);
  void on_error(const fleet::Reply& reply);
  void on_damage(const std::string& why);
  void give_up(const std::string& why);
  void report_ended_errors(Time before);
  void add_jobs(const std::vector<fleet::Reply>& jobs, Time posted);
  void handle_totals(const fleet::Reply& reply, Time now);
  void read_totals_now();
  void throw_if_gone() const;
  void wait_remotely(const batch::Job& job, Duration time, int attempts);
  [[nodiscard]] std::vector<std::string> owner_arguments(const TakenJob& taken,
                                                         std::string_view expected) const;
  TakenJob release(const batch::Job& job);
  [[nodiscard]] fleet::Link::Options taker_options() const;
  void close_taker();

  // How long the server waits for jobs before it replies that there are none.
  static constexpr Duration kLongestTake = std::chrono::seconds(2);
  // How long the store waits after an error of the server: before it posts the command again, or
  // takes jobs again.
  static constexpr Duration kTryAgain = std::chrono::seconds(1);
  static Time now_is() { return std::chrono::steady_clock::now(); }
  static std::int64_t to_ms(Duration time) {
    return std::chrono::ceil<std::chrono::milliseconds>(time).count();
  }

  const StoreOptions options_;
  const std::string consumer_;
  const std::size_t most_taken_;
  // Used by the thread that runs the Runner:
  std::multimap<Time, batch::Job> short_waits_;         // jobs that wait here, by the ends
  std::map<std::string, Time, std::less<>> hold_ends_;  // by host
  std::size_t unfiled_ = 0;                             // the number of filings at the last take()

  mutable std::mutex mutex_;  // guards everything down to remote_
  std::condition_variable filed_;
  std::function<void()> wake_;
  std::deque<batch::Job> ready_;
  std::unordered_map<std::uint64_t, TakenJob> taken_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Filing> filings_;  // by number, in the order of `file`
  std::uint64_t last_filing_ = 0;
  std::size_t failing_ = 0;   // filings that have failed at least once
  std::size_t arriving_ = 0;  // jobs that were delivered and not fetched yet
  bool asking_ = false;       // a request for jobs has no reply yet
  bool closing_ = false;
  bool hurry_ = false;
  std::string gone_;                    // why the queue cannot be used any more; empty: it can
  bool damage_reported_ = false;        // the warning about damage was given
  std::map<std::string, Time> errors_;  // reported errors: the first word, and the last occurrence
  std::uint64_t late_ = 0;
  batch::Counts counts_;
  std::optional<Time> due_at_;  // when the next waiting job is due
  Duration server_offset_{};    // the server's clock minus our steady clock
  Time take_at_{};              // after a failed intent: when to take jobs again
  Time renew_at_{};             // the next time for renew_leases, and so on
  Time take_over_at_{};
  Time queue_due_at_{};
  Time request_totals_at_{};
  std::string take_over_from_ = "0-0";  // the cursor in the entries; "0-0": their beginning
  bool taking_over_ = false;            // the request has no reply yet
  bool open_ = false;                   // the constructor has finished
  bool was_up_ = true;

  RemoteQueue remote_;
  // A separate connection, because it blocks until there are jobs. It is the last member, because
  // its callbacks use the others.
  std::unique_ptr<fleet::Link> taker_;
};

}  // namespace httpretry::queue
