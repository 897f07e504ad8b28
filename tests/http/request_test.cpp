#include <httpretry/body/sink.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/http/request.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>
#include <vector>

using namespace httpretry;

static_assert(sizeof(Request) <= 2 * sizeof(void*));

TEST_CASE("a copy of a request that is changed leaves the others as they were") {
  auto one = Request::post("http://x/", "data").set_header("A", "1");
  auto two = one;
  two.set_header("A", "2").set_method("PUT").set_url("http://y/").set_body(Body());
  two.edit_options().retry = false;

  CHECK(one.headers().get("A") == "1");
  CHECK(one.method() == "POST");
  CHECK(one.url() == "http://x/");
  CHECK(*one.body().bytes() == "data");
  CHECK(one.options().retry);
  CHECK(two.headers().get("A") == "2");
  CHECK_FALSE(two.body().present());
}

TEST_CASE("the parsed URL is that of the URL, also after a change") {
  auto request = Request::get("http://x/a");
  CHECK(request.parsed_url()->path() == "/a");
  request.set_url("http://x/b");
  CHECK(request.parsed_url()->path() == "/b");
  request.set_url("nonsense");
  CHECK_FALSE(request.parsed_url());
}

TEST_CASE("many threads may ask one request for its parsed URL") {
  const auto request = Request::get("http://x/a");
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&right, request] {
      if (request.parsed_url()->path() == "/a") ++right;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(right == 8);
}

TEST_CASE("a method that would break the request line is an error") {
  for (const char* method : {"", "GET ", "GET\r\nX: y", "G T"}) {
    CHECK_THROWS_AS(Request(method, "http://x/"), std::invalid_argument);
    CHECK_THROWS_AS(Request::get("http://x/").set_method(method), std::invalid_argument);
  }
  CHECK(Request("PROPFIND", "http://x/").method() == "PROPFIND");
}

TEST_CASE("a failed change leaves a request as it was") {
  auto request = Request::get("http://x/").set_header("A", "1");
  CHECK_THROWS(request.set_header("A", "1\r\n2"));
  CHECK_THROWS(request.set_method("a b"));
  CHECK(request.headers() == Headers{{"A", "1"}});
  CHECK(request.method() == "GET");
}

TEST_CASE("a request is repeatable by its method, its headers, its query or its options") {
  for (const char* method : {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"}) {
    CHECK(Request(method, "http://x/").repeatable());
  }
  for (const char* method : {"POST", "PATCH", "LOCK", "get"}) {
    CHECK_FALSE(Request(method, "http://x/").repeatable());
  }
  CHECK(Request::post("http://x/", "d").set_header("idempotency-key", "k").repeatable());
  CHECK(Request::post("http://x/", "d").set_header("If-Match", "\"v\"").repeatable());
  CHECK(Request::post("http://x/", "d").set_header("If-None-Match", "*").repeatable());
  CHECK_FALSE(Request::post("http://x/", "d").set_header("If-None-Match", "\"v\"").repeatable());
  CHECK(Request::post("http://x/?a=b&ifGenerationMatch=0", "d").repeatable());
  CHECK_FALSE(Request::post("http://x/?notifGenerationMatch=0", "d").repeatable());
  auto told = Request::post("http://x/", "d");
  told.edit_options().repeatable = true;
  CHECK(told.repeatable());
}
