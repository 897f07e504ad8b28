// What finding an endpoint costs at 100, 1 000 and 10 000 entries, and what the index takes in
// memory: a line of JSON each.
//
//   bench_endpoints [milliseconds per measurement [most entries]]
//
// `mixed` is as policy files are: hosts with some paths each, and wildcards among them. One request
// in five has a path that no entry has, and one a host. `hosts` has one entry a
// host, `paths` all entries in one host; there, all requests match.
//
// `ns` is for 1 000 requests that come again and again, as one program sends them. For `cold_ns`
// each request is another one, drawn from all entries, so what it reads of the index is in no
// cache.
//
// `map` is no index of ours, but what these figures are compared with: each of the entries is a
// host in a std::unordered_map, and the host of a request is looked up there.
//
// `bytes` are those of the heap that the index holds once it is built: the parsed
// patterns and the hash table. The patterns it is built from are not part of it, nor are the
// policies and the text of the file.
#include <httpretry/policy/endpoint.hpp>

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace httpretry;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRequests = 1000;

std::string number(std::size_t i) { return std::to_string(i); }

// The entry with that number, and a request that it matches.
struct Workload {
  const char* name;
  EndpointPattern (*pattern)(std::size_t i);
  std::string (*url)(std::size_t i);
};

std::string mixed_host(std::size_t i) {
  return "api" + number(i / 10) + ".region" + number(i / 10 % 7) + ".example.com";
}

EndpointPattern mixed_pattern(std::size_t i) {
  EndpointPattern pattern;
  pattern.host = (i % 10 == 9 ? "*." : "") + mixed_host(i);
  pattern.path = "/v1/resource" + number(i % 10) +
                 (i % 3 == 0   ? "/{id}"
                  : i % 3 == 1 ? "/{id}/items/*"
                               : "/**");
  if (i % 4 == 0) pattern.methods = {"GET", "PUT"};
  if (i % 5 == 0) pattern.scheme = "https";
  return pattern;
}

std::string mixed_url(std::size_t i) {
  const auto kind = i / 7 % 5;
  const std::string other_host = kind == 0 ? "other-" : "";
  const auto* const other_path = kind == 1 ? "-other" : "";
  return "https://" + (i % 10 == 9 ? "x." + other_host : other_host) + mixed_host(i) +
         "/v1/resource" + number(i % 10) + other_path +
         (i % 3 == 0   ? "/12345"
          : i % 3 == 1 ? "/12345/items/678"
                       : "/a/b");
}

EndpointPattern hosts_pattern(std::size_t i) {
  EndpointPattern pattern;
  pattern.host = "host" + number(i) + ".example.com";
  return pattern;
}

std::string hosts_url(std::size_t i) {
  return "https://host" + number(i) + ".example.com/v1/things/12345";
}

EndpointPattern paths_pattern(std::size_t i) {
  EndpointPattern pattern;
  pattern.host = "api.example.com";
  pattern.path = "/v1/things" + number(i) + "/{id}";
  return pattern;
}

std::string paths_url(std::size_t i) {
  return "https://api.example.com/v1/things" + number(i) + "/12345";
}

constexpr Workload kMixed{"mixed", mixed_pattern, mixed_url};
constexpr Workload kHosts{"hosts", hosts_pattern, hosts_url};
constexpr Workload kPaths{"paths", paths_pattern, paths_url};

std::size_t heap_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;  // big blocks are mapped, and counted apart
}

// Requests that were just parsed, as they are when a policy is looked up.
class Requests {
 public:
  Requests(const Workload& load, std::size_t entries) : load_(load), entries_(entries) {}

  void draw() {
    urls_.clear();
    while (urls_.size() < kRequests) {
      urls_.push_back(Url::parse(load_.url(random_() % entries_)).value());
    }
  }

  // Nanoseconds of one look-up.
  template <class Finds>
  double look_up(const Finds& finds) {
    const auto begin = Clock::now();
    for (const auto& url : urls_) found_ += finds(url) ? 1 : 0;
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
    asked_ += urls_.size();
    return taken.count() / static_cast<double>(urls_.size());
  }

  [[nodiscard]] double found() const {
    return static_cast<double>(found_) / static_cast<double>(asked_);
  }

 private:
  const Workload& load_;
  std::size_t entries_;
  std::mt19937 random_{1};
  std::vector<Url> urls_;
  std::size_t found_ = 0;
  std::size_t asked_ = 0;
};

// The best round: others are those that the machine spent on something else.
template <class Finds>
double best(Requests& requests, const Finds& finds, Clock::duration time, bool cold) {
  requests.draw();
  auto least = requests.look_up(finds);
  const auto begin = Clock::now();
  while (Clock::now() - begin < time) {
    if (cold) requests.draw();
    least = std::min(least, requests.look_up(finds));
  }
  return least;
}

// A line for what `build` makes: a function that looks a URL up.
template <class Build>
void measure(const char* name, const Workload& load, std::size_t entries,
             std::chrono::milliseconds time, const Build& build) {
  const auto before = heap_in_use();
  const auto begin = Clock::now();
  const auto finds = build();
  const std::chrono::duration<double, std::milli> built = Clock::now() - begin;
  const auto bytes = static_cast<double>(heap_in_use() - before) / static_cast<double>(entries);

  Requests requests(load, entries);
  const auto warm = best(requests, finds, time, false);
  const auto cold = best(requests, finds, time, true);
  const bool all_match = std::string_view(name) != "mixed";
  if (all_match ? requests.found() < 1 : requests.found() < 0.5 || requests.found() > 0.7) {
    std::fprintf(stderr, "%s: %.2f of the requests matched\n", name, requests.found());
    std::exit(1);
  }
  std::printf(R"({"case": "%s", "entries": %zu, "ns": %.0f, "cold_ns": %.0f, "bytes": %.0f, )"
              R"("build_ms": %.1f})"
              "\n",
              name, entries, warm, cold, bytes, built.count());
}

void measure_index(const Workload& load, std::size_t entries, std::chrono::milliseconds time) {
  std::vector<EndpointPattern> patterns;
  for (std::size_t i = 0; i < entries; ++i) patterns.push_back(load.pattern(i));
  measure(load.name, load, entries, time, [&] {
    return [index = EndpointIndex(patterns)](const Url& url) {
      return index.find("GET", url).has_value();
    };
  });
}

void measure_map(std::size_t entries, std::chrono::milliseconds time) {
  measure("map", kHosts, entries, time, [&] {
    std::unordered_map<std::string, std::size_t> map;
    for (std::size_t i = 0; i < entries; ++i) map.emplace(*kHosts.pattern(i).host, i);
    return [map = std::move(map)](const Url& url) {
      return map.find(std::string(url.host())) != map.end();
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::chrono::milliseconds time(argc > 1 ? std::atoi(argv[1]) : 300);
  const auto most = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 10'000;
  for (const std::size_t entries : {100U, 1'000U, 10'000U}) {
    if (entries > most) break;
    for (const auto& load : {kMixed, kHosts, kPaths}) measure_index(load, entries, time);
    measure_map(entries, time);
  }
}
