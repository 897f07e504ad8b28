// What a look-up may cost: no allocation, and no input that makes it long.
#include "endpoint_patterns.hpp"
#include "lib/policy/endpoint_tree.hpp"
#include "tests/retry/allocations.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace httpretry;
using endpoint_test::pattern;
using endpoint_test::url;

namespace {

// How many times as many steps the work takes on `large` as on `small`.
template <class F, class Input>
double growth(F&& work, const Input& small, const Input& large) {
  const auto steps_on = [&](const Input& input) {
    const auto before = policy::steps;
    work(input);
    return static_cast<double>(policy::steps - before);
  };
  const auto base = steps_on(small);
  CHECK(base > 0);
  return steps_on(large) / base;
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
  const auto up_and_down = [](int n) { return repeated("/a", n) + repeated("/%2e%2e", n) + "/x"; };
  const std::function<std::string(int)> paths[] = {
      [](int n) { return repeated("/a", 2 * n); }, [](int n) { return repeated("/", 4 * n); },
      up_and_down, [](int n) { return "/a/" + std::string(static_cast<std::size_t>(6 * n), 'a'); },
      [](int n) { return repeated("/%2F", n); }};
  for (const auto& path : paths) {
    const auto target = [&](int n) { return url("http://" + repeated("a.", 100) + "a" + path(n)); };
    const auto find = [&](const Url& asked) { CHECK(index.find("GET", asked) == 2); };
    // Ten times as many steps for ten times the length; a hundred where it were quadratic.
    CHECK(growth(find, target(5'000), target(50'000)) < 11);
  }
  CHECK(index.find("GET", url("http://h" + up_and_down(50'000))) == 3);
  CHECK(index.find("GET", url("http://h" + repeated("/a", 17))) == std::nullopt);
}

TEST_CASE("every way to read a path is followed once at most") {
  struct Ways {
    EndpointIndex index;
    Url misses;
  };
  const auto ways = [](int depth) {
    return Ways{EndpointIndex(all_ways(depth)), url("http://h" + repeated("/a", depth) + "/other")};
  };
  const auto miss = [](const Ways& all) { CHECK_FALSE(all.index.find("GET", all.misses)); };
  // 2^12 ways beside 2^6: 64 times as many; 4096 times as many steps where each were compared with
  // each.
  CHECK(growth(miss, ways(6), ways(12)) < 80);

  const auto deep = ways(15);
  const auto& index = deep.index;
  const auto hits = url("http://h" + repeated("/a", 15) + "/end");
  CHECK(index.find("GET", hits) == (1U << 15) - 1);
  CHECK(index.matches("GET", hits).size() == 1U << 15);
}

TEST_CASE("only what a pattern says takes memory") {
  EndpointIndex::Data data;
  std::vector<EndpointPattern> patterns;
  for (int i = 0; i < 100; ++i) {
    const auto host = "host=a" + std::to_string(i);
    patterns.push_back(pattern(host));
    patterns.push_back(pattern(host + " path=/v1/{id} methods=GET,PUT scheme=https"));
  }
  for (std::uint32_t i = 0; i < patterns.size(); ++i) data.add(i, patterns[i]);
  data.finish(patterns);

  const auto roots = EndpointIndex::Data().nodes.size();
  // The host and "**"; then "v1", "{id}", two methods, and the scheme of each.
  CHECK(data.nodes.size() == roots + 100 * (2 + 2 + 2 * 2));
  CHECK(data.entries.size() == 100 * (1 + 2));
  CHECK(data.nodes.capacity() == data.nodes.size());
  CHECK(data.entries.capacity() == data.entries.size());
  CHECK(data.names.size() == 10 * 2 + 90 * 3 + std::string("v1GETPUThttps").size());
}

TEST_CASE("large arrays are on large pages, where the kernel has these") {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) return;
  constexpr std::size_t kLargePage = 2U << 20U;
  const std::vector<char, policy::LargePages<char>> large(4 * kLargePage);
  const auto inside = reinterpret_cast<std::uintptr_t>(large.data() + kLargePage);

  std::ifstream file("/proc/self/smaps");
  auto here = false;
  std::string flags;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin <= inside && inside < end;
    } else if (here && line.starts_with("VmFlags:")) {
      flags = line + ' ';
    }
  }
  CAPTURE(flags);
  CHECK(flags.find(" hg ") != flags.npos);
}

TEST_CASE("ties among very many are found without comparing all pairs") {
  const auto same = [](std::size_t count) {
    return std::vector<EndpointPattern>(count, pattern("host=a path=/b"));
  };
  const auto ties = [](const std::vector<EndpointPattern>& patterns) {
    CHECK(EndpointIndex(patterns).ties().size() == patterns.size() - 1);
  };
  // Ten times as many steps for ten times as many; a hundred where all pairs were compared.
  CHECK(growth(ties, same(5'000), same(50'000)) < 11);
}

TEST_CASE("very many that want different things are told apart without comparing all pairs") {
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
    const auto all = [&](int count) {
      std::vector<EndpointPattern> patterns;
      for (int i = 0; i < count; ++i) patterns.push_back(make(std::to_string(i), i % 2 == 1));
      return patterns;
    };
    const auto none = [](const std::vector<EndpointPattern>& patterns) {
      CHECK(EndpointIndex(patterns).ties().empty());
    };
    CHECK(growth(none, all(300), all(3'000)) < 15);
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
