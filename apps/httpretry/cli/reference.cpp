// What the manual page says beside commands and flags.
#include "cli/commands.hpp"

#include <array>

namespace httpretry::cli {

std::span<const Entry> exit_statuses() {
  static constexpr std::array<Entry, 15> kAll{{
      {"0", "an answer below 400"},
      {"22", "an answer of 400 or more"},
      {"2", "a command line that is not understood"},
      {"3", "a bad policy file"},
      {"6, 7", "the name has no address; no connection"},
      {"18, 52, 56", "the answer broke off; there was none; the connection was lost"},
      {"23, 26", "a file cannot be written; cannot be read"},
      {"28", "a timeout; or what --until waits for never came"},
      {"35, 60", "TLS failed; the certificate is not trusted"},
      {"47", "too many redirects"},
      {"63", "the answer is too large"},
      {"1 to 99", "others: curl's number for the failure"},
      {"70", "an error of the program's own"},
      {"129 to 143", "ended by SIGHUP, 129; SIGINT, 130; SIGTERM, 143"},
      {"1", "policy check found something; serve cannot listen"},
  }};
  return kAll;
}

std::span<const Entry> stop_reasons() {
  static constexpr std::array<Entry, 9> kAll{{
      {"success", "an answer that the policy does not retry, or the one that was waited for"},
      {"not_retryable", "sending it again would give the same"},
      {"attempts_exhausted", "--retry, or max_attempts or pending.max of the policy"},
      {"elapsed_exhausted",
       "no time is left: -m, --retry-max-time, or max_elapsed_time of the policy"},
      {"unsafe_to_repeat",
       "the server may have done it, and doing it twice may do harm; an idempotency key, or "
       "--retry-all-errors, has it sent again"},
      {"not_replayable", "the body cannot be read again, or part of the answer was handed out"},
      {"server_delay_too_long", "the server asks for a longer wait than server_delay.max (1 m)"},
      {"budget_exhausted", "too many of the requests to this host had to be sent again"},
      {"canceled", "by a signal"},
  }};
  return kAll;
}

std::span<const Entry> sent_words() {
  static constexpr std::array<Entry, 3> kAll{{
      {"never", "nothing of the request left: sending it again is safe"},
      {"maybe", "it went out, and no answer came: the server may have done it"},
      {"answered", "an answer came"},
  }};
  return kAll;
}

std::span<const Entry> differences() {
  static constexpr std::array<Entry, 15> kAll{{
      {"retries", "happen without a flag: up to three, within 60 s, with chance in the waits"},
      {"-X POST", "is not sent again where the server may have done it, unless it has a key"},
      {"-m", "is for all attempts together; --set attempt_timeout=5s is for each"},
      {"--retry-max-time", "ends an attempt that has no answer by then, too"},
      {"Retry-After", "of more than a minute ends the call: --set server_delay.max=10m allows it"},
      {"-o", "is written when the answer has come whole; -C - keeps a part, in FILE.part"},
      {"output", "is written when the answer has come whole; past 8 MiB it waits in TMPDIR"},
      {"exit status", "22 for an answer of 400 or more, without -f; --no-fail makes it 0"},
      {"several URLs", "the exit status is that of the last one that failed"},
      {"-o, -C -", "an error's text does not replace what -C - goes on with, nor a 304 the file"},
      {"-L", "to another origin takes no body along (8), and of your headers only harmless ones"},
      {"-L -i, -L -I", "show the head of the last answer only"},
      {"-L -X POST", "a 301, 302 or 303 makes a GET of it, as of any POST"},
      {"[1-3], {a,b}", "in a URL are letters like others"},
      {"not here",
       "-0, -D, -J, -N, -R, -Y, -g, -j, -q, -r, -z, --anyauth, --create-dirs, --digest, "
       "--fail-early, "
       "--netrc-optional, --next, --output-dir, --proto, --remote-name-all, ~/.curlrc, a question "
       "for "
       "the password of -u, and what is not HTTP"},
  }};
  return kAll;
}

std::span<const Entry> outcomes() {
  static constexpr std::array<Entry, 21> kAll{{
      {"503", "an answer; 503:retry-after=2 with a header (as the server would write it)"},
      {"reset", "RST after the request was read"},
      {"close", "FIN after it was read, without an answer"},
      {"reset_early", "RST before it is read"},
      {"reset_during", "the head and half of the body, then RST"},
      {"truncate", "the head and half of the body, then FIN"},
      {"timeout", "no answer; hang is the same"},
      {"drip", "the body byte by byte"},
      {"stale", "an answer, and the next request on that connection meets a FIN"},
      {"garbage", "what is no HTTP"},
      {"huge", "a body without end"},
      {"huge_headers", "headers without end"},
      {"endless_interim", "1xx answers without end"},
      {"bad_chunk", "a chunk whose size is no number"},
      {"gzip_cut_short", "half of a gzip body"},
      {"tls", "RST in the TLS handshake"},
      {"tls_stall", "no TLS handshake"},
      {"refused", "no connection; plan only"},
      {"resolve", "no address; plan only"},
      {"a list", "503,reset,200: one for each request, and the last one for all that follow"},
      {R"({"steps": [{"status": 429, "headers": {"Retry-After": "1"}, "body": "busy", "delay": "50ms", "times": 3}, {"fault": "reset"}, {"status": 200}], "then": "restart", "paths": {"/other": {"steps": [{"status": 200}]}}})",
       "a scenario, in a file; then: repeat_last, restart or close; a path has steps of its own"},
  }};
  return kAll;
}

std::span<const Entry> environment() {
  static constexpr std::array<Entry, 4> kAll{{
      {"HTTPRETRY_POLICY", "the file of policies where neither --policy nor --preset is given"},
      {"http_proxy, https_proxy, all_proxy, no_proxy", "as curl reads them"},
      {"CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR", "the certificates to trust"},
      {"NO_COLOR", "where it is not empty: no colours, unless --color says otherwise"},
  }};
  return kAll;
}

}  // namespace httpretry::cli
