// httpretry [options] URL...: checks the options, then sends.
#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "cli/wait_limit.hpp"
#include "send/client_options.hpp"
#include "send/connection.hpp"
#include "send/options.hpp"
#include "send/piped_files.hpp"
#include "send/sender.hpp"

#include <algorithm>
#include <csignal>
#include <stdexcept>

namespace httpretry::cli {
namespace {

constexpr int kMany = 1000;  // attempts, where there is no lower limit

void check(const SendOptions& options) {
  if (options.urls.empty()) throw UsageError("no URL given; expected httpretry [options] URL...");
  if (options.uploads.size() > options.urls.size())
    throw UsageError("more -T than URLs; each file needs a URL");
  if (options.outputs.size() > options.urls.size())
    throw UsageError("more -o or -O than URLs; each file needs a URL");
  if (!options.until_fail.empty() && options.until.empty()) {
    throw UsageError("--until-fail needs --until, which says what to wait for");
  }
  if (!options.resume && options.offset == 0) return;
  if (options.include || options.head || !options.until.empty()) {
    throw UsageError("-C cannot be combined with -i, -I or --until");
  }
  if (!options.data_items.empty() || !options.form.empty() ||
      (options.resume && !options.uploads.empty())) {
    throw UsageError("-C cannot be combined with -d or -F; with -T it needs a number of bytes");
  }
}

void check_target(const SendOptions& options, std::size_t index, const Request& request) {
  if (target_for(options, index, request) != "-") return;
  if (options.resume) {
    throw UsageError("-C - resumes a file: the response of " +
                     without_secrets(options.urls[index]) + " needs -o FILE or -O");
  }
  if (options.report != "-") return;
  throw UsageError("--report - uses standard output: the response of " +
                   without_secrets(options.urls[index]) + " needs -o FILE");
}

int print_version() {
  write_to("-", std::string("httpretry " HTTPRETRY_VERSION " ") + transport_version() + "\n", -1);
  return kOk;
}

// As curl: retries whatever makes the exit status an error.
void add_retry_all(SendOptions& options) {
  if (!options.retry_all_errors) return;
  const bool statuses_fail = options.on_error_status != OnErrorStatus::Succeed;
  options.policy.set("retry_on.statuses", statuses_fail ? R"(["4xx", "5xx"])" : R"(["5xx"])");
  options.policy.set("retry_on.error_codes", "[]");
  options.policy.set("retry_on.transport", kAllTransport);
  options.policy.set("repeat", R"("always")");
}

std::vector<Request> requests_for(const SendOptions& options, int cancel) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < options.urls.size(); ++i) {
    requests.push_back(request_for(options, i, cancel));
    check_target(options, i, requests.back());
  }
  return requests;
}

bool may_use_tls(const SendOptions& options, const std::vector<Request>& requests) {
  return options.follow || std::any_of(requests.begin(), requests.end(), [](const Request& one) {
           return one.parsed_url()->scheme() == "https";
         });
}

// The budget of `standard` suits a program that keeps calling. A command has a known number of
// transfers: those that run at once may use up their retries, and each success gives back as many.
// So the budget ends retries only where nothing succeeds.
PolicySet fit_budget(const SendOptions& options, PolicySet policies,
                     const std::vector<Request>& requests) {
  if (!uses_standard(options.policy) || options.policy.sets("budget")) return policies;
  const auto& url = requests.front().parsed_url();
  const auto& policy = *policies.find(requests.front().method(), *url).policy;
  const std::int64_t retries = std::min(policy.max_attempts.value_or(kMany), kMany) - 1;
  const auto cost = policy.budget.timeout_cost / 1000;  // the highest
  const auto most = options.parallel ? std::int64_t{options.parallel_max} : 1;
  const auto at_once = std::min<std::int64_t>(most, std::ssize(requests));
  const auto capacity = std::max(policy.budget.capacity / 1000, at_once * retries * cost);
  const std::pair<std::string, std::string> settings[] = {
      {"budget.capacity", std::to_string(capacity)},
      {"budget.refill_on_success", std::to_string(std::max<std::int64_t>(retries * cost, 1))}};
  return with_settings(policies, settings, "the command line").value();
}

void read_data(SendOptions& options, int cancel) {
  if (!options.data_items.empty()) options.data = read_items(options.data_items, cancel);
  for (auto& item : options.url_query) item = query_item(item, cancel);
  options.write_out = data_bytes(options.write_out, cancel);
}

// -m of the command line. It limits the wait for the files of -K too, also where it stands behind.
std::optional<Duration> max_time_of(const Args& args) {
  SendOptions options;
  options.read_config = false;
  parse_send(args, options);
  return options.max_time;
}

// The exit status if a signal, or the time of -m, ended the wait for a file; else throws again.
int wait_ended(const SendOptions& options, const WaitLimit& limit, const ReadError& error) {
  if (limit.signals().received() != 0) return 128 + limit.signals().received();
  if (!limit.over()) throw;
  const auto message = std::string("httpretry: ") + error.what() + "; the time of -m is over";
  if (shows_errors(options)) print_message(message);
  return kTimeout;
}

int send_all(SendOptions& options, const Signals& signals) {
  const WaitLimit limit(signals, options.max_time);
  const int cancel = limit.descriptor();
  try {
    auto policies = chosen_policies(options.policy, cancel);
    auto cookies = load_cookies(options, cancel);
    read_data(options, cancel);
    auto requests = requests_for(options, cancel);
    add_environment(options.connection);
    const PipedFiles piped(options.connection, may_use_tls(options, requests), cancel);
    policies = fit_budget(options, std::move(policies), requests);
    return send_requests(options, limit, std::move(policies), std::move(cookies),
                         std::move(requests));
  } catch (const ReadError& error) {
    return wait_ended(options, limit, error);
  } catch (const std::invalid_argument& error) {
    throw UsageError(with_flag_name(error.what()));
  }
}

int parse_and_send(const Args& args, const Signals& signals) {
  SendOptions options;
  const WaitLimit limit(signals, max_time_of(args));
  options.end_of_waits = limit.descriptor();
  try {
    parse_send(args, options);
  } catch (const ReadError& error) {
    return wait_ended(options, limit, error);
  }
  if (options.version) return print_version();
  check(options);
  add_retry_all(options);
  return send_all(options, signals);
}

}  // namespace

int send(const Args& args) {
  // Before the client, so that all of its threads start with these signals blocked.
  const Signals signals;
  const int status = parse_and_send(args, signals);
  if (status == 128 + SIGINT && signals.from_terminal()) end_interrupted();
  return status;
}

}  // namespace httpretry::cli
