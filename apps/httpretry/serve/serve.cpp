// httpretry serve: runs a FaultServer.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/scenario_options.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/testing/testing.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

namespace httpretry::cli {
namespace {

struct ServeOptions {
  ScenarioChoice scenario;
  std::string har_file;
  std::string listen = "127.0.0.1:0";
  bool tls = false;
  std::string log = "-";
};

// Returns the flags of `httpretry serve` in groups, each with its title in --help. Each flag has a
// letter ('\0' if it has none), a name, the name of its value (empty if it takes none), a help
// text, and an action that stores the value in `to`, which must outlive the flags.
FlagTable serve_flags(ServeOptions& to) {
  return {
      {"Scenario",
       joined(
           scenario_flags(to.scenario),
           {{'\0', "har", "FILE",
             "respond as recorded in an HTTP archive by --har with --har-bodies, or by a browser",
             store(to.har_file)}})},
      {"Server",
       {{'\0', "listen", "ADDRESS:PORT", "where to listen (127.0.0.1:0: any free port)",
         store(to.listen)},
        {'\0', "tls", "",
         "use TLS; the certificate is for localhost and 127.0.0.1, and standard error shows the "
         "file to pass to --cacert",
         enable(to.tls)},
        {'\0', "log", "FILE",
         "append a JSON line for each request to FILE (default: standard output)", store(to.log)},
        help_flag()}}};
}

// Sets the address and the port from "ADDRESS:PORT" or "[IPV6_ADDRESS]:PORT". Throws UsageError.
void set_address(const std::string& listen, FaultServerOptions& options) {
  const auto colon = listen.rfind(':');
  if (colon == std::string::npos) {
    throw UsageError("option --listen: \"" + listen + "\" is not ADDRESS:PORT");
  }
  auto address = listen.substr(0, colon);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  const auto port = parse_count(listen.substr(colon + 1), "--listen");
  if (port > 65535) throw UsageError("option --listen: the port must be at most 65535");
  options.address = address;
  options.port = static_cast<std::uint16_t>(port);
}

// Returns the headers as JSON. A header that occurs several times becomes a list.
std::string json_of(const Headers& headers) {
  std::map<std::string, std::vector<std::string>> lists;
  for (const auto field : headers) lists[std::string(field.name)].emplace_back(field.value);
  std::string text = "{";
  for (const auto& [name, values] : lists) {
    std::string list;
    for (const auto& value : values) list += (list.empty() ? "" : ", ") + quote_json(value);
    text += (text.size() == 1 ? "" : ", ") + quote_json(name) + ": " +
            (values.size() == 1 ? list : "[" + list + "]");
  }
  return text + "}";
}

std::string json_of(const SeenRequest& seen) {
  return "{\"arrival_time\": " + quote_json(rfc3339(seen.arrived_wall)) +
         ", \"method\": " + quote_json(seen.method) + ", \"path\": " + quote_json(seen.path) +
         ", \"target\": " + quote_json(seen.target) + ", \"headers\": " + json_of(seen.headers) +
         ", \"body_length\": " + std::to_string(seen.body_size) +
         ", \"connection\": " + std::to_string(seen.connection) + "}\n";
}

// Returns the scenario of the server, that is, the responses that it gives: from --scenario or
// --outcomes, or from the HTTP archive of --har. Without these flags, each response is an empty
// 200. Each request to which the archive has no response adds one to `unmatched`, which must
// outlive the server. Throws UsageError.
Scenario scenario_of(const ServeOptions& options, std::atomic<int>& unmatched) {
  auto scenario = chosen_scenario(options.scenario);
  if (options.har_file.empty()) return scenario.value_or(Scenario());
  if (scenario) throw UsageError("--har cannot be combined with --scenario or --outcomes");
  std::string text;
  try {
    text = read_whole(options.har_file, kMaxTextFile);
  } catch (const ReadError& error) {
    throw UsageError("option --har: cannot read " + options.har_file + ": " + error.what());
  }
  auto recorded = parse_har(text, options.har_file, [&unmatched](const std::string& reason) {
    ++unmatched;
    print_message("httpretry: " + printable(reason));
  });
  if (!recorded) throw UsageError("the archive has errors:\n" + recorded.error().message);
  return *std::move(recorded);
}

// RequestLog writes a line for each request. It is thread-safe, because the threads of all
// connections use it.
class RequestLog {
 public:
  explicit RequestLog(const std::string& path) : name_(path == "-" ? "standard output" : path) {
    if (path == "-") return;
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw_write_error(path, errno);
  }
  // A write that blocks, because the reader of a pipe is slow, gives up when `descriptor` becomes
  // readable.
  void cancel_writes_when_readable(int descriptor) { cancel_ = descriptor; }
  // Returns a lock. While it is held, no request is logged and therefore no response is sent.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }
  void add(const SeenRequest& seen) {
    const std::lock_guard lock(mutex_);
    try {
      write_all(descriptor_, json_of(seen), cancel_, name_);
    } catch (const WriteError& error) {
      print_message(std::string("httpretry: ") + error.what());
    }
  }

 private:
  std::string name_;
  int cancel_ = -1;
  int descriptor_ = STDOUT_FILENO;
  std::mutex mutex_;
};

}  // namespace

// Implements `httpretry serve`: runs a test server that injects faults, until a signal such as
// SIGINT arrives. Prints its URL on standard output as the first line, and then a line for each
// request there, or in the file of --log. Returns the exit status, which is kFailed if the server
// cannot listen, or if --har had no response to a request. Throws UsageError.
int serve(const Args& args) {
  ServeOptions options;
  if (!parse(args, serve_flags(options)).empty())
    throw UsageError("serve takes options only, no operands");
  std::atomic<int> unmatched = 0;
  const auto scenario = scenario_of(options, unmatched);
  FaultServerOptions server_options;
  set_address(options.listen, server_options);
  if (options.tls) server_options.tls = Tls::Good;  // with a valid certificate
  server_options.max_seen = 0;  // keeps no requests in memory, because they are logged
  RequestLog log(options.log);
  const Signals signals;  // from now on, signals do not end the process at once
  // signals.descriptor() becomes readable on a signal. A write that blocks on a full pipe then
  // gives up, so that the program can end.
  log.cancel_writes_when_readable(signals.descriptor());
  server_options.on_request = [&log](const SeenRequest& seen) { log.add(seen); };
  try {
    std::optional<FaultServer> server;
    {
      // While the lock is held, no request is logged, so the line with the URL is the first one.
      const auto lock = log.hold();
      server.emplace(scenario, server_options);
      write_stdout(server->url("") + '\n', signals.descriptor());
    }
    if (options.tls) print_message("certificate authority: " + server->ca_file());
    signals.wait();
    server->stop();
    if (unmatched == 0) return kOk;
    print_message("httpretry: " + std::to_string(unmatched) +
                  (unmatched == 1 ? " request" : " requests") + " had no recorded response");
    return kFailed;
  } catch (const std::invalid_argument& error) {  // an invalid address
    throw UsageError(error.what());
  } catch (const std::system_error& error) {
    print_message("httpretry: cannot listen on " + options.listen + ": " + error.what());
    return kFailed;
  }
}

FlagTable serve_table() { return unused_table<ServeOptions>(serve_flags); }

}  // namespace httpretry::cli
