// The options of `httpretry [options] URL...`.
#pragma once

#include "cli/commands.hpp"
#include "cli/policy_options.hpp"
#include "send/data.hpp"
#include "send/form.hpp"
#include "send/oauth2.hpp"
#include "send/paginate.hpp"
#include "send/protocols.hpp"
#include "send/telemetry.hpp"

#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>
#include <httpretry/guard/shared_state.hpp>
#include <httpretry/http/request.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace httpretry::cli {

// The treatment of a response of 400 or more.
enum class OnErrorStatus : std::uint8_t {
  Fail,             // it is shown, and the exit status is an error
  FailWithoutBody,  // -f: it is not shown
  Succeed,          // --no-fail: it is shown like any other
};

// Stands for -O in SendOptions::outputs. No file has this name.
inline constexpr const char* kRemoteName = "";

// The largest body in memory, unless --max-filesize sets another limit.
inline constexpr std::uint64_t kMostInMemory = std::uint64_t{1} << 30U;

// The options of the whole run.
struct RunOptions : TelemetryOptions {
  int config_depth = 0;     // of nested -K files
  bool read_config = true;  // false: -K is ignored
  int end_of_waits = -1;    // `cancel` of read_whole, for -K

  bool parallel = false;
  long parallel_max = 50;
  long parallel_max_host = 0;  // 0: no limit
  bool fail_early = false;
  bool show_error = false;
  bool progress = true;  // a status line on a terminal
  bool verbose = false;
  bool trace = false;
  std::string color = "auto";
  std::string messages_file;  // --stderr
  std::string report;         // a file, or "-"
};

// The options of a group of URLs. `--next` ends a group.
struct SendOptions : RunOptions {
  std::vector<SendOptions> earlier;  // the groups before this one

  std::vector<std::string> urls;
  std::string default_scheme = "http";  // --proto-default
  bool refuse_userinfo = false;         // --disallow-username-in-url

  std::string method;                // -X; empty: implied by other options
  std::vector<std::string> headers;  // in the syntax of curl's -H
  std::vector<DataItem> data_items;  // of -d, --json etc.
  std::optional<std::string> data;   // the content of data_items, once it is read
  std::vector<FormField> form;       // of -F and --form-string
  bool json = false;
  bool data_in_url = false;               // -G
  bool head = false;                      // -I
  std::vector<std::string> url_query;     // encoded once they are read
  std::vector<std::string> uploads;       // the n-th belongs to the n-th URL
  std::vector<std::string> outputs;       // likewise; or kRemoteName
  std::optional<std::string> user_agent;  // -A; "": send none
  std::string referer;
  std::optional<std::string> user;  // "name:password", or "name" before the prompt
  Credentials::Scheme auth = Credentials::Scheme::Basic;
  std::string signer;  // --aws-sigv4
  std::string bearer;
  std::string oauth2;  // --oauth2: a file; empty: none
  MakeTokens tokens;   // of that file, once it is read

  std::string range;                                             // -r: "0-99"
  std::string time_condition;                                    // -z: a date, or a file
  std::optional<std::pair<std::string, std::string>> condition;  // its header

  std::string etag_compare;         // a file; empty: none
  std::string etag_save;            // likewise
  std::optional<std::string> etag;  // of the file etag_compare

  bool follow = false;
  bool trust_other_origins = false;  // --location-trusted
  std::vector<int> keep_post_after;  // --post301 and so on: the statuses
  Protocols protocols;               // --proto
  Protocols redirect_protocols;      // --proto-redir
  int max_redirects = 10;
  std::optional<Duration> max_time;  // never 0; nullopt is no limit
  std::optional<Duration> connect_timeout;
  std::optional<Duration> expect_timeout;
  std::optional<long> speed_limit;  // -Y: bytes per second
  std::optional<long> speed_time;   // -y: seconds
  bool compressed = false;
  std::string compress_with;  // --compress
  HttpVersion http_version = HttpVersion::Any;
  TransportOptions connection;  // proxies, TLS, addresses
  std::string proxy_user;       // as `user`; empty: none
  Credentials::Scheme proxy_auth = Credentials::Scheme::Basic;
  std::vector<std::string> proxy_headers;  // --proxy-header, as `headers`
  std::vector<std::string> cookies;        // of -b: "NAME=VALUE"
  std::vector<std::string> cookie_files;   // of -b: files
  std::string cookie_jar;                  // -c
  bool use_cookies = false;                // -b FILE or -c
  bool junk_session_cookies = false;       // -j
  bool keep_dot_segments = false;          // --path-as-is
  bool resume = false;                     // -C -
  std::uint64_t offset = 0;                // -C N: bytes to skip
  bool name_all_files = false;             // --remote-name-all
  bool name_from_header = false;           // -J
  std::string output_folder;               // --output-dir
  bool no_clobber = false;                 // --no-clobber
  bool skip_existing = false;              // --skip-existing
  bool remove_on_error = false;            // --remove-on-error
  bool remote_time = false;                // -R
  bool globoff = false;                    // -g
  // The n-th belongs to the n-th URL; filled by --no-clobber when the requests are created.
  std::vector<std::string> unused_names;
  bool create_folders = false;  // --create-dirs
  std::string headers_file;     // -D
  bool stream = false;          // -N
  std::optional<std::uint64_t> max_file_size;
  std::optional<std::uint64_t> bytes_per_second;

  PolicyChoice policy;
  std::uint64_t cost = 1;
  bool retry_all_errors = false;
  bool use_idempotency_key = false;  // --idempotency-key
  std::string idempotency_key;       // empty: generated for each URL
  std::optional<Duration> retry_delay;
  Pagination pagination;  // --paginate
  std::string until;
  std::string until_fail;

  OnErrorStatus on_error_status = OnErrorStatus::Fail;
  bool include = false;
  bool silent = false;
  std::string write_out;                          // a format, or "@FILE" until it is read
  std::shared_ptr<const RunTelemetry> telemetry;  // of the run; null: off
  std::optional<std::string> shared;              // --shared
  std::shared_ptr<SharedState> shared_state;      // of the run; null: each client has its own

  bool version = false;
};

// Returns the table of the flags that set these options.
FlagTable send_flags(SendOptions& to);

// Parses a command line. Throws UsageError, ReadError and HelpRequested.
void parse_send(const Args& args, SendOptions& to);

// Returns the request for the URL at `index`. Throws UsageError and ReadError; `cancel` is that of
// upload_body.
Request request_for(const SendOptions& options, std::size_t index, int cancel);

// Returns the headers of --proxy-header. Throws like request_for.
Headers proxy_headers(const SendOptions& options, int cancel);

// Ends the group and starts the next one, which keeps only the options of the whole run. Throws
// UsageError if the group has no URL.
void begin_next_group(SendOptions& to);

// Returns whether error messages may be shown.
inline bool shows_errors(const SendOptions& options) {
  return !options.silent || options.show_error;
}

}  // namespace httpretry::cli
