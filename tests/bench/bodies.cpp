// What bodies cost, large and small, one after the other over one connection.
//
//   bodies raw|memory|sink URL BYTES REQUESTS
//
// raw: libcurl by hand, into a string that has room for all of it. sink: to a function that counts.
#include "measure.hpp"
#include "raw.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT

namespace {

std::function<void()> raw(const std::string& url, std::size_t size) {
  auto requests = std::make_shared<std::vector<std::unique_ptr<RawRequest>>>();
  requests->push_back(std::make_unique<RawRequest>(url, std::vector<std::string>{}));
  if (size >= 1U << 20U) {
    curl_easy_setopt(requests->front()->handle(), CURLOPT_BUFFERSIZE, 512L * 1024);
  }
  std::shared_ptr<Drive> drive = drive_by_poll(1);
  return [=] { drive->run(*requests, 1); };
}

std::function<void()> through_client(const std::string& url, std::size_t size, bool to_sink) {
  ClientOptions options;
  options.middlewares = {retry()};
  options.connection.max_body = size;
  auto client = std::make_shared<Client>(options);
  auto seen = std::make_shared<std::size_t>();
  auto request = Request::get(url);
  if (to_sink) {
    request.edit_options().sink = pass_to([seen](std::string_view bytes) {
      *seen += bytes.size();
      return true;
    });
  }
  return [=] {
    *seen = 0;
    const auto outcome = client->send(request);
    demand(outcome && outcome->status == 200, "a request was not answered as it should be");
    demand((to_sink ? *seen : outcome->body.size()) == size, "a body came short");
  };
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int argc, char** argv) {
  demand(argc == 5, "usage: bodies raw|memory|sink URL BYTES REQUESTS");
  const std::string how = argv[1];
  const auto size = static_cast<std::size_t>(std::atoll(argv[3]));
  const long count = std::atol(argv[4]);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  const auto get = how == "raw" ? raw(argv[2], size) : through_client(argv[2], size, how == "sink");
  get();
  const auto spent = spent_in([&] {
    for (long i = 0; i < count; ++i) get();
  });
  const auto each = static_cast<double>(count);
  std::printf(R"({"case": "%s", "bytes": %zu, "cpu_us": %.1f, "mib_per_second": %.0f, )"
              R"("peak_kib": %ld})"
              "\n",
              how.c_str(), size, spent.cpu_us / each,
              static_cast<double>(size) * each / spent.wall_us * 1e6 / (1 << 20), peak_kib());
}
