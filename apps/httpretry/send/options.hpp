// What `httpretry [options] URL...` was asked to do.
#pragma once

#include "cli/commands.hpp"
#include "policy/policies.hpp"
#include "send/form.hpp"

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/transport.hpp>
#include <httpretry/http/request.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::cli {

// What becomes of an answer of 400 or more.
enum class OnBadAnswer : std::uint8_t {
  Fail,          // it is shown, and the exit status says so
  FailWithout,   // -f: it is not shown
  TakeAsAnswer,  // --no-fail: it is an answer like any other
};

// -O, among the names of -o: no file is called so.
inline constexpr const char* kRemoteName = "";

// Of a body that does not go into a file, where --max-filesize says nothing else.
inline constexpr std::uint64_t kMostInMemory = std::uint64_t{1} << 30U;

struct SendOptions {
  std::vector<std::string> urls;
  int config_depth = 0;  // of -K within -K

  std::string method;                // -X; empty: what the rest implies
  std::vector<std::string> headers;  // lines, as curl's -H takes them
  std::optional<std::string> data;   // of all -d and their kin, joined
  std::vector<FormField> form;       // of -F and --form-string
  bool json = false;
  bool data_in_url = false;               // -G
  bool head = false;                      // -I
  std::vector<std::string> url_query;     // items, encoded
  std::vector<std::string> uploads;       // the n-th belongs to the n-th URL
  std::vector<std::string> outputs;       // likewise; kRemoteName: the last part of the URL's path
  std::optional<std::string> user_agent;  // -A; empty: none at all
  std::string referer;
  std::optional<std::string> user;  // "name:password"
  std::string bearer;

  bool follow = false;
  int max_redirects = 10;
  std::optional<Duration> max_time;
  std::optional<Duration> connect_timeout;
  bool compressed = false;
  HttpVersion http_version = HttpVersion::Any;
  TransportOptions connection;            // proxies, TLS, addresses
  std::vector<std::string> cookies;       // of -b: "NAME=VALUE"
  std::vector<std::string> cookie_files;  // of -b: files
  std::string cookie_jar;                 // -c
  bool keeps_cookies = false;             // -b FILE or -c
  bool resume = false;                    // -C -
  std::uint64_t offset = 0;               // -C N: so many bytes are not wanted
  std::optional<std::uint64_t> max_file_size;
  std::optional<std::uint64_t> bytes_per_second;

  bool parallel = false;
  long parallel_max = 50;

  PolicyChoice policy;
  bool retry_all_errors = false;
  bool give_key = false;        // --idempotency-key
  std::string idempotency_key;  // empty: one is generated for each URL
  std::optional<Duration> retry_delay;
  std::string until;

  OnBadAnswer on_bad_answer = OnBadAnswer::Fail;
  bool include = false;
  bool silent = false;
  bool show_error = false;
  bool progress = true;  // a live line, on a terminal
  bool verbose = false;
  bool trace = false;
  std::string color = "auto";
  std::string write_out;
  std::string report;  // a file, or "-"

  bool version = false;
};

// The one table of the flags of sending.
FlagTable send_flags(SendOptions& to);

// Applies a command line. Throws UsageError, ReadError and HelpAsked.
void parse_send(const Args& args, SendOptions& to);

// The request for the URL at `index`. Throws UsageError and ReadError; `give_up` as for
// upload_body.
Request request_for(const SendOptions& options, std::size_t index, int give_up);

// Where its answer goes: a file, or "-". Throws UsageError.
std::string target_for(const SendOptions& options, std::size_t index, const Request& request);

// Whether a message for people may be written to standard error.
inline bool speaks(const SendOptions& options) { return !options.silent || options.show_error; }

}  // namespace httpretry::cli
