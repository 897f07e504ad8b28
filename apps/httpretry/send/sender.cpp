#include "send/sender.hpp"

#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "send/client_options.hpp"
#include "send/download.hpp"
#include "send/print_result.hpp"
#include "send/progress_bar.hpp"
#include "send/status_line.hpp"
#include "send/write_out.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/middleware/builtin.hpp>

#include <unistd.h>
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace httpretry::cli {
namespace {

bool shows_bar(const SendOptions& options) {
  return !options.parallel && shows_status_line(options);
}

// A smaller upload is sent too fast for a bar; libcurl reads bodies in pieces of this size.
constexpr std::uint64_t kMinBarSize = 65536;

// Receives the response body piece by piece. Null if the body must be held in memory: to write it
// to a file after its headers, or for --until.
std::shared_ptr<Download> download_for(const SendOptions& options, std::size_t index,
                                       const Request& request) {
  const auto target = target_for(options, index, request);
  const bool to_file = !is_stream(target);
  if (options.head || (options.include && to_file) || !options.until.empty()) return nullptr;
  DownloadOptions download;
  if (index >= options.uploads.size()) download.offset = options.offset;
  download.show_progress = shows_bar(options);
  download.bytes_per_second = options.bytes_per_second;
  download.max_size = options.max_file_size;
  if (to_file) {
    download.file = save_to(target, {options.resume, options.resume || download.offset > 0});
  }
  return std::make_shared<Download>(std::move(download));
}

// One key for all attempts of a URL.
void add_idempotency_key(const SendOptions& options, const RetryPolicy& policy, Request& request) {
  if (!options.use_idempotency_key) return;
  const auto name = policy.idempotency_key.empty() ? "Idempotency-Key" : policy.idempotency_key;
  const auto& given = options.idempotency_key;
  const bool has_one = request.headers().contains(name) && given.empty();  // by -H
  if (!has_one) request.set_header(name, given.empty() ? new_idempotency_key() : given);
  request.edit_options().repeatable = true;
}

// A URL of the command line.
struct Job {
  Request request;
  std::shared_ptr<Download> download;  // null: the body is held in memory
  Connections connections;             // filled only if -w needs them
  std::string report;                  // empty if not sent, or without --report
  int status = kOk;
};

// For the summary of -Z.
struct Totals {
  std::size_t succeeded = 0;
  std::size_t failed = 0;
  std::size_t attempts = 0;
  std::uint64_t bytes = 0;
};

class Sender {
 public:
  Sender(const SendOptions& options, const WaitLimit& limit, PolicySet policies,
         std::shared_ptr<CookieJar> cookies)
      : options_(options),
        limit_(limit),
        signals_(limit.signals()),
        policies_(std::move(policies)),
        cookies_(std::move(cookies)),
        client_(client_options(options, policies_, cookies_)) {}

  int run(std::vector<Request> requests) {
    jobs_.reserve(requests.size());
    for (auto& request : requests) jobs_.push_back({std::move(request), nullptr, {}, {}});
    if (options_.parallel) {
      send_in_parallel();
    } else {
      send_in_order();
    }
    // An error in one of them must not prevent the other.
    const bool reported = try_write([this] { write_report(); });
    const bool saved = try_write([this] { save_cookies(); });
    if (signals_.received() != 0) return 128 + signals_.received();
    return reported && saved ? last_failure() : kWriteError;
  }

 private:
  template <class Write>
  static bool try_write(Write write) {
    try {
      write();
      return true;
    } catch (const WriteError& error) {
      print_message(std::string("httpretry: ") + error.what());
      return false;
    }
  }

  void send_in_order() {
    for (std::size_t i = 0; i < jobs_.size() && signals_.received() == 0; ++i) {
      auto options = prepare(i);
      finish(i, client_.send(jobs_[i].request, std::move(options)));
    }
  }

  // Prints each result on this thread when its call ends.
  void send_in_parallel() {
    const auto began = std::chrono::steady_clock::now();
    const auto most = static_cast<std::size_t>(options_.parallel_max);
    std::size_t next = 0;
    for (std::size_t running = 0;;) {
      for (; next < jobs_.size() && running < most && signals_.received() == 0; ++next) {
        start(next);
        ++running;
      }
      if (running == 0) break;
      auto [index, outcome] = take_finished();
      --running;
      finish(index, outcome);
    }
    print_summary(std::chrono::steady_clock::now() - began);
  }

  void start(std::size_t index) {
    auto options = prepare(index);
    client_.send_then(
        jobs_[index].request,
        [this, index](Outcome outcome) {
          const std::lock_guard lock(mutex_);
          finished_.emplace_back(index, std::move(outcome));
          call_finished_.notify_one();
        },
        std::move(options));
  }

  std::pair<std::size_t, Outcome> take_finished() {
    std::unique_lock lock(mutex_);
    call_finished_.wait(lock, [this] { return !finished_.empty(); });
    auto first = std::move(finished_.front());
    finished_.pop_front();
    return first;
  }

  const ResolvedPolicy& policy_for(const Request& request) const {
    return policies_.find(request.method(), *request.parsed_url());
  }

  CallOptions prepare(std::size_t index) {
    limit_.restart();
    auto& job = jobs_[index];
    auto& request = job.request;
    add_idempotency_key(options_, *policy_for(request).policy, request);
    job.download = download_for(options_, index, request);
    request.edit_options().sink = job.download;
    // with_bar needs a body that can be read again.
    const bool bar = shows_bar(options_) && size_of(request.body()) > kMinBarSize;
    if (bar && request.body().replayable()) request.set_body(with_bar(request.body()));
    if (needs_connections(options_.write_out)) {
      request.edit_options().on_connection = [&total = job.connections](ConnectionInfo last) {
        total.made += last.new_connections;
        total.request_bytes += last.request_bytes;
        total.last = std::move(last);
      };
    }
    CallOptions call;
    call.stop = signals_.stop();
    if (options_.max_time && *options_.max_time > Duration::zero()) {
      call.timeout = *options_.max_time;
    }
    return call;
  }

  void finish(std::size_t index, const Outcome& outcome) {
    auto& job = jobs_[index];
    if (!options_.report.empty()) {
      job.report = report_json(job.request, outcome, policy_for(job.request));
    }
    const EndedCall ended{
        job.request,    *policy_for(job.request).policy, outcome, index, job.download.get(),
        job.connections};
    job.status = print_result(options_, ended, limit_);
    ++(job.status == kOk ? totals_.succeeded : totals_.failed);
    totals_.attempts += history_of(outcome).attempts.size();
    if (outcome) totals_.bytes += std::max<std::uint64_t>(outcome->body.size(), outcome->delivered);
    job.request.edit_options().sink.reset();  // frees the body
    job.download.reset();
  }

  void print_summary(Duration time) const {
    if (options_.silent) return;
    print_message("httpretry: " + std::to_string(totals_.succeeded) + " succeeded, " +
                  std::to_string(totals_.failed) + " failed, " + std::to_string(totals_.attempts) +
                  " attempts, " + std::to_string(totals_.bytes) + " bytes in " + seconds(time));
  }

  [[nodiscard]] int last_failure() const {
    const auto last = std::find_if(jobs_.rbegin(), jobs_.rend(),
                                   [](const Job& job) { return job.status != kOk; });
    return last == jobs_.rend() ? kOk : last->status;
  }

  void write_report() const {
    if (options_.report.empty()) return;
    std::string text;
    for (const auto& job : jobs_) {
      if (!job.report.empty()) text += (text.empty() ? "" : ",\n") + job.report;
    }
    const bool several = options_.urls.size() > 1;
    if (text.empty() && !several) text = "null";  // a signal came before the request
    limit_.restart();
    write_to(options_.report, several ? "[" + text + "]\n" : text + "\n", signals_.descriptor(),
             &limit_);
  }

  void save_cookies() {
    if (options_.cookie_jar.empty()) return;
    const auto& jar = options_.cookie_jar;
    if (is_stream(jar)) return write_cookies_to(jar);
    if (const auto saved = cookies_->save(jar); !saved) throw WriteError(saved.error().message);
  }

  // CookieJar::save writes no pipes.
  void write_cookies_to(const std::string& stream) const {
    limit_.restart();
    write_to(stream, cookies_->to_text(), signals_.descriptor(), &limit_);
  }

  const SendOptions& options_;
  const WaitLimit& limit_;
  const Signals& signals_;
  PolicySet policies_;
  std::shared_ptr<CookieJar> cookies_;
  std::vector<Job> jobs_;
  Totals totals_;
  std::mutex mutex_;
  std::condition_variable call_finished_;
  std::deque<std::pair<std::size_t, Outcome>> finished_;
  Client client_;  // last: its callbacks use the other members
};

}  // namespace

int send_requests(const SendOptions& options, const WaitLimit& limit, PolicySet policies,
                  std::shared_ptr<CookieJar> cookies, std::vector<Request> requests) {
  Sender sender(options, limit, std::move(policies), std::move(cookies));
  return sender.run(std::move(requests));
}

}  // namespace httpretry::cli
