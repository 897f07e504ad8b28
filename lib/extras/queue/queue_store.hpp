// QueueStore: a Store that is a queue on a Redis server, which other workers use, too.
//
// A job that was taken is this worker's as long as its lease is renewed, in the background. What
// became of it is filed without waiting; where the server is away, that is kept in memory and filed
// when it is back, and meanwhile nothing is taken.
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
  // The run ends when no job is left. So it is an error if the queue does not exist, or if keys
  // were lost or changed: jobs that are counted may never come. Otherwise the queue is made.
  bool drain = false;
  // Warnings; on any thread.
  std::function<void(const std::string&)> tell;
};

class QueueStore final : public batch::Store {
 public:
  // A job that was taken. Job::number counts what this worker takes: a job that it takes again has
  // another number.
  struct Held {
    std::string id;
    std::string entry;
    std::int64_t deliveries = 0;
    std::uint64_t line = 0;
    bool intended = false;  // it may be that the server knows that it is sent
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
  // None: the server keeps the jobs that wait for a host, and not the host.
  [[nodiscard]] std::vector<batch::HeldHost> holds() override { return {}; }
  void commit() override;
  [[nodiscard]] batch::Counts counts() const override;
  [[nodiscard]] std::optional<Duration> next_due() override;

  // Called on another thread when there are jobs to take.
  void on_jobs(std::function<void()> wake);
  [[nodiscard]] Held held(const batch::Job& job) const;
  [[nodiscard]] const std::string& token() const { return remote_.token(); }
  // By the server's clock.
  [[nodiscard]] WallTime date() const;

  // Takes nothing more, gives back what was not sent, and waits until everything is filed. Returns
  // the ids of the jobs that could not be filed within the limit.
  std::vector<std::string> close(Duration limit);
  // From any thread: `close` does not wait for a server that is away or refuses what is filed.
  void hurry();
  // How many results came too late: other workers had taken these jobs over.
  [[nodiscard]] std::uint64_t late() const;

 private:
  // What must be carried out, sooner or later.
  struct Filing {
    std::string id;  // of the job; empty: it is about none
    fleet::Command command;
    std::function<void(const fleet::Reply&, Time posted)> done;
    bool on_its_way = false;
    Time again_at{};
  };

  void file(const std::string& id, const Script& script, std::vector<std::string> arguments,
            std::function<void(const fleet::Reply&, Time posted)> done);
  void post_filing(std::uint64_t number, Time now);
  void on_filed(std::uint64_t number, const fleet::Reply& reply, Time posted);
  void on_change(bool up, const std::string& why);
  void on_tick();
  void beat(Time now);
  void reap(Time now);
  void move_due(Time now);
  void ask_for_news(Time now);
  void ask_for_jobs();
  [[nodiscard]] std::size_t room() const;
  void on_delivered(const fleet::Reply& reply);
  void on_error(const fleet::Reply& reply);
  void on_damage(const std::string& why);
  void give_up(const std::string& why);
  void end_errors(Time before);
  void add_jobs(const std::vector<fleet::Reply>& found, Time posted);
  void learn(const fleet::Reply& reply, Time now);
  void check() const;
  void wait_remotely(const batch::Job& job, Duration time, int attempts);
  [[nodiscard]] std::vector<std::string> about(const Held& held, std::string_view expected) const;
  Held let_go(const batch::Job& job);
  [[nodiscard]] fleet::Link::Options taker_options() const;
  void close_taker();

  // The server waits so long for jobs that it can give.
  static constexpr Duration kLongestTake = std::chrono::seconds(2);
  static Time now_is() { return std::chrono::steady_clock::now(); }
  static std::int64_t to_ms(Duration time) {
    return std::chrono::ceil<std::chrono::milliseconds>(time).count();
  }

  const StoreOptions options_;
  const std::string consumer_;
  const std::size_t most_held_;
  // Of the thread that runs the Runner:
  std::multimap<Time, batch::Job> later_;
  std::map<std::string, Time, std::less<>> holds_;
  std::size_t unfiled_ = 0;  // when take() looked last

  mutable std::mutex mutex_;  // guards all down to remote_
  std::condition_variable filed_;
  std::function<void()> wake_;
  std::deque<batch::Job> ready_;
  std::unordered_map<std::uint64_t, Held> held_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Filing> filings_;  // in their order
  std::uint64_t last_filing_ = 0;
  std::size_t failing_ = 0;  // filings that had no good reply
  std::size_t arriving_ = 0;
  bool asking_ = false;
  bool closing_ = false;
  bool hurry_ = false;
  std::string gone_;  // why the queue cannot be used any more
  bool damage_told_ = false;
  std::map<std::string, Time> errors_;  // that were told, by their first word, and the last of each
  std::uint64_t late_ = 0;
  batch::Counts counts_;
  std::optional<Time> due_at_;  // of the first that waits
  Duration server_offset_{};    // of its clock to ours that never jumps
  Time beat_at_{};
  Time reap_at_{};
  Time move_at_{};
  Time news_at_{};
  std::string reap_from_ = "0-0";
  bool reaping_ = false;
  bool open_ = false;
  bool was_up_ = true;

  RemoteQueue remote_;
  // A connection of its own, because it waits for jobs. Its replies use all the others.
  std::unique_ptr<fleet::Link> taker_;
};

}  // namespace httpretry::queue
