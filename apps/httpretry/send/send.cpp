// httpretry [options] URL...: checks the options, then sends.
#include "cli/date.hpp"
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
#include "send/sender.hpp"
#include "send/shared.hpp"
#include "send/targets.hpp"
#include "send/telemetry.hpp"
#include "send/whole_run.hpp"

#include <httpretry/retry/server_delay.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>

namespace httpretry::cli {
namespace {

// Throws UsageError if -C is combined with an option that it excludes.
void check_continue_at(const SendOptions& options) {
  if (!options.range.empty()) throw UsageError("-C cannot be combined with -r");
  if (options.no_clobber) throw UsageError("-C cannot be combined with --no-clobber");
  if (options.har_bodies && options.resume) {  // the whole response is then held in memory
    throw UsageError("-C - cannot be combined with --har-bodies");
  }
  if (options.include || options.head || !options.until.empty()) {
    throw UsageError("-C cannot be combined with -i, -I or --until");
  }
  if (!options.data_items.empty() || !options.form.empty() ||
      (options.resume && !options.uploads.empty())) {
    throw UsageError("-C cannot be combined with -d or -F; with -T it needs a number of bytes");
  }
}

// Throws UsageError if --paginate is combined with an option that makes no sense for a list. Dates
// and ETags, for example, apply to one page: a 304 for it would leave the list without that page.
void check_paging(const SendOptions& options) {
  const bool has_body = !options.form.empty() || !options.uploads.empty() ||
                        (!options.data_items.empty() && !options.data_in_url);
  const bool has_condition = !options.time_condition.empty() || !options.etag_save.empty() ||
                             !options.etag_compare.empty();
  if (has_body || has_condition || options.head || options.include || options.resume ||
      options.offset > 0 || !options.range.empty() || options.name_from_header ||
      !options.until.empty()) {
    throw UsageError(
        "--paginate cannot be combined with -d (except with -G), -F, -T, -I, -i, -C, "
        "-r, -J, -z, --etag-save, --etag-compare or --until");
  }
}

// Throws UsageError if a -o has "#1" and its URL has [] or {}. In curl, such a URL is a pattern for
// several URLs, and "#1" in the name of a file stands for the part that differs between them. Here
// neither has a special meaning, so the user would not get the expected files.
void check_globs(const SendOptions& options) {
  if (options.globoff) return;  // the user knows that [] and {} have no special meaning
  // check() has made sure that each -o has a URL.
  for (std::size_t i = 0; i < options.outputs.size(); ++i) {
    const auto& output = options.outputs[i];
    const auto& url = options.urls[i];
    bool has_number = false;
    for (std::size_t i = 1; i < output.size(); ++i) {
      has_number = has_number || (output[i - 1] == '#' && output[i] >= '1' && output[i] <= '9');
    }
    // Skips the brackets around an IPv6 address, as in "http://[::1]/".
    const auto after_host = url.find("://[") == std::string::npos ? 0 : url.find(']');
    const bool has_pattern =
        url.find('{') != std::string::npos || url.find('[', after_host) != std::string::npos;
    if (!has_number || !has_pattern) continue;
    throw UsageError("option -o: \"" + output +
                     "\" needs a URL for each file, because [] and {} have no special meaning in a "
                     "URL; let the shell write the URLs and -o, or use -g");
  }
}

// Throws UsageError if the options of a group of URLs contradict each other, or it has no URL.
void check(const SendOptions& options) {
  const bool continues = options.resume || options.offset > 0;  // -C
  if (options.urls.empty()) throw UsageError("no URL given; expected httpretry [options] URL...");
  if (options.uploads.size() > options.urls.size())
    throw UsageError("more -T than URLs; each file needs a URL");
  if (options.outputs.size() > options.urls.size())
    throw UsageError("more -o or -O than URLs; each file needs a URL");
  if (!options.until_fail.empty() && options.until.empty()) {
    throw UsageError("--until-fail needs --until, which says what to wait for");
  }
  if (options.name_from_header && (options.include || continues)) {
    throw UsageError("-J cannot be combined with -i or -C");
  }
  if (continues) check_continue_at(options);
  if (options.pagination.on) check_paging(options);
  const bool uses_etag_file = !options.etag_save.empty() || !options.etag_compare.empty();
  if (options.urls.size() > 1 && uses_etag_file) {
    throw UsageError("--etag-save and --etag-compare need a single URL; --next starts another one");
  }
  if (!options.signer.empty() && !options.user) {
    throw UsageError("--aws-sigv4 needs -u KEY:SECRET");
  }
  check_globs(options);
}

// Throws UsageError if the response of a URL goes to standard output, but -C - needs a file, or the
// report also goes there.
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
  constexpr std::string_view kTested = HTTPRETRY_TESTED_LIBCURL;
  const auto in_use = transport_version();  // "libcurl/8.14.1 OpenSSL/…"
  const auto number = in_use.substr(0, in_use.find(' ')).substr(in_use.find('/') + 1);
  const bool tested = (std::string(kTested) + ",").find(number + ",") != std::string::npos;
  write_to("-", "httpretry " HTTPRETRY_VERSION " " + in_use + "\ntested with libcurl " +
                    std::string(kTested) + (tested ? "\n" : ", not with this one\n"));
  return kOk;
}

// Applies --retry-all-errors: as with curl, retries everything that makes the exit status an error.
void add_retry_all(SendOptions& options) {
  if (!options.retry_all_errors) return;
  const bool statuses_fail = options.on_error_status != OnErrorStatus::Succeed;
  options.policy.set("retry_on.statuses", statuses_fail ? R"(["4xx", "5xx"])" : R"(["5xx"])");
  options.policy.set("retry_on.error_codes", "[]");
  options.policy.set("retry_on.transport", kAllTransport);
  options.policy.set("repeat", R"("always")");
}

// Returns the requests for the URLs of a group, and creates the folders for their responses. With
// --skip-existing, removes the URLs whose files exist; with --no-clobber, finds other names.
// `taken_names` has the names that --no-clobber found for earlier URLs, and receives those for this
// group.
std::vector<Request> requests_for(SendOptions& options, int cancel,
                                  std::vector<std::string>& taken_names) {
  std::vector<Request> requests;
  // A skipped URL is removed from the options, so the next URL then has the same index.
  while (requests.size() < options.urls.size()) {
    const auto i = requests.size();
    auto request = request_for(options, i, cancel);
    check_target(options, i, request);
    const auto target = target_for(options, i, request);
    std::error_code ignored;
    if (options.skip_existing && !is_stream(target) &&
        std::filesystem::is_regular_file(target, ignored)) {
      if (!options.silent) {
        print_message("httpretry: " + printable(target) + " exists, so its URL is skipped");
      }
      remove_url(options, i);
      continue;
    }
    if (options.no_clobber) {
      options.unused_names.push_back(unused_name(target, taken_names));
      taken_names.push_back(options.unused_names.back());
    }
    if (options.create_folders) create_folder_of(target);
    requests.push_back(std::move(request));
  }
  if (options.create_folders) create_folder_of(options.headers_file);
  return requests;
}

bool may_use_tls(const SendOptions& options, const std::vector<Request>& requests) {
  const auto is_https = [](const Request& each) { return each.parsed_url()->scheme() == "https"; };
  return options.follow || options.tokens || std::ranges::any_of(requests, is_https);
}

// Returns `policies` with a retry budget that suits a command with a known number of requests. The
// budget of the preset `standard` is for a program that keeps calling, and could end the retries of
// a command too early. Here, all calls to one host that can be in flight together may use all of
// their retries, and each success refills the budget by the retries of one call. So the budget ends
// retries only if nothing succeeds. Returns `policies` unchanged if the user chose a policy or a
// budget.
PolicySet fit_budget(const SendOptions& options, PolicySet policies,
                     const std::vector<Request>& requests) {
  if (!uses_standard(options.policy) || options.policy.has_setting("budget")) return policies;
  // With -Z, the class DownHosts ends the retries if nothing succeeds, but not those of processes
  // that share a budget (--shared).
  if (options.parallel && !options.shared_state) return policies;
  constexpr int kMost = 1000;  // attempts of a call that count if its policy has no lower limit
  // BudgetPolicy counts thousandths of a token, but the settings below count tokens.
  constexpr std::int64_t kUnit = 1000;
  std::int64_t highest_cost = 1;  // in tokens, of all retries of one call
  std::int64_t capacity = RetryPolicy().budget.capacity / kUnit;  // not below that of `standard`
  std::map<std::string_view, std::int64_t> costs;  // by host, of the calls that can be in flight
  for (const auto& request : requests) {
    const auto& policy = *policy_for(policies, request).policy;
    const std::int64_t retries = std::min(policy.max_attempts.value_or(kMost), kMost) - 1;
    const auto cost = retries * policy.budget.timeout_cost / kUnit;  // a timeout costs most
    auto& host_cost = costs[request.parsed_url()->origin()];
    // Without -Z, only one call is in flight at a time.
    host_cost = options.parallel ? host_cost + cost : std::max(host_cost, cost);
    capacity = std::max(capacity, host_cost);
    highest_cost = std::max(highest_cost, cost);
  }
  // These settings are always valid, so there is a value.
  const std::pair<std::string, std::string> settings[] = {
      {"budget.capacity", std::to_string(capacity)},
      {"budget.refill_on_success", std::to_string(highest_cost)}};
  return with_settings(policies, settings, "the command line").value();
}

void read_data(SendOptions& options, int cancel) {
  if (!options.data_items.empty()) options.data = read_items(options.data_items, cancel);
  for (auto& item : options.url_query) item = query_item(item, cancel);
  options.write_out = data_bytes(options.write_out, cancel);
}

void ask_passwords(SendOptions& options, int cancel) {
  if (options.user && options.bearer.empty()) complete_credentials(*options.user, "-u", cancel);
  if (options.proxy_user.empty()) return;
  complete_credentials(options.proxy_user, "-U", cancel);
  options.connection.proxy.credentials = credentials_of(options.proxy_user, options.proxy_auth);
}

// Returns the header for the value of -z: a date, or a file whose modification time is used. A "-"
// before it requests older content. Returns nullopt if it is neither a date nor a file.
std::optional<std::pair<std::string, std::string>> time_condition(const std::string& value) {
  const bool older = value.starts_with('-');
  const auto text = older ? value.substr(1) : value;
  auto time = date_in(text);
  struct ::stat about {};
  if (!time && ::stat(text.c_str(), &about) == 0) time = about.st_mtime;
  if (!time) return std::nullopt;
  return std::pair(std::string(older ? "If-Unmodified-Since" : "If-Modified-Since"),
                   http_date(std::chrono::sys_seconds(std::chrono::seconds(*time))));
}

// Sets the header for -z. If its value is neither a date nor a file, requests the response
// regardless of its date, as curl does.
void read_time_condition(SendOptions& options) {
  if (options.time_condition.empty()) return;
  options.condition = time_condition(options.time_condition);
  if (options.condition || options.silent) return;
  print_message(
      "httpretry: option -z: \"" + printable(options.time_condition) +
      "\" is neither a date nor a file, so the response is requested regardless of its date");
}

// Sets the ETag of --etag-compare. As in curl, a file that is missing or empty stands for an ETag
// that no response has, and a missing file is an error unless --etag-save may create it.
void read_etag(SendOptions& options, int cancel) {
  const auto& file = options.etag_compare;
  if (file.empty()) return;
  const bool is_new = !options.etag_save.empty() && file != "-" && !file_exists(file);
  auto text = is_new ? std::string() : read_named(file, kMaxTextFile, cancel);
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });
  options.etag = text.empty() ? "\"\"" : text;
}

// Returns the -m of the command line. It also limits the wait for the files of -K, even those
// before it, so this parses the arguments without reading these files.
std::optional<Duration> max_time_of(const Args& args) {
  SendOptions options;
  options.read_config = false;
  parse_send(args, options);
  return options.max_time;
}

// Returns the exit status if a signal or the time of -m ended the wait for a file. Otherwise
// rethrows the current exception.
int wait_ended(const SendOptions& options, const WaitLimit& limit, const ReadError& error) {
  if (limit.signals().received() != 0) return 128 + limit.signals().received();
  if (!limit.has_expired()) throw;
  const auto message =
      std::string("httpretry: ") + error.what() + "; the time limit of -m has passed";
  if (shows_errors(options)) print_message(message);
  return kTimeout;
}

// Prepares a group of URLs for its send: reads all files that its options name, and creates the
// requests. Throws ReadError, UsageError and BadPolicyFile. All groups share the cookies in `jar`,
// which is nullptr until the first group with cookies creates it, and `taken_names`, which collects
// the names of files that --no-clobber has chosen.
void prepare(Group& group, std::shared_ptr<CookieJar>& jar, std::vector<std::string>& taken_names) {
  auto& options = group.options;
  const int cancel = group.limit.descriptor();  // becomes readable on a signal or after -m
  auto policies = chosen_policies(options.policy, cancel);
  ask_passwords(options, cancel);
  const bool has_login = options.user || !options.bearer.empty();  // excludes --oauth2
  options.tokens = read_oauth2(options.oauth2, has_login, cancel);
  group.cookies = load_cookies(options, cancel, jar);
  if (group.cookies) jar = group.cookies;  // null: the group uses no cookies
  // These three set the members of `options` from which requests_for() makes the requests.
  read_data(options, cancel);
  read_time_condition(options);
  read_etag(options, cancel);
  options.connection.proxy.headers = proxy_headers(options, cancel);
  group.requests = requests_for(options, cancel, taken_names);
  add_environment_certificates(options.connection);
  // Reads the files that are pipes, such as certificates, and replaces their names in `connection`
  // with those of copies.
  group.piped.emplace(options.connection, may_use_tls(options, group.requests), cancel);
  group.policies = fit_budget(options, std::move(policies), group.requests);
}

// Sends the requests of all groups, and writes the files at the end of the run: headers (-D),
// report (--report) and telemetry. A file that cannot be written does not prevent the next one, but
// makes the exit status an error. Returns the exit status, which is 128 plus the number of the
// signal if one ended the run, as in a shell. `run_options` are the options of the last group,
// which apply to the whole run.
int send_groups(std::deque<Group>& groups, const SendOptions& run_options, std::size_t url_count) {
  WholeRun run(run_options, url_count);
  const auto& limit = groups.back().limit;  // ends the wait for a file that is a pipe
  for (auto& group : groups) send_group(group, run);
  run.print_rest(limit.signals().received());  // how many were not sent or not explained
  const auto write_file = [&](const std::function<void()>& write) {
    if (!try_write(write, shows_errors(run_options))) run.record_write_failure();
  };
  write_file([&] { run.write_headers(limit); });
  write_file([&] { run.write_report(limit); });
  if (const auto& telemetry = run_options.telemetry) {
    telemetry->finish(limit);  // waits until the collector has the traces
    write_file([&] { telemetry->write_metrics(limit); });
    write_file([&] { telemetry->write_har(limit); });
  }
  const int signal = limit.signals().received();
  return signal != 0 ? 128 + signal : run.exit_status();
}

// Prepares all groups of URLs, which --next separates, and sends them only if each of them can be
// prepared. Returns the exit status. The options of the whole run, such as --report, are those of
// the last group. Throws UsageError, ReadError and BadPolicyFile.
int send_all(std::vector<SendOptions>& all, const Signals& signals) {
  std::deque<Group> groups;
  std::size_t url_count = 0;
  const auto& run_options = all.back();
  const bool quiet = !shows_errors(run_options);
  const auto telemetry = run_telemetry(run_options, quiet);
  const auto state = shared_state(run_options.shared, quiet);
  for (auto& options : all) {
    options.telemetry = telemetry;
    options.shared_state = state;
    groups.emplace_back(options, signals);
  }
  std::shared_ptr<CookieJar> jar;        // shared by all groups; created by the first with cookies
  std::vector<std::string> taken_names;  // by --no-clobber
  try {
    for (auto& group : groups) {
      try {
        prepare(group, jar, taken_names);
      } catch (const ReadError& error) {
        // Returns a status if a signal or -m ended the wait; otherwise throws the error again.
        return wait_ended(group.options, group.limit, error);
      }
      group.first_number = url_count + 1;
      url_count += group.requests.size();
    }
    return send_groups(groups, run_options, url_count);
  } catch (const std::invalid_argument& error) {  // an option that the client rejects
    throw UsageError(with_flag_name(error.what()));
  }
}

// Parses the command line of `httpretry [options] URL...`, checks the options of each group of
// URLs, and sends. Returns the exit status. Throws UsageError, ReadError and BadPolicyFile.
int parse_and_send(const Args& args, const Signals& signals) {
  SendOptions options;
  // -m also limits the wait for files of -K, even those before it, so it is looked up first.
  const WaitLimit limit(signals, max_time_of(args));
  options.end_of_waits = limit.descriptor();
  try {
    parse_send(args, options);
  } catch (const ReadError& error) {
    // Returns a status if a signal or -m ended the wait; otherwise throws the error again.
    return wait_ended(options, limit, error);
  }
  if (options.version) return print_version();
  if (!options.messages_file.empty()) redirect_messages(options.messages_file);
  // --next has moved the groups before it to `earlier`, so `options` are those of the last group.
  auto groups = std::move(options.earlier);
  groups.push_back(std::move(options));
  for (auto& group : groups) {
    check(group);
    add_retry_all(group);
  }
  return send_all(groups, signals);
}

}  // namespace

int send(const Args& args) {
  // Created before the client, so that all of its threads start with these signals blocked.
  const Signals signals;
  const int status = parse_and_send(args, signals);
  if (status == 128 + SIGINT && signals.from_terminal()) end_by(SIGINT);
  return status;
}

}  // namespace httpretry::cli
