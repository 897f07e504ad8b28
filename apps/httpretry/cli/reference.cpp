#include "cli/reference.hpp"

#include <array>

namespace httpretry::cli {
namespace {

// The differences from curl, by topic.
constexpr auto kDifferences = std::to_array<Entry>({
    {"retries", "are on by default: up to four, within 60 s, with random waits"},
    {"-X POST",
     "is not retried if the server may have processed it, unless it has an idempotency key"},
    {"-m", "limits all attempts together; --set attempt_timeout=5s limits each"},
    {"--retry-max-time", "also ends an attempt that has no response by then"},
    {"empty values",
     "are errors, so that an unset variable does not turn off a check; an option for which \"\" "
     "has a meaning says so"},
    {"Retry-After",
     "of more than a minute ends the call; --set server_delay.max=10m allows longer waits"},
    {"-o", "writes FILE when the response is complete; -C - keeps a part of it in FILE.part"},
    {"output",
     "is written when the response is complete; beyond 8 MiB it is kept in TMPDIR until then, or "
     "written at once if a strong ETag lets a retry continue it"},
    {"exit status",
     "is 22 for a response of 400 or more, without -f, and for any that the policy calls a "
     "failure; --no-fail makes it 0"},
    {"several URLs",
     "the exit status is that of the last one that failed; with --fail-early, of the first"},
    {"-o, -C -",
     "an error response does not replace a partial download, and a 304 does not replace the file"},
    {"-L", "sends no body (exit status 8) and only harmless custom headers to another origin"},
    {"-L -i, -L -I", "show the headers of the last response only"},
    {"-L -X POST", "a 301, 302 or 303 changes the method to GET, as for any POST"},
    {"[1-3], {a,b}", "have no special meaning in a URL"},
    {"-N",
     "shows nothing of an attempt that failed, and never a byte twice; without it, output waits"},
    {"-D", "writes FILE at the end, without the headers of 1xx responses"},
    {"-J", "uses the name for an error response too, unless -f"},
    {"-z", "a server that ignores the date is believed: its response is written"},
    {"--next, -Z",
     "the groups of --next are sent one after another; -Z sends the requests of each at once"},
    {"--trace", "takes no file; see --stderr"},
    {"-L",
     "follows no redirect from https to http (exit status 1), not even with --location-trusted"},
    {"--no-OPTION", "turns off an option that only turns something on, such as --no-location"},
    {"~/.curlrc", "is not read; -K reads a file of options"},
    {"-r", "a 206 with other bytes than the requested ones is an error (exit status 33)"},
    {"-b FILE", "reads only the Netscape format, which -c writes, and no Set-Cookie headers"},
    {"invalid values",
     "have the exit status 2, like any error in the command line: a URL (curl: 3, or 1 for its "
     "scheme), -O without a file name (23), --resolve (49), --disallow-username-in-url (67); 3 is "
     "an error in a policy file"},
    {"files that cannot be read",
     "are errors with the exit status 26 before anything is sent; curl ignores those of -d, -H, -w "
     "and --netrc-file"},
    {"a Location that is not a URL", "has the exit status 8 (curl: 3)"},
    {"signals", "result in the exit status 128 plus their number; curl is killed by them"},
});

// The exit statuses of the program and their meanings.
constexpr auto kExitStatuses = std::to_array<Entry>({
    {"0", "success: a response below 400, unless the policy calls it a failure"},
    {"22", "a failed response: 400 or more, or as the policy says"},
    {"2", "an error in the command line"},
    {"3", "an error in a policy file"},
    {"6, 7", "the host name was not resolved; connecting failed"},
    {"18, 52, 56", "the response was cut off; no response arrived; the connection was lost"},
    {"23, 26", "a file could not be written; could not be read"},
    {"28", "a timeout, or the condition of --until was not met in time"},
    {"35, 60", "TLS failed; the certificate is not trusted"},
    {"47", "too many redirects"},
    {"63", "the response is too large"},
    {"1 to 99", "others: curl's number for the error"},
    {"70", "an internal error"},
    {"75",
     "nothing was sent, because a limit held it back (rate, breaker, pause) or this machine ran "
     "out of descriptors, memory, threads or ports; a later run may succeed"},
    {"129 to 143", "ended by a signal: SIGHUP 129, SIGINT 130, SIGTERM 143"},
    {"1",
     "policy check found an error, or a test failed; serve cannot listen, or --har had no response "
     "to a request"},
});

// The words for the reason why a call ended.
constexpr auto kStopReasons = std::to_array<Entry>({
    {"success", "the policy does not retry this response, or the condition of --until was met"},
    {"not_retryable", "a retry would give the same result"},
    {"attempts_exhausted", "the limit of --retry, max_attempts or pending.max was reached"},
    {"elapsed_exhausted", "the time limit of -m, --retry-max-time or max_elapsed_time has passed"},
    {"unsafe_to_repeat",
     "the server may have processed the request, and doing so twice may do harm; "
     "--idempotency-key or --retry-all-errors allows the retry"},
    {"not_replayable",
     "the body cannot be read again, or part of the response was already delivered"},
    {"server_delay_too_long",
     "the server asks for a longer wait than server_delay.max (1 m) or the time limits allow"},
    {"budget_exhausted", "too many requests to this host needed retries"},
    {"circuit_open", "too many requests failed, so the breaker of the policy refuses further ones"},
    {"rate_limited", "the policy's rate would allow the request too late"},
    {"queue_full",
     "too many requests wait for the policy's concurrency limit, or this one waited too long"},
    {"local_shortage",
     "this machine has no descriptor, memory, thread or port left for the request; nothing was "
     "sent"},
    {"canceled", "by a signal"},
});

constexpr auto kSentWords = std::to_array<Entry>({
    {"never", "nothing of the request was sent; a retry is safe"},
    {"maybe", "it was sent, but no response arrived; the server may have processed it"},
    {"refused",
     "only with --trace: sent, but the server said over HTTP/2 that it did not process it"},
    {"answered", "a response arrived"},
});

// The words of --outcomes: statuses and faults.
constexpr auto kOutcomes = std::to_array<Entry>({
    {"503", "a response; 503:retry-after=2 with a header"},
    {"reset", "RST after the request was read"},
    {"close", "FIN without a response, after the request was read"},
    {"reset_early", "RST before the request was read"},
    {"reset_during", "the headers and half of the body, then RST"},
    {"truncate", "the headers and half of the body, then FIN"},
    {"timeout", "no response; hang is the same"},
    {"drip", "the body byte by byte"},
    {"stale", "a response; the next request on that connection gets a FIN"},
    {"garbage", "bytes that are not HTTP"},
    {"huge", "a body of 1 GiB (in a scenario file: `size`)"},
    {"huge_headers", "1 GiB of headers"},
    {"endless_interim", "1 GiB of 1xx responses"},
    {"bad_chunk", "an invalid chunk size"},
    {"gzip_cut_short", "half of a gzip body"},
    {"gzip_bomb", "a small gzip body that decodes to 1 GiB (in a scenario file: `size`)"},
    {"http2_empty_data", "over HTTP/2: headers, then 1 GiB of empty DATA frames"},
    {"http2_goaway_flood", "over HTTP/2: 1 GiB of GOAWAY frames"},
    {"http2_reset_flood", "over HTTP/2: 1 GiB of RST_STREAM frames"},
    {"http2_no_end_stream",
     "over HTTP/2: headers and half of the body, then a frame that breaks the connection"},
    {"tls", "RST during the TLS handshake"},
    {"tls_stall", "no TLS handshake"},
    {"refused", "the connection is refused; plan only"},
    {"resolve", "the host name has no address; plan only"},
    {"429:retry-after=now+60",
     "a header with the time of the response plus 60 s, as an HTTP date; also now-1.5, now+2m"},
    {"a list", "503,reset,200: one for each request; the last one repeats"},
    {R"({"steps": [{"status": 429, "headers": {"Retry-After": "1"}, "body": "busy", "delay": "50ms", "times": 3}, {"fault": "reset"}, {"status": 200}], "then": "restart", "paths": {"/other": {"steps": [{"status": 200}]}}})",
     "a scenario, in a file; then: repeat_last, restart or close; a path can have its own steps"},
    {R"({"X-RateLimit-Reset": {"at": "now+60", "as": "epoch"}})",
     "in the headers of a step: a time; as: http-date (the default), epoch or epoch-ms. It is "
     "rounded up, so that a wait until then is never shorter; Date is rounded down"},
});

constexpr auto kEnvironment = std::to_array<Entry>({
    {"HTTPRETRY_POLICY", "the policy file if neither --policy nor --preset is given"},
    {"HTTPRETRY_SHARED",
     "the URL for --shared if that is not given; keeps a password out of the list of processes"},
    {"HTTPRETRY_QUEUE", "the same for --queue"},
    {"http_proxy, https_proxy, all_proxy, no_proxy", "the same as for curl"},
    {"CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR", "the certificates to trust"},
    {"NO_COLOR", "if not empty: no colors, unless --color says otherwise"},
});

}  // namespace

std::span<const Section> reference() {
  static const std::array sections{
      Section{"Differences from curl", kDifferences},
      Section{"Options of curl that are refused", refused_options()},
      Section{"Exit status", kExitStatuses},
      Section{"Stop reasons (stop_reason)", kStopReasons},
      Section{"Whether the request was sent (sent)", kSentWords},
      Section{"Outcomes, for plan and serve", kOutcomes},
      Section{"Environment", kEnvironment},
  };
  return sections;
}

std::span<const Entry> exit_statuses() { return kExitStatuses; }

}  // namespace httpretry::cli
