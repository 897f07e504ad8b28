#include "tests/client/conversation.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

using namespace httpretry;

namespace {

// What the middleware writes to a logger of its own.
struct Logged {
  std::ostringstream text;
  LogOptions options;

  Logged() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text);
    auto logger = std::make_shared<spdlog::logger>("log_test", sink);
    logger->set_pattern("%l %v");
    spdlog::register_logger(logger);
    options.logger = "log_test";
  }
  ~Logged() { spdlog::drop("log_test"); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;

  [[nodiscard]] bool has(const char* what) const {
    return text.str().find(what) != std::string::npos;
  }
};

}  // namespace

TEST_CASE("a call is one line, with what came of it and after how many attempts") {
  Logged logged;
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  REQUIRE(talk.client({log(logged.options), retry()}).get("http://u:p@x/path?token=secret"));
  CHECK(logged.has("GET http://x/path: 200 after 2 attempts (success) in "));
  CHECK(logged.has("info call "));
  CHECK_FALSE(logged.has("secret"));
  CHECK_FALSE(logged.has("u:p"));
}

TEST_CASE("a failure is a warning, with its kind and message") {
  Logged logged;
  Conversation talk;
  talk.network->say(Error(Errc::Connect, "refused\x1b[31m"));
  static_cast<void>(talk.client({log(logged.options)}).get("http://x/"));
  CHECK(logged.has("warning call "));
  CHECK(logged.has("connect (refused\\x1b[31m)"));
}

TEST_CASE("headers are logged where that is asked for, and never their secrets") {
  Logged logged;
  logged.options.headers = true;
  Conversation talk;
  Response answer(200);
  answer.headers.add("Set-Cookie", "secret");
  answer.headers.add("X-Info", "shown");
  talk.network->say(answer);
  auto request = Request::get("http://x/")
                     .set_header("Authorization", "secret")
                     .set_header("X-Api-Key", "secret")
                     .set_header("x-amz-security-token", "secret")
                     .set_header("Cookie", "secret")
                     .set_header("Accept", "a/b");
  REQUIRE(talk.client({log(logged.options)}).send(request));
  CHECK(logged.has("Accept: a/b"));
  CHECK(logged.has("X-Info: shown"));
  CHECK(logged.has("Authorization: (not logged)"));
  CHECK_FALSE(logged.has("secret"));
}

TEST_CASE("a program that has no logger is not written for") {
  Conversation talk;
  talk.network->say(Response(200));
  const auto kept = spdlog::default_logger();
  spdlog::set_default_logger(nullptr);
  const auto outcome = talk.client({log()}).get("http://x/");
  spdlog::set_default_logger(kept);
  CHECK(outcome);
}
