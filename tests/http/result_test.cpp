#include <httpretry/http/response.hpp>
#include <httpretry/http/result.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

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
