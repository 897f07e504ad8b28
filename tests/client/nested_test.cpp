#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/middleware/retry_call.hpp>

#include <doctest/doctest.h>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

using namespace httpretry;

namespace {

// Everything that goes through spdlog's default logger while it lives.
class Heard {
 public:
  Heard() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "heard", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
    spdlog::default_logger()->set_pattern("%l: %v");
  }
  ~Heard() { spdlog::set_default_logger(before_); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream text_;
};

MiddlewarePtr noting_whether_inside(std::vector<bool>& notes) {
  return middleware("noting", [&notes](Request request, Call& call, Next next) -> Task<Outcome> {
    notes.push_back(detail::inside_retry());
    Outcome outcome = co_await next(std::move(request), call);
    notes.push_back(detail::inside_retry());
    co_return outcome;
  });
}

}  // namespace

TEST_CASE("an attempt is known as one until it suspends, and what stands above retry never is") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  std::vector<bool> above;
  std::vector<bool> below;
  auto client = talk.client(
      {noting_whether_inside(above), retry(steady_policy()), noting_whether_inside(below)});
  CHECK(client.get("http://x/")->status == 200);
  CHECK(above == std::vector{false, false});
  CHECK(below == std::vector{true, false, true, false});
  CHECK_FALSE(detail::inside_retry());
}

TEST_CASE("a function that is retried is inside, also one that throws") {
  bool inside = false;
  CHECK_THROWS((void)retry_call(steady_policy(), [&]() -> Tried<> {
    inside = detail::inside_retry();
    throw 7;
  }));
  CHECK(inside);
  CHECK_FALSE(detail::inside_retry());
}

TEST_CASE("a retrying call inside of another one is warned of, once in a program") {
  Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({retry(steady_policy())});
  auto plain = talk.client({});
  const Heard heard;

  (void)client.get("http://x/");
  (void)retry_call(steady_policy(), [&] {
    return Tried<>(plain.get("http://x/") ? Class::Success : Class::Permanent);
  });
  auto once = Request::get("http://x/");
  once.edit_options().retry = false;
  (void)retry_call(steady_policy(), [&] { return (void)client.send(once), Tried<>::success(); });
  CHECK(heard.text().empty());

  (void)retry_call(steady_policy(),
                   [&] { return (void)client.get("http://x/"), Tried<>::success(); });
  CHECK(heard.text().starts_with("warning: httpretry: a call that retries was made inside"));

  // Below a retry stage another client is asked: as bad, and said already.
  auto bearer = middleware("bearer", [&](Request request, Call& call, Next next) -> Task<Outcome> {
    CHECK(detail::inside_retry());
    Outcome token = co_await client.co_send(Request::get("http://tokens/"));
    request.set_header("Authorization", token->body);
    Outcome outcome = co_await next(std::move(request), call);
    co_return outcome;
  });
  CHECK(talk.client({retry(steady_policy()), bearer}).get("http://x/")->status == 200);
  CHECK(heard.text().find("warning", 1) == std::string::npos);
}
