// A look-up allocates nothing. Long requests and many patterns change nothing about what it finds.
#include "endpoint_patterns.hpp"
#include "tests/retry/allocations.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using namespace httpretry;
using endpoint_test::pattern;
using endpoint_test::url;

namespace {

std::string repeated(std::string_view text, int times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

// All sets of "a" and "*" before a last literal: each request of as many "a" is followed into all.
std::vector<EndpointPattern> all_ways(int depth) {
  std::vector<EndpointPattern> patterns;
  for (unsigned set = 0; set < 1U << depth; ++set) {
    std::string path;
    for (int i = 0; i < depth; ++i) path += (set >> i & 1U) != 0 ? "/a" : "/*";
    patterns.push_back(pattern("path=" + path + "/end"));
  }
  return patterns;
}

}  // namespace

TEST_CASE("find allocates nothing") {
  const EndpointIndex index({pattern("host=a.example.com port=8443 path=/v1/{id}/x methods=GET"),
                             pattern("host=*.example.com path=/v1/**"), pattern("scheme=https")});
  const Url urls[] = {url("https://a.example.com:8443/v1/%31/x"), url("https://b.example.com/v1/"),
                      url("http://other/" + repeated("%2e%2e/a/", 5000)),
                      url("http://" + repeated("a.", 120) + "example.com/")};

  const auto before = allocations();
  std::size_t found = 0;
  for (const auto& target : urls) found += index.find("GET", target).value_or(10);

  CHECK(allocations() == before);
  CHECK(found == 0 + 1 + 10 + 10);
}

TEST_CASE("long paths and hosts are matched, whatever they hold") {
  const EndpointIndex index({pattern("path=/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*"),
                             pattern("path=/a/a/a/a/b"), pattern("host=*.a.a.a"),
                             pattern("path=/x/**"), pattern("path=/a/%2F/**")});
  const auto up_and_down = [](int n) { return repeated("/a", n) + repeated("/%2e%2e", n) + "/x"; };
  const std::function<std::string(int)> paths[] = {
      [](int n) { return repeated("/a", 2 * n); }, [](int n) { return repeated("/", 4 * n); },
      up_and_down, [](int n) { return "/a/" + std::string(static_cast<std::size_t>(6 * n), 'a'); },
      [](int n) { return repeated("/%2F", n); }};
  for (const auto& path : paths) {
    const auto target = [&](int n) { return url("http://" + repeated("a.", 100) + "a" + path(n)); };
    CHECK(index.find("GET", target(50'000)) == 2);
  }
  CHECK(index.find("GET", url("http://h" + up_and_down(50'000))) == 3);
  CHECK(index.find("GET", url("http://h" + repeated("/a", 17))) == std::nullopt);
}

TEST_CASE("a host that is longer than DNS allows matches only patterns for any host") {
  const EndpointIndex index({pattern("path=/**"), pattern("host=*.b"), pattern("host=*.a.b")});
  const auto found = [&](const std::string& host) {
    return index.find("GET", url("http://" + host + "/"));
  };
  const auto longest = repeated("a.", 126) + "b";
  REQUIRE(longest.size() == 253);
  CHECK(found(longest) == 2);
  CHECK(found(longest + ".") == 2);
  CHECK(found("a" + longest) == 0);
  CHECK(found("a." + longest) == 0);
}

TEST_CASE("of all ways to read a path, the most specific wins") {
  constexpr int kDepth = 10;
  const EndpointIndex index(all_ways(kDepth));
  const auto request = "http://h" + repeated("/a", kDepth);
  CHECK_FALSE(index.find("GET", url(request + "/other")));
  CHECK(index.find("GET", url(request + "/end")) == (1U << kDepth) - 1);
  CHECK(index.matches("GET", url(request + "/end")).size() == 1U << kDepth);
}

TEST_CASE("each of many equal patterns ties with the first one") {
  const std::vector<EndpointPattern> same(1'000, pattern("host=a path=/b"));
  const EndpointIndex index(same);
  REQUIRE(index.ties().size() == same.size() - 1);
  for (std::size_t i = 1; i < same.size(); ++i) {
    CHECK(index.ties()[i - 1] == EndpointIndex::Tie{i, 0});
  }
}

TEST_CASE("many patterns that want different values are no ties" * doctest::test_suite("large")) {
  using Make = EndpointPattern (*)(const std::string& number, bool odd);
  const Make makers[] = {
      [](const std::string& number, bool) { return pattern("host=a header:X-Tenant=" + number); },
      [](const std::string& number, bool) {
        return pattern("host=a header:X-Tenant=t" + number + ".*");
      },
      [](const std::string& number, bool odd) {
        return pattern("host=a query:kind=" + std::string(odd ? "odd" : "even") +
                       " query:part=" + number);
      },
      // Ten a shard, which want different things of one another.
      [](const std::string& number, bool odd) {
        return pattern("host=a header:X-Shard=s" + number.substr(0, number.size() - 1) +
                       " query:part=" + number.back() + (odd ? " query:x=*" : " query:y=*"));
      },
      [](const std::string& number, bool) { return pattern("host=s" + number + ".*.a.test"); },
  };
  for (const auto make : makers) {
    std::vector<EndpointPattern> patterns;
    for (int i = 0; i < 1'000; ++i) patterns.push_back(make(std::to_string(i), i % 2 == 1));
    CHECK(EndpointIndex(patterns).ties().empty());
  }
}

TEST_CASE("patterns that differ in one part only are no tie, and others are") {
  const EndpointIndex index({
      pattern("host=a path=/x/{id} methods=GET,PUT"),
      pattern("host=a path=/x/* methods=POST"),
      pattern("host=a path=/x/{name} methods=PUT,POST"),
      pattern("host=A. path=/%78/*"),
      pattern("host=a path=/x/*"),
      pattern("host=b path=/x/*"),
      pattern("host=a path=/x/* port=1"),
      pattern("host=a path=/x/* scheme=http"),
      pattern("host=a path=/x/* scheme=https"),
      pattern("path=/**"),
      pattern("host=*"),
      pattern("scheme=http path=/**"),
  });

  using Tie = EndpointIndex::Tie;
  CHECK(index.ties() == std::vector<Tie>{{2, 0}, {2, 1}, {4, 3}, {10, 9}});
}
