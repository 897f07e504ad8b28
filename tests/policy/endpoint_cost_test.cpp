// What a look-up may cost: no allocation, and no input that makes it long.
#include "allocations.hpp"
#include "endpoint_patterns.hpp"

#include <httpretry/endpoint.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>

using namespace httpretry;
using endpoint_test::pattern;
using endpoint_test::url;

namespace {

template <class F>
auto seconds_of(F&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

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

TEST_CASE("long paths and hosts are read once, whatever they hold") {
  const EndpointIndex index({pattern("path=/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*"),
                             pattern("path=/a/a/a/a/b"), pattern("host=*.a.a.a"),
                             pattern("path=/x/**"), pattern("path=/a/%2F/**")});
  const std::string paths[] = {repeated("/a", 100'000), repeated("/", 200'000),
                               repeated("/a", 50'000) + repeated("/%2e%2e", 50'000) + "/x",
                               "/a/" + std::string(300'000, 'a'), repeated("/%2F", 60'000)};
  for (const auto& path : paths) {
    const auto target = url("http://" + repeated("a.", 100) + "a" + path);
    std::optional<std::size_t> found;
    // Milliseconds; generous, as a quadratic time would be minutes.
    CHECK(seconds_of([&] { found = index.find("GET", target); }) < 1.0);
    CHECK(found == 2);
  }
  CHECK(index.find("GET", url("http://h" + paths[2])) == 3);
  CHECK(index.find("GET", url("http://h" + repeated("/a", 17))) == std::nullopt);
}

TEST_CASE("every way to read a path is followed once at most") {
  const EndpointIndex index(all_ways(15));
  const auto misses = url("http://h" + repeated("/a", 15) + "/other");
  const auto hits = url("http://h" + repeated("/a", 15) + "/end");

  // 2^15 ways of 16 steps: a few ms.
  CHECK(seconds_of([&] { CHECK_FALSE(index.find("GET", misses)); }) < 2.0);
  CHECK(index.find("GET", hits) == (1U << 15) - 1);
  CHECK(index.matches("GET", hits).size() == 1U << 15);
}

TEST_CASE("ties among very many are found without comparing all pairs") {
  std::vector<EndpointPattern> patterns(100'000, pattern("host=a path=/b"));

  std::size_t ties = 0;
  const auto seconds = seconds_of([&] { ties = EndpointIndex(patterns).ties().size(); });

  CHECK(ties == patterns.size() - 1);
  CHECK(seconds < 10.0);
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
