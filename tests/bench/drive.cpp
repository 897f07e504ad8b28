// How libcurl is best driven, without httpretry: curl_multi_poll and perform against
// curl_multi_socket_action and epoll.
//
//   drive poll|epoll|epoll_sharded WIDTH REQUESTS
#include "measure.hpp"
#include "raw.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace bench;  // NOLINT

int main(int argc, char** argv) {
  demand(argc == 4, "usage: drive poll|epoll|epoll_sharded WIDTH REQUESTS");
  const auto width = static_cast<std::size_t>(std::atol(argv[2]));
  const long count = std::atol(argv[3]);
  demand(raise_file_limit() > static_cast<long>(width) + 100, "too few files may be open");
  curl_global_init(CURL_GLOBAL_DEFAULT);

  const Server server;
  std::vector<std::unique_ptr<RawRequest>> requests;
  for (std::size_t i = 0; i < width; ++i)
    requests.push_back(std::make_unique<RawRequest>(server.url(), std::vector<std::string>{}));

  const bool poll = std::strcmp(argv[1], "poll") == 0;
  const bool sharded = std::strcmp(argv[1], "epoll_sharded") == 0;
  const auto drive = poll ? drive_by_poll(width) : drive_by_epoll(width, sharded ? 256 : width);
  drive->run(requests, std::max(500L, 2 * static_cast<long>(width)));  // connects them all
  const auto spent = spent_in([&] { drive->run(requests, count); });
  const auto each = static_cast<double>(count);
  std::printf(R"({"case": "%s", "width": %zu, "requests": %ld, "cpu_us": %.2f, )"
              R"("per_second": %.0f, "allocations": %.2f})"
              "\n",
              argv[1], width, count, spent.cpu_us / each, each / spent.wall_us * 1e6,
              static_cast<double>(spent.allocations) / each);
}
