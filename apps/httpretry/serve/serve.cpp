// serve: the fault server, for people who want to see what their programs make of it.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "cli/words.hpp"
#include "serve/scenarios.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/testing/testing.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

namespace httpretry::cli {
namespace {

struct ServeOptions {
  ScenarioChoice scenario;
  std::string listen = "127.0.0.1:0";
  bool tls = false;
  std::string log = "-";
};

FlagTable table_of(ServeOptions& to) {
  using Text = const std::string&;
  FlagTable table{{"What happens", scenario_flags(to.scenario)}};
  table.push_back(
      {"The server",
       {{'\0', "listen", "ADDRESS:PORT", "where; 127.0.0.1:0, a free port, where left out",
         [&](Text v) { to.listen = v; }},
        {'\0', "tls", "", "speak TLS", [&](Text) { to.tls = true; }},
        {'\0', "log", "FILE", "a JSON line for each request; standard output where left out",
         [&](Text v) { to.log = v; }},
        help_flag()}});
  return table;
}

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
  if (port > 65535) throw UsageError("option --listen: a port is at most 65535");
  options.address = address;
  options.port = static_cast<std::uint16_t>(port);
}

// A field that came several times is a list.
std::string json_of(const Headers& headers) {
  std::map<std::string, std::vector<std::string>> fields;
  for (const auto field : headers) fields[std::string(field.name)].emplace_back(field.value);
  std::string text = "{";
  for (const auto& [name, values] : fields) {
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

// Requests come on many threads; each line is written at once and whole.
class RequestLog {
 public:
  explicit RequestLog(const std::string& path) : name_(path == "-" ? "standard output" : path) {
    if (path == "-") return;
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      throw WriteError("cannot write to " + path + ": " + std::generic_category().message(errno));
    }
  }
  // A reader is waited for until that is readable.
  void give_up_at(int descriptor) { give_up_ = descriptor; }
  // While it is held, nothing is logged, and so nothing is answered.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }
  void add(const SeenRequest& seen) {
    const std::lock_guard lock(mutex_);
    try {
      write_all(descriptor_, json_of(seen), give_up_, name_);
    } catch (const WriteError& error) {
      say(std::string("httpretry: ") + error.what());
    }
  }

 private:
  std::string name_;
  int give_up_ = -1;
  int descriptor_ = STDOUT_FILENO;
  std::mutex mutex_;
};

}  // namespace

FlagTable serve_table() {
  static ServeOptions unused;
  return table_of(unused);
}

int serve(const Args& args) {
  ServeOptions options;
  if (!parse(args, table_of(options)).empty()) throw UsageError("serve takes options only");
  const auto scenario = chosen_scenario(options.scenario).value_or(Scenario());
  FaultServerOptions server_options;
  set_address(options.listen, server_options);
  if (options.tls) server_options.tls = Tls::Good;
  server_options.max_seen = 0;  // the log has them: a server that runs for long keeps none
  RequestLog log(options.log);
  const Signals signals;
  log.give_up_at(signals.descriptor());
  server_options.on_request = [&log](const SeenRequest& seen) { log.add(seen); };
  try {
    std::optional<FaultServer> server;
    {
      const auto address_first = log.hold();
      server.emplace(scenario, server_options);
      write_all(STDOUT_FILENO, server->url("") + '\n', signals.descriptor(), "standard output");
    }
    if (options.tls) say("the certificate of the authority: " + server->ca_file());
    signals.wait();
    return kOk;
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  } catch (const std::system_error& error) {
    say("httpretry: cannot listen on " + options.listen + ": " + error.what());
    return kFailed;
  }
}

}  // namespace httpretry::cli
