#include <httpretry/http/response.hpp>
#include <httpretry/http/result.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace httpretry;

namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error(Errc::InvalidRequest, "odd");
  return value / 2;
}

}  // namespace

static_assert(sizeof(Outcome) == 2 * sizeof(void*));

TEST_CASE("a result is a value or an error") {
  const auto good = half(8);
  REQUIRE(good.has_value());
  CHECK(*good == 4);
  CHECK(good.value() == 4);
  CHECK(good.value_or(7) == 4);

  const auto bad = half(3);
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == Errc::InvalidRequest);
  CHECK(bad.value_or(7) == 7);
}

TEST_CASE("value() of an error throws it, with its message") {
  CHECK_THROWS_WITH_AS(half(3).value(), "odd", Failure);
  try {
    static_cast<void>(half(3).value());
  } catch (const Failure& failure) {
    CHECK(failure.error().code == Errc::InvalidRequest);
  }
  CHECK_THROWS_AS(Result<void>(Error(Errc::Internal)).value(), Failure);
  CHECK(std::string(Failure(Error(Errc::Connect)).what()) == "connect");  // never empty
  CHECK_NOTHROW(Result<void>().value());
}

TEST_CASE("and_then, transform and or_else chain as those of std::expected") {
  CHECK(half(8).and_then(half).value() == 2);
  CHECK(half(6).and_then(half).error().message == "odd");
  CHECK(half(8).transform([](int value) { return std::to_string(value); }).value() == "4");
  CHECK(half(3).transform([](int value) { return value; }).error().message == "odd");
  CHECK(half(3).or_else([](const Error&) { return Result<int>(9); }).value() == 9);
  CHECK(half(8).or_else([](const Error&) { return Result<int>(9); }).value() == 4);
}

TEST_CASE("a response is a success or ran out of time by its history") {
  for (const auto& [status, is_2xx] : std::vector<std::pair<int, bool>>{
           {199, false}, {200, true}, {299, true}, {300, false}, {0, false}}) {
    CHECK(Response(status).is_2xx() == is_2xx);
  }
  Response response(404);
  CHECK_FALSE(timed_out(response));
  response.history.attempts.emplace_back();
  CHECK(succeeded(response));  // the policy calls it a success
  response.history.stop_reason = Reason::NotRetryable;
  CHECK_FALSE(succeeded(response));
  CHECK_FALSE(timed_out(response));
  response.history.stop_reason = Reason::ElapsedExhausted;
  CHECK_FALSE(succeeded(response));
  CHECK(timed_out(response));
  response.from_fallback = true;
  CHECK_FALSE(succeeded(response));
  response.status = 399;
  CHECK(succeeded(response));
}

TEST_CASE("an error says whether it was held back, and whether time ran out") {
  for (int code = 0; code <= static_cast<int>(Errc::Status); ++code) {
    const Error error(static_cast<Errc>(code));
    CAPTURE(error.message);
    const bool held_back = error.code == Errc::Paused || error.code == Errc::CircuitOpen ||
                           error.code == Errc::RateLimited || error.code == Errc::QueueFull;
    CHECK(error.held_back() == held_back);
    CHECK(error.is_timeout() == (error.code == Errc::Timeout));
    CHECK(timed_out(error) == (error.code == Errc::Timeout));
    CHECK_FALSE(succeeded(error));
  }
  Error late(Errc::Connect);
  late.history.stop_reason = Reason::ElapsedExhausted;
  CHECK(timed_out(late));
}

TEST_CASE("a response that is no success is an error with all that came") {
  Response response(503);
  response.headers.add("X-Name", "value");
  response.exchange.sent = Sent::Answered;
  response.history.attempts.emplace_back();
  response.history.stop_reason = Reason::AttemptsExhausted;
  try {
    static_cast<void>(require_success(response));
    FAIL("it was a success");
  } catch (const Failure& failure) {
    const auto& error = failure.error();
    CHECK(error.code == Errc::Status);
    CHECK(error.message == "the response is not a success: status 503, attempts_exhausted");
    CHECK(error.status == 503);
    CHECK(error.headers == Headers{{"X-Name", "value"}});
    CHECK(error.exchange.sent == Sent::Answered);
    CHECK(error.history.attempts.size() == 1);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(require_success(Error(Errc::Tls, "no trust"))), "no trust",
                       Failure);
}

TEST_CASE("a result of something that can only be moved can be moved") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const auto moved = std::move(result).value();
  CHECK(*moved == 5);
}

TEST_CASE("copies of a large value are independent") {
  Outcome one = Response(200, "one");
  Outcome two = one;
  two->body = "two";
  CHECK(one->body == "one");
  one = two;
  CHECK(one->body == "two");
  one = Error(Errc::Timeout, "late");
  CHECK(one.error().message == "late");
  CHECK(two->body == "two");
}
