// Links what hands log lines to spdlog, which brings the library along.
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/spdlog/spdlog.hpp>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <sstream>

int main() {
  std::ostringstream text;
  spdlog::register_logger(std::make_shared<spdlog::logger>(
      "consumer", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  httpretry::log_to(httpretry::spdlog_logger("consumer"));
  httpretry::Client client({httpretry::log()});
  static_cast<void>(client.get("no URL"));
  if (text.str().find("(not a URL): invalid_request") == std::string::npos) {
    std::puts("consumer_of_spdlog: the logger got no line");
    return 1;
  }
  std::puts("consumer_of_spdlog: ok");
}
