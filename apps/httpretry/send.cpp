// Sending: one client for all URLs, one after the other.
#include "exit_status.hpp"
#include "output.hpp"
#include "send_options.hpp"
#include "shown.hpp"
#include "signals.hpp"
#include "trace.hpp"
#include "until.hpp"
#include "usage.hpp"
#include "verbs.hpp"
#include "words.hpp"

#include <httpretry/builtin.hpp>
#include <httpretry/client.hpp>
#include <httpretry/report.hpp>

#include <unistd.h>
#include <csignal>
#include <cstdlib>

namespace httpretry::cli {
namespace {

bool in_color(const SendOptions& options) {
  if (options.color != "auto") return options.color == "always";
  return ::isatty(STDERR_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

void check(const SendOptions& options) {
  if (options.urls.empty()) throw UsageError("no URL given");
  if (options.uploads.size() > options.urls.size()) throw UsageError("more -T than URLs");
  if (options.outputs.size() > options.urls.size()) throw UsageError("more -o than URLs");
  if (options.report != "-") return;
  for (std::size_t i = 0; i < options.urls.size(); ++i) {
    if (i >= options.outputs.size() || options.outputs[i] == "-") {
      throw UsageError("--report - takes standard output: the answer of " + options.urls[i] +
                       " needs -o FILE");
    }
  }
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

// What curl's own program reads, and libcurl does not.
std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

ClientOptions client_options(const SendOptions& options, const PolicySet& policies) {
  ClientOptions client;
  if (options.follow) {
    RedirectOptions redirects;
    redirects.limit = options.max_redirects;
    client.middlewares.push_back(redirect(redirects));
  }
  RetryOptions retrying;
  retrying.policies = policies;
  if (!options.until.empty()) poll_until(retrying, Until::parse(options.until));
  client.middlewares.push_back(retry(std::move(retrying)));
  if (options.verbose) client.middlewares.push_back(verbose_stage());
  if (options.trace) client.observers.push_back(tracer(in_color(options)));

  auto& connection = client.connection;
  connection.verify_tls = !options.insecure;
  connection.ca_file = options.ca_file;
  if (options.ca_file.empty()) {
    connection.ca_file = from_environment({"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
    connection.ca_path = from_environment({"SSL_CERT_DIR"});
  }
  return client;
}

// The same on all attempts, another for each URL.
void give_key(const SendOptions& options, const RetryPolicy& policy, Request& request) {
  if (!options.give_key) return;
  const auto& named = policy.idempotency_key;
  request.set_header(named.empty() ? "Idempotency-Key" : named, options.idempotency_key.empty()
                                                                    ? new_idempotency_key()
                                                                    : options.idempotency_key);
  request.edit_options().repeatable = true;
}

class Sending {
 public:
  Sending(const SendOptions& options, PolicySet policies)
      : options_(options),
        policies_(std::move(policies)),
        client_(client_options(options, policies_)) {}

  int run(std::vector<Request> requests) {
    int status = kOk;
    for (std::size_t i = 0; i < requests.size() && signals_.received() == 0; ++i) {
      const int one = send(std::move(requests[i]), i);
      if (one != kOk) status = one;
    }
    write_report();
    return signals_.received() != 0 ? 128 + signals_.received() : status;
  }

 private:
  int send(Request request, std::size_t index) {
    const auto& policy = policies_.find(request.method(), *request.parsed_url());
    give_key(options_, *policy.policy, request);
    CallOptions call;
    call.stop = signals_.stop();
    if (options_.max_time && *options_.max_time > Duration::zero()) {
      call.timeout = *options_.max_time;
    }
    const auto outcome = client_.send(request, call);
    if (!options_.report.empty()) reports_.push_back(report_json(request, outcome, policy));
    const auto& target =
        index < options_.outputs.size() ? options_.outputs[index] : kStandardOutput;
    return show(options_, request, outcome, target, signals_.descriptor());
  }

  void write_report() const {
    if (options_.report.empty()) return;
    std::string text;
    for (const auto& report : reports_) text += (text.empty() ? "" : ",\n") + report;
    const bool several = options_.urls.size() > 1;
    write_to(options_.report, several ? "[" + text + "]\n" : text + "\n", signals_.descriptor());
  }

  inline static const std::string kStandardOutput = "-";
  // First, so that every thread of the client is made after the signals were blocked.
  Signals signals_;
  const SendOptions& options_;
  PolicySet policies_;
  Client client_;
  std::vector<std::string> reports_;
};

}  // namespace

int send(const Args& args) {
  SendOptions options;
  const auto flags = send_flags(options);
  options.urls = parse(args, flags);
  if (options.help) return print_help(flags);
  if (options.version) return print_version();
  check(options);
  add_retry_all(options);
  if (!options.until.empty()) static_cast<void>(Until::parse(options.until));
  auto policies = chosen_policies(options.policy);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < options.urls.size(); ++i) requests.push_back(request_for(options, i));
  return Sending(options, std::move(policies)).run(std::move(requests));
}

}  // namespace httpretry::cli
