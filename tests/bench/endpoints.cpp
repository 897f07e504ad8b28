// What finding an endpoint costs at 10, 1 000 and 100 000 entries, and what they take in memory: a
// line of JSON each.
//
//   bench_endpoints [milliseconds per measurement]
//
// `mixed` is as policy files are: hosts with some paths each, wildcards among them, and requests
// that visit all of them in random order, so that caches help no more than they would. `hosts` has
// one entry a host, `paths` all entries in one host.
#include <httpretry/policy/endpoint.hpp>

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace httpretry;

namespace {

using Clock = std::chrono::steady_clock;

struct Workload {
  std::vector<EndpointPattern> patterns;
  std::vector<std::string> urls;
};

std::string number(std::size_t i) { return std::to_string(i); }

Workload mixed(std::size_t entries) {
  Workload load;
  for (std::size_t i = 0; i < entries; ++i) {
    const auto host = "api" + number(i / 10) + ".region" + number(i / 10 % 7) + ".example.com";
    const auto resource = "/v1/resource" + number(i % 10);
    EndpointPattern pattern;
    pattern.host = i % 10 == 9 ? "*." + host : host;
    pattern.path = resource + (i % 3 == 0 ? "/{id}" : i % 3 == 1 ? "/{id}/items/*" : "/**");
    if (i % 4 == 0) pattern.methods = {"GET", "PUT"};
    if (i % 5 == 0) pattern.scheme = "https";
    load.patterns.push_back(pattern);
    load.urls.push_back("https://" + (i % 10 == 9 ? "x." + host : host) + resource +
                        (i % 3 == 0   ? "/12345"
                         : i % 3 == 1 ? "/12345/items/678"
                                      : "/a/b"));
  }
  return load;
}

Workload hosts(std::size_t entries) {
  Workload load;
  for (std::size_t i = 0; i < entries; ++i) {
    load.patterns.emplace_back().host = "host" + number(i) + ".example.com";
    load.urls.push_back("https://host" + number(i) + ".example.com/v1/things/12345");
  }
  return load;
}

Workload paths(std::size_t entries) {
  Workload load;
  for (std::size_t i = 0; i < entries; ++i) {
    auto& pattern = load.patterns.emplace_back();
    pattern.host = "api.example.com";
    pattern.path = "/v1/things" + number(i) + "/{id}";
    load.urls.push_back("https://api.example.com/v1/things" + number(i) + "/12345");
  }
  return load;
}

std::size_t heap_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;  // big blocks are mapped, and counted apart
}

void measure(const char* name, const Workload& load, std::chrono::milliseconds budget) {
  const auto before = heap_in_use();
  const auto begin = Clock::now();
  const EndpointIndex index(load.patterns);
  const auto built = Clock::now() - begin;
  const auto bytes = heap_in_use() - before;

  // More URLs than this would measure the caches' misses on the URLs.
  std::mt19937 random(1);
  std::vector<Url> urls;
  for (int i = 0; i < 1000; ++i) {
    urls.push_back(Url::parse(load.urls[random() % load.urls.size()]).value());
  }
  std::size_t found = 0;
  std::size_t rounds = 0;
  // The best round: others are those that the machine spent on something else.
  auto best = Clock::duration::max();
  const auto start = Clock::now();
  for (auto now = start; now - start < budget; ++rounds) {
    for (const auto& url : urls) found += index.find("GET", url).has_value() ? 1 : 0;
    best = std::min(best, Clock::now() - now);
    now = Clock::now();
  }
  if (found != rounds * urls.size()) {
    std::fprintf(stderr, "%s: not all were found\n", name);
    std::exit(1);
  }
  const auto nanoseconds = std::chrono::duration<double, std::nano>(best).count();

  const auto entries = static_cast<double>(load.patterns.size());
  std::printf(R"({"case": "%s", "entries": %.0f, "ns": %.0f, "bytes": %.0f, "build_ms": %.1f})"
              "\n",
              name, entries, nanoseconds / static_cast<double>(urls.size()),
              static_cast<double>(bytes) / entries,
              std::chrono::duration<double, std::milli>(built).count());
}

}  // namespace

int main(int argc, char** argv) {
  const std::chrono::milliseconds budget(argc > 1 ? std::atoi(argv[1]) : 300);
  for (const std::size_t entries : {10U, 1'000U, 100'000U}) {
    measure("mixed", mixed(entries), budget);
    measure("hosts", hosts(entries), budget);
    measure("paths", paths(entries), budget);
  }
}
