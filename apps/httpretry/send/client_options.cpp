#include "send/client_options.hpp"

#include "cli/input.hpp"
#include "cli/text.hpp"
#include "lib/core/base/text.hpp"
#include "send/compression.hpp"
#include "send/connection.hpp"
#include "send/data.hpp"
#include "send/poll_until.hpp"
#include "send/telemetry.hpp"
#include "send/trace.hpp"
#include "send/whole_run.hpp"
#include "send/write_out.hpp"

#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/middleware/builtin.hpp>

#include <unistd.h>

namespace httpretry::cli {
namespace {

bool use_colors(const SendOptions& options) {
  if (options.color != "auto") return options.color == "always";
  return ::isatty(STDERR_FILENO) == 1 && environment_variable("NO_COLOR").empty();
}

PollConditions poll_conditions(const SendOptions& options) {
  const auto parse = [&](const std::string& text, const char* option) {
    return PollCondition::parse(text, option, options.follow);
  };
  PollConditions conditions{parse(options.until, "--until"), std::nullopt};
  if (!options.until_fail.empty()) conditions.fail = parse(options.until_fail, "--until-fail");
  return conditions;
}

// Collects the headers of every response for -D, as curl does.
MiddlewarePtr keep_headers() {
  return on_outcome("headers", [](const Request&, Outcome& outcome, Call& call) {
    const auto* url = call.get<UrlOfRun>();
    if (url == nullptr || !url->headers) return;
    *url->headers += head_of(outcome);
  });
}

// Records the last request and the version of its response, for -w.
MiddlewarePtr keep_last_send() {
  return on_outcome("last_send", [](const Request& request, Outcome& outcome, Call& call) {
    const auto* run = call.get<UrlOfRun>();
    if (run == nullptr || !run->last_send) return;
    const auto& url = *request.parsed_url();
    run->last_send->url = url.has_userinfo() ? url.to_string() : request.url();
    run->last_send->http_version = outcome ? outcome->http_version : "0";
  });
}

// Returns the text of a cookie file without the cookies that have no time of expiry. Their lines
// become empty, so that the other lines keep their numbers.
std::string without_session_cookies(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const auto line = take_until(text, '\n');
    auto rest = line;
    for (int field = 1; field < 5; ++field) take_until(rest, '\t');
    if (take_until(rest, '\t') != "0") kept += line;  // the fifth field is the time
    kept += '\n';
  }
  return kept;
}

}  // namespace

std::shared_ptr<CookieJar> load_cookies(const SendOptions& options, int cancel,
                                        std::shared_ptr<CookieJar> jar) {
  if (!options.use_cookies) return nullptr;
  if (!jar) jar = std::make_shared<CookieJar>();
  for (const auto& file : options.cookie_files) {
    if (::access(file.c_str(), F_OK) != 0) continue;  // as curl does; -c may create it
    // CookieJar::load would wait for a pipe without a way to cancel that.
    auto text = read_named(file, kMaxTextFile, cancel);
    if (options.junk_session_cookies) text = without_session_cookies(text);
    const auto loaded = jar->add(text, file);
    if (!loaded) throw ReadError(loaded.error().message);
  }
  return jar;
}

// Returns the options of a client that sends as the flags of a group of URLs request. The
// middlewares are in the order in which a request passes them, so those after `retry` see each
// attempt. `cookies` is null if no flag requests cookies. `budget` replaces the budgets of the
// policies, unless it is null.
ClientOptions client_options(const SendOptions& options, const PolicySet& policies,
                             std::shared_ptr<CookieJar> cookies,
                             std::shared_ptr<RetryBudget> budget) {
  ClientOptions client;
  client.middlewares.clear();  // removes the defaults
  if (options.follow) {
    RedirectOptions redirects;
    redirects.limit = options.max_redirects;
    redirects.trust_other_origins = options.trust_other_origins;
    redirects.keep_post_after = options.keep_post_after;
    client.middlewares.push_back(redirect(redirects));
  }
  // Checks each redirect, too, because it comes after `redirect`.
  if (!options.protocols.all() || !options.redirect_protocols.all()) {
    client.middlewares.push_back(only_protocols(options.protocols, options.redirect_protocols));
  }
  RetryOptions retry_options;
  retry_options.policies = policies;
  retry_options.budget = std::move(budget);
  if (!options.until.empty()) {
    poll_until(retry_options, poll_conditions(options), options.retry_delay);
  }
  client.middlewares.push_back(retry(std::move(retry_options)));
  if (!options.write_out.empty()) client.middlewares.push_back(keep_last_send());
  // These two act only if the policy has hedges or limits.
  client.middlewares.push_back(hedge());
  client.middlewares.push_back(guards());
  // These two show every attempt: -D and -v.
  if (!options.headers_file.empty()) client.middlewares.push_back(keep_headers());
  if (options.verbose) client.middlewares.push_back(verbose());
  if (options.trace || options.verbose) {
    // As in curl, "* " marks the lines of -v that are not part of an HTTP message.
    client.observers.push_back(tracer(use_colors(options), options.verbose ? "* " : ""));
  }

  // Last, because it may append a middleware that must be the innermost one.
  if (options.telemetry) options.telemetry->observe(client);

  client.shared_state = options.shared_state;
  client.connection = options.connection;
  client.connection.user_agent.clear();  // set in each request, unless -A is ""
  client.connection.content_codings = content_codings();
  client.connection.cookies = std::move(cookies);
  client.connection.cookies_of_other_origins = options.trust_other_origins;
  if (options.speed_limit || options.speed_time) {  // with curl's default for the other one
    auto& others = client.connection.curl_options;
    others.emplace_back("LOW_SPEED_LIMIT", options.speed_limit.value_or(1));
    others.emplace_back("LOW_SPEED_TIME", options.speed_time.value_or(30));
  }
  // Before the tokens, so that each page can renew them.
  if (options.pagination.on) client.call_middlewares.push_back(paginate(options.pagination));
  if (options.tokens) {
    // The options that concern the responses of the URLs do not apply to token requests.
    auto token_options = options;
    token_options.tokens = nullptr;
    token_options.pagination = Pagination();
    token_options.until.clear();
    token_options.headers_file.clear();
    token_options.follow = false;
    auto token_client = client_options(token_options, policies, /*cookies=*/nullptr);
    token_client.connection.user_agent =
        options.user_agent.value_or("httpretry/" HTTPRETRY_VERSION);
    client.call_middlewares.push_back(options.tokens(std::move(token_client)));
  }
  return client;
}

}  // namespace httpretry::cli
