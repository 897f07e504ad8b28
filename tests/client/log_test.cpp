#include "conversation.hpp"
#include "heard.hpp"

#include "lib/core/base/text.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

using namespace httpretry;

TEST_CASE("a call is one line, with what came of it and after how many attempts") {
  const Heard logged;
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  REQUIRE(talk.client({log(), retry()}).get("http://u:p@x/path?token=secret"));
  CHECK(logged.has("GET http://x/path: 200 after 2 attempts (success) in "));
  CHECK(logged.has("info: call "));
  CHECK_FALSE(logged.has("secret"));
  CHECK_FALSE(logged.has("u:p"));
}

TEST_CASE("below retry, each attempt is a line with its number") {
  const Heard logged;
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  REQUIRE(talk.client({retry(), log()}).get("http://x/path"));
  CHECK(logged.has(", attempt 1: GET http://x/path: 503 in "));
  CHECK(logged.has(", attempt 2: GET http://x/path: 200 in "));
}

TEST_CASE("a failure is a warning, with its kind and message") {
  const Heard logged;
  Conversation talk;
  talk.network->say(Error(Errc::Connect, "refused\x1b[31m"));
  static_cast<void>(talk.client({log()}).get("http://x/"));
  CHECK(logged.has("warning: call "));
  CHECK(logged.has("connect (refused\\x1b[31m)"));
}

TEST_CASE("headers are logged where that is asked for, and never their secrets") {
  const Heard logged;
  LogOptions options;
  options.headers = true;
  Conversation talk;
  Response answer(200);
  answer.headers.add("Set-Cookie", "secret");
  answer.headers.add("X-Info", "shown");
  answer.headers.add("Content-Location", "/b?page=secret");
  talk.network->say(answer);
  auto request = Request::get("http://x/")
                     .set_header("Authorization", "secret")
                     .set_header("X-Api-Key", "secret")
                     .set_header("x-amz-security-token", "secret")
                     .set_header("Cookie", "secret")
                     .set_header("Cf-Access-Jwt-Assertion", "secret")
                     .set_header("Referer", "http://me:secret@y/?q=secret")
                     .set_header("Accept", "a/b");
  REQUIRE(talk.client({log(options)}).send(request));
  CHECK(logged.has("Accept: a/b"));
  CHECK(logged.has("X-Info: shown"));
  CHECK(logged.has("Authorization: REDACTED"));
  CHECK(logged.has("Content-Location: /b?page=REDACTED"));
  CHECK_FALSE(logged.has("secret"));
}

namespace {

// What the program writes to a descriptor while it lives.
class Written {
 public:
  explicit Written(int descriptor) : descriptor_(descriptor), before_(dup(descriptor)) {
    std::fflush(nullptr);
    REQUIRE(dup2(fileno(file_.get()), descriptor_) == descriptor_);
  }
  ~Written() {
    std::fflush(nullptr);
    dup2(before_, descriptor_);
    close(before_);
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  [[nodiscard]] std::string text() const {
    std::fflush(nullptr);
    std::string text(4096, '\0');
    const auto size = pread(fileno(file_.get()), text.data(), text.size(), 0);
    REQUIRE(size >= 0);
    text.resize(static_cast<std::size_t>(size));
    return text;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), &std::fclose};
  int descriptor_;
  int before_;
};

}  // namespace

TEST_CASE("lines go to standard error where nothing else was said, with time and level") {
  Conversation talk;
  talk.network->say(Response(200)).say(Response(404));
  auto client = talk.client({log()});
  std::string out;
  std::string err;
  {
    const Written to_out(STDOUT_FILENO);
    const Written to_err(STDERR_FILENO);
    static_cast<void>(client.get("http://x/good"));
    static_cast<void>(client.get("http://x/bad"));
    out = to_out.text();
    err = to_err.text();
  }
  CHECK(out.empty());
  INFO(err);
  CHECK(std::ranges::count(err, '\n') == 2);
  std::string shape = err;  // with 0 for each digit
  std::ranges::replace_if(shape, is_digit, '0');
  CHECK(shape.starts_with("[0000-00-00 00:00:00.000] [info] call 0"));
  CHECK(err.find(": GET http://x/good: 200 in ") < err.find('\n'));
  const auto second = err.find('\n') + 1;
  CHECK(shape.find("[0000-00-00 00:00:00.000] [warning] call 0", second) == second);
  CHECK(err.find(": GET http://x/bad: 404 in ", second) != err.npos);
  CHECK(err.ends_with('\n'));
}

TEST_CASE("what the policy calls a failure is a warning, and what it calls a success is none") {
  const Heard logged;
  RetryOptions judged;
  judged.classify = [](const RetryPolicy&, const Request&, const Observed& observed) {
    Classified found;
    found.status = (*observed.outcome)->status;
    found.cls = found.status == 404 ? Class::Success : Class::Permanent;
    return found;
  };
  Conversation talk;
  talk.network->say(Response(404)).say(Response(200));
  auto client = talk.client({log(), retry(judged)});
  static_cast<void>(client.get("http://x/gone"));
  CHECK(logged.text().starts_with("info: call "));
  static_cast<void>(client.get("http://x/wrong"));
  CHECK(logged.has("\nwarning: call "));
}

TEST_CASE("a chain may have a log function of its own") {
  const Heard of_program;
  std::string lines;
  LogOptions options;
  options.to = [&](LogLevel, std::string_view line) { lines += line; };
  Conversation talk;
  talk.network->say(Response(200));
  REQUIRE(talk.client({log(options)}).get("http://x/"));
  CHECK(lines.find("GET http://x/: 200 in ") != std::string::npos);
  CHECK(of_program.text().empty());
}

TEST_CASE("a line whose function throws goes to standard error, and the call goes on") {
  log_to([](LogLevel, std::string_view) { throw 7; });
  Conversation talk;
  talk.network->say(Response(200));
  std::string err;
  {
    const Written to_err(STDERR_FILENO);
    CHECK(talk.client({log()}).get("http://x/"));
    err = to_err.text();
  }
  log_to(nullptr);
  CHECK(err.find("GET http://x/: 200 in ") != std::string::npos);
}
