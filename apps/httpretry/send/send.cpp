// Sending: one client for all URLs, one after the other or (-Z) at once.
#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "cli/words.hpp"
#include "send/bar.hpp"
#include "send/connection.hpp"
#include "send/download.hpp"
#include "send/live.hpp"
#include "send/send_options.hpp"
#include "send/shown.hpp"
#include "send/trace.hpp"
#include "send/until.hpp"
#include "send/write_out.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/client/report.hpp>
#include <httpretry/curl/cookies.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <unistd.h>
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace httpretry::cli {
namespace {

bool in_color(const SendOptions& options) {
  if (options.color != "auto") return options.color == "always";
  const char* unwanted = std::getenv("NO_COLOR");
  return ::isatty(STDERR_FILENO) == 1 && (unwanted == nullptr || *unwanted == '\0');
}

void check(const SendOptions& options) {
  if (options.urls.empty()) throw UsageError("no URL given");
  if (options.uploads.size() > options.urls.size()) throw UsageError("more -T than URLs");
  if (options.outputs.size() > options.urls.size()) throw UsageError("more -o than URLs");
  if (!options.resume && options.offset == 0) return;
  if (options.include || options.head || !options.until.empty()) {
    throw UsageError("-C goes without -i, -I and --until");
  }
  if (options.data || !options.form.empty() || (options.resume && !options.uploads.empty())) {
    throw UsageError("-C goes without -d and -F, and with -T it takes a number of bytes");
  }
}

void check_target(const SendOptions& options, std::size_t index, const Request& request) {
  if (target_for(options, index, request) != "-") return;
  if (options.resume) {
    throw UsageError("-C - goes on with a file: the answer of " +
                     without_secrets(options.urls[index]) + " needs -o FILE or -O");
  }
  if (options.report != "-") return;
  throw UsageError("--report - takes standard output: the answer of " +
                   without_secrets(options.urls[index]) + " needs -o FILE");
}

int print_version() {
  write_to("-", std::string("httpretry " HTTPRETRY_VERSION " ") + transport_version() + "\n", -1);
  return kOk;
}

// curl's sledgehammer: whatever makes the exit status bad is tried again.
void add_retry_all(SendOptions& options) {
  if (!options.retry_all_errors) return;
  const bool statuses_fail = options.on_bad_answer != OnBadAnswer::TakeAsAnswer;
  options.policy.set("retry_on.statuses", statuses_fail ? R"(["4xx", "5xx"])" : R"(["5xx"])");
  options.policy.set("retry_on.error_codes", "[]");
  options.policy.set("retry_on.transport", kAllTransport);
  options.policy.set("repeat", R"("always")");
}

ClientOptions client_options(const SendOptions& options, const PolicySet& policies,
                             std::shared_ptr<CookieJar> cookies) {
  ClientOptions client;
  if (options.follow) {
    RedirectOptions redirects;
    redirects.limit = options.max_redirects;
    client.middlewares.push_back(redirect(redirects));
  }
  RetryOptions retrying;
  retrying.policies = policies;
  if (!options.until.empty()) {
    auto until = Until::parse(options.until);
    until.follows = options.follow;
    poll_until(retrying, std::move(until), options.retry_delay);
  }
  client.middlewares.push_back(retry(std::move(retrying)));
  if (options.verbose) client.middlewares.push_back(verbose_stage());
  if (options.trace) client.observers.push_back(tracer(in_color(options)));
  if (shows_live_line(options)) client.observers.push_back(live_line(options, policies));

  client.connection = options.connection;
  add_environment(client.connection);
  client.connection.cookies = std::move(cookies);
  return client;
}

std::shared_ptr<CookieJar> cookie_jar(const SendOptions& options) {
  if (!options.keeps_cookies) return nullptr;
  auto jar = std::make_shared<CookieJar>();
  for (const auto& file : options.cookie_files) {
    if (::access(file.c_str(), F_OK) != 0) continue;  // as curl: it may be made by -c
    if (const auto loaded = jar->load(file); !loaded) throw ReadError(loaded.error().message);
  }
  return jar;
}

bool shows_bar(const SendOptions& options) { return !options.parallel && shows_live_line(options); }

constexpr std::uint64_t kPieceOfBody = 65536;

// A body arrives piece by piece: in its file, or where it waits for its end. One that goes into a
// file behind its headers, or that --until looks into, is had in memory.
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

// The same on all attempts, another for each URL.
void give_key(const SendOptions& options, const RetryPolicy& policy, Request& request) {
  if (!options.give_key) return;
  const auto name = policy.idempotency_key.empty() ? "Idempotency-Key" : policy.idempotency_key;
  const auto& given = options.idempotency_key;
  const bool has_one = request.headers().contains(name) && given.empty();  // by -H
  if (!has_one) request.set_header(name, given.empty() ? new_idempotency_key() : given);
  request.edit_options().repeatable = true;
}

// What the calls came to, for the summary.
struct Sums {
  std::size_t done = 0;
  std::size_t failed = 0;
  std::size_t attempts = 0;
  std::uint64_t bytes = 0;
};

class Sending {
 public:
  Sending(const SendOptions& options, const Signals& signals, PolicySet policies,
          std::shared_ptr<CookieJar> cookies)
      : options_(options),
        signals_(signals),
        policies_(std::move(policies)),
        cookies_(std::move(cookies)),
        client_(client_options(options, policies_, cookies_)) {}

  int run(std::vector<Request> requests) {
    requests_ = std::move(requests);
    reports_.resize(requests_.size());
    downloads_.resize(requests_.size());
    connections_.resize(requests_.size());
    statuses_.resize(requests_.size(), kOk);
    if (options_.parallel) {
      send_at_once();
    } else {
      send_in_order();
    }
    // That one of them cannot be written keeps the other from nothing.
    const bool reported = written([this] { write_report(); });
    const bool saved = written([this] { save_cookies(); });
    if (signals_.received() != 0) return 128 + signals_.received();
    return reported && saved ? last_failure() : kWriteError;
  }

 private:
  template <class Write>
  static bool written(Write write) {
    try {
      write();
      return true;
    } catch (const WriteError& error) {
      say(std::string("httpretry: ") + error.what());
      return false;
    }
  }

  void send_in_order() {
    for (std::size_t i = 0; i < requests_.size() && signals_.received() == 0; ++i) {
      auto options = prepare(i);
      finish(i, client_.send(requests_[i], std::move(options)));
    }
  }

  // What has ended is shown on this thread, one after the other, as it comes.
  void send_at_once() {
    const auto began = std::chrono::steady_clock::now();
    const auto most = static_cast<std::size_t>(options_.parallel_max);
    std::size_t next = 0;
    for (std::size_t under_way = 0;;) {
      for (; next < requests_.size() && under_way < most && signals_.received() == 0; ++next) {
        start(next);
        ++under_way;
      }
      if (under_way == 0) break;
      auto [index, outcome] = take_ended();
      --under_way;
      finish(index, outcome);
    }
    sum_up(std::chrono::steady_clock::now() - began);
  }

  void start(std::size_t index) {
    auto options = prepare(index);
    client_.send_then(
        requests_[index],
        [this, index](Outcome outcome) {
          const std::lock_guard lock(mutex_);
          ended_.emplace_back(index, std::move(outcome));
          one_ended_.notify_one();
        },
        std::move(options));
  }

  std::pair<std::size_t, Outcome> take_ended() {
    std::unique_lock lock(mutex_);
    one_ended_.wait(lock, [this] { return !ended_.empty(); });
    auto first = std::move(ended_.front());
    ended_.pop_front();
    return first;
  }

  const ResolvedPolicy& policy_for(const Request& request) const {
    return policies_.find(request.method(), *request.parsed_url());
  }

  CallOptions prepare(std::size_t index) {
    auto& request = requests_[index];
    give_key(options_, *policy_for(request).policy, request);
    downloads_[index] = download_for(options_, index, request);
    request.edit_options().sink = downloads_[index];
    // One that is in a single piece, or can be read only once, goes as it is.
    const bool bar = shows_bar(options_) && size_of(request.body()) > kPieceOfBody;
    if (bar && request.body().replayable()) request.set_body(with_bar(request.body()));
    if (asks_for_connection(options_.write_out)) {
      request.edit_options().on_connection = [&sums = connections_[index]](ConnectionFacts facts) {
        sums.made += facts.new_connections;
        sums.request_bytes += facts.request_bytes;
        sums.last = std::move(facts);
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
    auto& request = requests_[index];
    if (!options_.report.empty()) {
      reports_[index] = report_json(request, outcome, policy_for(request));
    }
    statuses_[index] =
        show(options_, {request, outcome, index, downloads_[index].get(), connections_[index]},
             signals_.descriptor());
    ++(statuses_[index] == kOk ? sums_.done : sums_.failed);
    sums_.attempts += history_of(outcome).attempts.size();
    if (outcome) sums_.bytes += std::max<std::uint64_t>(outcome->body.size(), outcome->delivered);
    request.edit_options().sink.reset();  // with what it has of the answer
    downloads_[index].reset();
  }

  void sum_up(Duration time) const {
    if (options_.silent) return;
    say("httpretry: " + std::to_string(sums_.done) + " done, " + std::to_string(sums_.failed) +
        " failed, " + std::to_string(sums_.attempts) + " attempts, " + std::to_string(sums_.bytes) +
        " bytes in " + seconds(time));
  }

  [[nodiscard]] int last_failure() const {
    const auto last = std::find_if(statuses_.rbegin(), statuses_.rend(),
                                   [](int status) { return status != kOk; });
    return last == statuses_.rend() ? kOk : *last;
  }

  void write_report() const {
    if (options_.report.empty()) return;
    std::string text;
    for (const auto& report : reports_) {
      if (!report.empty()) text += (text.empty() ? "" : ",\n") + report;
    }
    const bool several = options_.urls.size() > 1;
    if (text.empty() && !several) text = "null";  // a signal came first
    write_to(options_.report, several ? "[" + text + "]\n" : text + "\n", signals_.descriptor());
  }

  void save_cookies() {
    if (options_.cookie_jar.empty()) return;
    if (options_.cookie_jar == "-") {
      return write_all(STDOUT_FILENO, cookies_->to_text(), signals_.descriptor(),
                       "standard output");
    }
    if (const auto saved = cookies_->save(options_.cookie_jar); !saved) {
      throw WriteError(saved.error().message);
    }
  }

  const SendOptions& options_;
  const Signals& signals_;
  PolicySet policies_;
  std::shared_ptr<CookieJar> cookies_;
  std::vector<Request> requests_;
  std::vector<std::shared_ptr<Download>> downloads_;  // null: the answer comes whole, in memory
  std::vector<Connections> connections_;              // by URL; filled where they are asked for
  std::vector<std::string> reports_;                  // empty for what was not sent
  std::vector<int> statuses_;
  Sums sums_;
  std::mutex mutex_;
  std::condition_variable one_ended_;
  std::deque<std::pair<std::size_t, Outcome>> ended_;
  Client client_;  // last: its callbacks use what stands above
};

std::vector<Request> requests_for(const SendOptions& options, int give_up) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < options.urls.size(); ++i) {
    requests.push_back(request_for(options, i, give_up));
    check_target(options, i, requests.back());
  }
  return requests;
}

int send_all(const SendOptions& options, PolicySet policies, std::shared_ptr<CookieJar> cookies,
             const Signals& signals) {
  try {
    auto requests = requests_for(options, signals.descriptor());
    Sending sending(options, signals, std::move(policies), std::move(cookies));
    return sending.run(std::move(requests));
  } catch (const ReadError&) {
    if (signals.received() == 0) throw;
    return 128 + signals.received();
  } catch (const std::invalid_argument& error) {
    throw UsageError(in_words_of_flags(error.what()));
  }
}

}  // namespace

int send(const Args& args) {
  SendOptions options;
  parse_send(args, options);
  if (options.version) return print_version();
  check(options);
  add_retry_all(options);
  if (!options.until.empty()) static_cast<void>(Until::parse(options.until));
  auto policies = chosen_policies(options.policy);
  auto cookies = cookie_jar(options);
  // Before the client, so that all of its threads are made after the signals were blocked.
  const Signals signals;
  const int status = send_all(options, std::move(policies), std::move(cookies), signals);
  if (status == 128 + SIGINT && signals.from_terminal()) end_interrupted();
  return status;
}

}  // namespace httpretry::cli
