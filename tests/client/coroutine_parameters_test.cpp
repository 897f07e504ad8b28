// Which parameters a function may have that is a coroutine: tests/compile/errors_test.py has the
// errors that the others give.
#include "conversation.hpp"

#include <httpretry/body/sink.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

template <class F>
constexpr bool may_be_coroutine(const F& /*function*/) {
  return detail::Parameters<F>::kept;
}

constexpr auto kPlain = [](Request, Call&, Next) {};
constexpr auto kConstCall = [](Request, const Call&, Next) {};
constexpr auto kReference = [](const Request&, Call&, Next) {};
constexpr auto kMoved = [](Request&&, Call&, Next) {};
constexpr auto kNextReference = [](Request, Call&, const Next&) {};
constexpr auto kView = [](std::string_view, Call&) {};
constexpr auto kSpan = [](std::span<const char>, Call&) {};
constexpr auto kText = [](std::string, Call&) noexcept {};
static_assert(may_be_coroutine(kPlain) && may_be_coroutine(kConstCall) && may_be_coroutine(kText));
static_assert(!may_be_coroutine(kReference) && !may_be_coroutine(kMoved));
static_assert(!may_be_coroutine(kNextReference));
static_assert(!may_be_coroutine(kView) && !may_be_coroutine(kSpan));

}  // namespace

TEST_CASE("a coroutine with auto parameters may take references: they are kept until its end") {
  Conversation talk;
  talk.network->say(Response(200));
  const std::string long_url = "http://x/" + std::string(100, 'p');
  auto late = middleware("late", [](auto&& request, Call& call, auto&& next) -> Task<Outcome> {
    const bool waited = co_await call.scheduler().sleep_until(Time(1s), call.stop());
    CHECK(waited);
    Outcome outcome = co_await next(request, call);
    co_return outcome;
  });
  CHECK(talk.client({late}).get(long_url));
  CHECK(talk.sent(0).url() == long_url);
}

TEST_CASE("the body may be passed to a coroutine with auto parameters") {
  Conversation talk;
  talk.network->say(Response(200, std::string(100, 'b')));
  std::string got;
  auto request = Request::get("http://x/");
  request.edit_options().sink = pass_to([&](auto&& bytes, Call& call) -> Task<bool> {
    const bool waited = co_await call.scheduler().sleep_until(Time(1s), call.stop());
    CHECK(waited);
    got += bytes;
    co_return true;
  });
  CHECK(talk.client({}).send(request));
  CHECK(got == std::string(100, 'b'));
}
