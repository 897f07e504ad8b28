#include "peer.hpp"

#include "tests/bench/measure.hpp"

#include <cstdio>
#include <cstdlib>

namespace bench {

std::string Target::origin() const { return "http://" + host + ":" + std::to_string(port); }

void check_answer(int status, bool has_content_type, bool has_body) {
  demand(status == 200 && has_content_type && has_body,
         "a request was not answered as it should be");
}

namespace {

// http://HOST:PORT/PATH, as the runner makes it.
Target parse(const std::string& url) {
  const auto host = std::string("http://").size();
  const auto colon = url.find(':', host);
  const auto slash = url.find('/', host);
  demand(colon != std::string::npos && slash != std::string::npos && colon < slash,
         "the URL is http://HOST:PORT/PATH");
  const auto port = std::atoi(url.substr(colon + 1, slash - colon - 1).c_str());
  return {url.substr(host, colon - host), static_cast<std::uint16_t>(port), url.substr(slash)};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::demand(argc == 4, "usage: bench_peer_NAME URL WIDTH REQUESTS");
  const int width = std::atoi(argv[2]);
  const long count = std::atol(argv[3]);
  bench::raise_file_limit();
  const auto peer = bench::make_peer(bench::parse(argv[1]), width);
  peer->run(300);
  const auto spent = bench::spent_in([&] { peer->run(count); });
  const auto each = static_cast<double>(count);
  std::printf(R"({"requests": %ld, "cpu_us": %.2f, "allocations": %.2f, "per_second": %.0f})"
              "\n",
              count, spent.cpu_us / each, static_cast<double>(spent.allocations) / each,
              each / spent.wall_us * 1e6);
}
