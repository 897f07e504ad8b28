#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/spdlog/spdlog.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

using namespace httpretry;

namespace {

// A logger that is registered while it lives.
class Logger {
 public:
  Logger() {
    auto logger = std::make_shared<spdlog::logger>(
        "spdlog_test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_pattern("%l: %v");
    spdlog::register_logger(logger);
  }
  ~Logger() { spdlog::drop("spdlog_test"); }
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

}  // namespace

TEST_CASE("lines go to the logger of that name, at their level and unchanged") {
  const Logger logger;
  const auto to = spdlog_logger("spdlog_test");
  to(LogLevel::Info, "all is {well}");
  to(LogLevel::Warning, "look");
  to(LogLevel::Error, "refused");
  CHECK(logger.text() == "info: all is {well}\nwarning: look\nerror: refused\n");
}

TEST_CASE("the level of the logger counts") {
  const Logger logger;
  spdlog::get("spdlog_test")->set_level(spdlog::level::err);
  spdlog_logger("spdlog_test")(LogLevel::Warning, "look");
  CHECK(logger.text().empty());
}

TEST_CASE("a call is logged there, whether the logger was registered before or after") {
  auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(200));
  ClientOptions options;
  LogOptions logged;
  logged.to = spdlog_logger("spdlog_test");
  options.middlewares = {log(logged)};
  options.transport = network;
  Client client(options);
  const Logger logger;
  REQUIRE(client.get("http://x/"));
  CHECK(logger.text().find("GET http://x/: 200 in ") != std::string::npos);
}

TEST_CASE("without such a logger the function throws, so that the line is not lost") {
  CHECK_THROWS(spdlog_logger("nobody")(LogLevel::Error, "refused"));
}
