#include "send/sender.hpp"

#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "send/client_options.hpp"
#include "send/download.hpp"
#include "send/print_result.hpp"
#include "send/status_line.hpp"
#include "send/targets.hpp"
#include "send/write_out.hpp"

#include <httpretry/batch/runner.hpp>
#include <httpretry/middleware/builtin.hpp>

#include <unistd.h>
#include <algorithm>
#include <deque>
#include <map>
#include <stop_token>
#include <variant>

namespace httpretry::cli {
namespace {

bool is_terminal(const std::string& target) {
  return target == "-" && ::isatty(STDOUT_FILENO) == 1;
}

// Returns whether a response to standard output or a pipe may be shown before it is complete. Not
// with -Z, which would mix the bodies, and not if -D names a stream, because the body would come
// before its headers.
bool may_show_early(const SendOptions& options) {
  return !options.parallel && !is_stream(options.headers_file);
}

// Returns whether the status line may show a progress bar. It must not come between the pieces of a
// body on the same terminal.
bool may_show_bar(const SendOptions& options, const std::string& target) {
  return !(options.stream && may_show_early(options) && is_terminal(target));
}

// Returns the object that receives the response body of the URL at `index` piece by piece. Returns
// null if the response must be held in memory: for -I (there is no body), for a file that begins
// with the headers (-i), and for --until, which reads the body.
std::shared_ptr<Download> download_for(const SendOptions& options, std::size_t index,
                                       const Request& request, const WaitLimit& limit) {
  const auto target = target_for(options, index, request);  // a path, or "-" for standard output
  const bool to_file = !is_stream(target);
  const bool in_memory = options.head || (options.include && to_file) || !options.until.empty();
  if (in_memory) return nullptr;
  DownloadOptions download;
  // With -T, the offset of -C is that of the upload, not of the response.
  if (index >= options.uploads.size()) download.offset = options.offset;
  download.bytes_per_second = options.bytes_per_second;
  download.max_size = options.max_file_size;
  if (to_file) {
    FileOptions file;
    file.keep_partial = options.resume;  // after a failure, for the next -C -
    file.continue_existing = options.resume || download.offset > 0;
    download.file = save_to(target, file);
    if (server_may_name_file(options, index)) download.named = std::make_shared<NamedFile>(options);
    // Without `output`, the body is shown when it is complete, as on a terminal without -N.
  } else if (may_show_early(options) && (options.stream || !is_terminal(target))) {
    download.at_once = options.stream;
    download.output =
        std::make_shared<BodyOutput>(options, index, target, limit, limit.descriptor());
    download.include = options.include;
  }
  return std::make_shared<Download>(std::move(download));
}

// Adds one key for all attempts of a URL.
void add_idempotency_key(const SendOptions& options, const RetryPolicy& policy, Request& request) {
  if (!options.use_idempotency_key) return;
  const auto name = policy.idempotency_key.empty() ? "Idempotency-Key" : policy.idempotency_key;
  const auto& key = options.idempotency_key;
  const bool has_key = request.headers().contains(name) && key.empty();  // by -H
  if (!has_key) request.set_header(name, key.empty() ? new_idempotency_key() : key);
  request.edit_options().repeatable = true;
}

// A URL of the command line.
struct UrlJob {
  Request request;
  std::shared_ptr<Download> download = nullptr;    // null: the body is held in memory
  Connections connections = {};                    // filled only if -w needs them
  std::shared_ptr<std::string> headers = nullptr;  // for -D
  std::shared_ptr<LastSend> last_send = nullptr;   // for -w
  bool started = false;
};

// UrlStore holds the URLs of a group for batch::Runner: in memory, without a journal.
class UrlStore final : public batch::Store {
 public:
  // `hosts` has the host of each URL. At most `most_per_host` jobs of a host are taken and not yet
  // finished; 0 means no limit.
  UrlStore(const std::vector<std::string>& hosts, std::size_t most_per_host)
      : most_per_host_(most_per_host) {
    for (std::size_t i = 0; i < hosts.size(); ++i) queues_[hosts[i]].push_back(i + 1);
    counts_.queued = hosts.size();
  }

  // Moves up to `most` jobs from the store to the end of `jobs`, for the caller to send. Leaves out
  // hosts that `wants` rejects, and hosts with `most_per_host_` jobs in flight (0: no limit). Each
  // pass over the hosts takes one job of each, so that a host with many jobs does not delay the
  // others. Ends early after a pass that takes no job.
  void take(std::size_t most, const WantsHost& wants, std::vector<batch::Job>& jobs) override {
    std::size_t left = most;
    for (bool has_taken = true; has_taken;) {
      has_taken = false;
      for (auto& [host, queue] : queues_) {
        if (left == 0) return;
        if (queue.empty() || !wants(host)) continue;
        auto& in_flight = in_flight_[host];
        if (most_per_host_ > 0 && in_flight == most_per_host_) continue;
        ++in_flight;
        batch::Job job;
        job.number = queue.front();
        job.host = host;
        queue.pop_front();
        jobs.push_back(std::move(job));
        has_taken = true;
        --left;
      }
    }
  }
  void give_back(const batch::Job& job) override {
    queues_.at(job.host).push_front(job.number);
    --in_flight_.at(job.host);
  }
  void finish(const batch::Job& job, batch::JobEnd /*end*/) override {
    --in_flight_.at(job.host);
    --counts_.queued;
    ++counts_.done;
  }
  [[nodiscard]] batch::Counts counts() const override { return counts_; }

  // These do nothing: no state has to be durable, and no job has to wait in the store.
  std::vector<const batch::Job*> intend(std::span<const batch::Job* const> /*jobs*/) override {
    return {};
  }
  void wait(const batch::Job& /*job*/, Duration /*time*/, int /*attempts*/,
            std::string_view /*why*/) override {}
  void hold(std::string_view /*host*/, Duration /*time*/) override {}
  std::vector<batch::HeldHost> holds() override { return {}; }
  void commit() override {}
  std::optional<Duration> next_due() override { return std::nullopt; }

 private:
  const std::size_t most_per_host_;
  std::map<std::string, std::deque<std::size_t>> queues_;  // by host: numbers of URLs, from 1
  std::map<std::string, std::size_t> in_flight_;           // by host: jobs that were taken
  batch::Counts counts_;
};

// Sender sends the URLs of a group with one client, and prints their results.
class Sender : public batch::Jobs {
 public:
  Sender(Group& group, WholeRun& run)
      : options_(group.options),
        limit_(group.limit),
        first_number_(group.first_number),
        policies_(group.policies),
        cookies_(group.cookies),
        run_(run),
        on_signal_(limit_.signals().stop(), [this] { stop_.request_stop(); }) {
    if (shows_status_line(options_)) status_line_ = status_line(options_, policies_);
    jobs_.reserve(group.requests.size());
    for (auto& request : group.requests) jobs_.push_back({.request = std::move(request)});
  }

  void send() {
    if (!jobs_.empty()) options_.parallel ? send_in_parallel() : send_in_order();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const auto& request = jobs_[i].request;
      if (!jobs_[i].started) run_.record_not_sent(first_number_ + i, request);
    }
    save_cookies();
  }

 private:
  [[nodiscard]] bool may_continue() const { return !stop_.stop_requested() && !run_.must_end(); }

  [[nodiscard]] ClientOptions options_for_client(std::shared_ptr<RetryBudget> budget) const {
    auto client = client_options(options_, policies_, cookies_, std::move(budget));
    if (status_line_) client.observers.push_back(status_line_);
    return client;
  }

  void send_in_order() {
    Client client(options_for_client(/*budget=*/nullptr));
    for (std::size_t i = 0; i < jobs_.size() && may_continue(); ++i) {
      auto options = prepare(i);
      finish(i, client.send(jobs_[i].request, std::move(options)));
    }
  }

  // Implements -Z: sends the requests of the group with a batch::Runner, up to --parallel-max at
  // the same time, and waits until all have ended. The runner takes the next request from the
  // UrlStore, and calls prepare() and judge() of this class for each. Prints the totals at the end.
  void send_in_parallel() {
    const auto began = std::chrono::steady_clock::now();
    run_.begin_totals();
    std::vector<std::string> hosts;
    for (const auto& job : jobs_) hosts.emplace_back(job.request.parsed_url()->origin());
    UrlStore store(hosts, static_cast<std::size_t>(options_.parallel_max_host));
    batch::RunnerOptions options;
    options.parallel = static_cast<std::size_t>(options_.parallel_max);
    options.max_idle = kForever;              // however long a host is paused, the run goes on
    options.max_shortage = Duration::zero();  // the run ends if not even one request can be sent,
    options.grace = Duration::zero();         // and the calls in flight then end at once
    options.on_shortage = [this](const std::string& what) {
      if (shows_errors(options_)) {
        print_message("httpretry: fewer requests are sent at a time: " + what);
      }
    };
    // During an outage of a host, only a few calls retry. If the user chose no budget, down_hosts
    // is also the retry budget, which then refuses retries at hosts that are down.
    options.down_hosts = std::make_shared<batch::DownHosts>();
    const auto budget = has_own_budgets() ? nullptr : options.down_hosts;
    batch::Runner runner(options_for_client(budget), store, *this, options);
    const std::stop_callback on_stop(stop_.get_token(), [&runner] { runner.stop(); });
    // A signal, or --fail-early in an earlier group, may have ended the run already.
    const auto end = may_continue() ? runner.run() : batch::RunEnd::Stopped;
    if (end == batch::RunEnd::Shortage) run_.record_shortage();
    run_.print_totals(std::chrono::steady_clock::now() - began);
  }

  std::variant<batch::Prepared, batch::JobEnd> prepare(const batch::Job& job) override {
    const auto index = job.number - 1;
    auto options = prepare(index);
    batch::Prepared prepared(jobs_[index].request);
    prepared.options = std::move(options);
    return prepared;
  }

  // Prints the result of a call. The runner calls this on the thread of `send`.
  batch::Verdict judge(const batch::Job& job, const batch::Prepared& /*sent*/,
                       Outcome outcome) override {
    if (!outcome && outcome.error().code == Errc::LocalShortage) return give_back(job);
    finish(job.number - 1, outcome);
    if (run_.must_end()) stop_.request_stop();
    return {};
  }

  // Returns whether the user chose a budget, or shares budgets with other processes (--shared). The
  // budget of `standard` suits a program that keeps calling; in a run with an end, DownHosts
  // replaces it.
  [[nodiscard]] bool has_own_budgets() const {
    const auto standard = RetryPolicy().budget;
    const auto differs = [&](const UrlJob& job) {
      const auto& budget = policy_for(policies_, job.request).policy->budget;
      return budget.kind != BudgetPolicy::Kind::None && budget != standard;
    };
    return options_.policy.has_setting("budget") || options_.shared_state ||
           std::ranges::any_of(jobs_, differs);
  }

  // Returns the job to the store. It is sent when another call has ended.
  batch::Verdict give_back(const batch::Job& job) {
    jobs_[job.number - 1].started = false;
    batch::Verdict verdict;
    verdict.what = batch::Verdict::What::GiveBack;
    return verdict;
  }

  // Marks the request at `index` of the group as started, and prepares it for its send: adds an
  // idempotency key, the sink that receives the response's body, the label of its messages, what
  // -D and -w need, and callbacks. Returns the options of the call.
  CallOptions prepare(std::size_t index) {
    limit_.restart();  // -m: this limits waits for output, and call_options() limits the call
    auto& job = jobs_[index];
    auto& request = job.request;
    job.started = true;
    add_idempotency_key(options_, *policy_for(policies_, request).policy, request);
    // Receives the body piece by piece; null: the body is held in memory.
    job.download = download_for(options_, index, request, limit_);
    request.edit_options().sink = job.download;
    if (!options_.headers_file.empty()) job.headers = std::make_shared<std::string>();
    if (!options_.write_out.empty()) job.last_send = std::make_shared<LastSend>();
    // Begins each message about the request; "" for a single URL.
    auto label = run_.label(first_number_ + index, request);
    if (!label.empty() || job.headers || job.last_send) {
      // -v reads the label; middlewares for -D and -w write to the others.
      request.edit_options().context.set(UrlOfRun{std::move(label), job.headers, job.last_send});
    }
    set_callbacks(job, index);
    return call_options();
  }

  // Sets the callbacks for the status line and for -w.
  void set_callbacks(UrlJob& job, std::size_t index) {
    auto& request = job.request;
    if (status_line_) {
      const bool with_bar = may_show_bar(options_, target_for(options_, index, request));
      request.edit_options().on_progress = status_line_->on_progress(with_bar);
    }
    if (!needs_connections(options_.write_out)) return;
    // Called for each exchange, including those of retries and redirects.
    request.edit_options().on_connection = [&total = job.connections](ConnectionInfo connection) {
      total.made += connection.new_connections;
      total.request_bytes += connection.request_bytes;
      total.last = std::move(connection);
    };
  }

  // Returns what stops a call, and its time limit.
  [[nodiscard]] CallOptions call_options() const {
    CallOptions call;
    call.stop = stop_.get_token();
    call.timeout = options_.max_time.value_or(kForever);
    return call;
  }

  // Writes the response and the messages for the request at `index` after its call, adds the
  // outcome to the results of the run, and frees the memory of the response.
  void finish(std::size_t index, const Outcome& outcome) {
    auto& job = jobs_[index];
    const EndedCall ended{.request = job.request,
                          .policy = *policy_for(policies_, job.request).policy,
                          .outcome = outcome,
                          .index = index,
                          .download = job.download.get(),
                          .connections = job.connections,
                          .last_send = job.last_send.get(),
                          .label = run_.label(first_number_ + index, job.request),
                          // False if enough failures of this kind were explained before. Always
                          // true for a success.
                          .explained = run_.count_failure(job.request, outcome)};
    if (job.headers) keep_headers(*job.headers);  // for the file of -D
    const int status = print_result(options_, ended, limit_);
    run_.add(first_number_ + index, job.request, outcome, status);
    job.request.edit_options().sink.reset();  // frees the body
    job.download.reset();
    job.headers.reset();
  }

  // Keeps the headers for a file, which is written at the end. A stream gets them here, before the
  // body.
  void keep_headers(const std::string& text) {
    const auto& file = options_.headers_file;
    if (!is_stream(file)) return run_.add_headers(file, text);
    limit_.restart();
    write_file([&] { write_to(file, text, &limit_); });
  }

  void write_file(const std::function<void()>& write) {
    if (!try_write(write, shows_errors(options_))) run_.record_write_failure();
  }

  void save_cookies() {
    if (!options_.cookie_jar.empty()) write_file([this] { write_cookies(); });
  }

  // CookieJar::save cannot write to pipes.
  void write_cookies() const {
    const auto& jar = options_.cookie_jar;
    if (!is_stream(jar)) {
      if (const auto saved = cookies_->save(jar); !saved) throw WriteError(saved.error().message);
      return;
    }
    limit_.restart();
    write_to(jar, cookies_->to_text(), &limit_);
  }

  const SendOptions& options_;
  const WaitLimit& limit_;
  std::size_t first_number_;  // of the first URL of the group, among all URLs of the run
  const PolicySet& policies_;
  const std::shared_ptr<CookieJar>& cookies_;
  WholeRun& run_;
  std::stop_source stop_;  // by a signal, or by --fail-early
  std::stop_callback<std::function<void()>> on_signal_;
  std::shared_ptr<StatusLine> status_line_;  // null: not shown
  std::vector<UrlJob> jobs_;
};

}  // namespace

void send_group(Group& group, WholeRun& run) { Sender(group, run).send(); }

bool try_write(const std::function<void()>& write, bool shows_error) {
  try {
    write();
    return true;
  } catch (const WriteError& error) {
    if (shows_error) print_message(std::string("httpretry: ") + error.what());
    return false;
  }
}

}  // namespace httpretry::cli
