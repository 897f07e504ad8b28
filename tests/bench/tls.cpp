// What new, verified TLS connections cost, and what a pooled one holds: as many requests at once,
// to a server that is slow to end its responses, so that each has a connection of its own.
//
//   tls plain|tuned|client URL COUNT CA_FILE
//
// plain: libcurl by hand with nothing set but that file. tuned: without the folder of certificates
// that Debian's has built in, so that the multi keeps what it has read of the file.
#include "measure.hpp"

#include <httpretry/client/client.hpp>

#include <curl/curl.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT

namespace {

std::size_t swallow(char* /*data*/, std::size_t size, std::size_t count, void* /*user*/) {
  return size * count;
}

class ByHand {
 public:
  ByHand(std::string ca_file, bool tuned) : ca_file_(std::move(ca_file)), tuned_(tuned) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1000L);
  }
  ~ByHand() { curl_multi_cleanup(multi_); }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;
  void get(const std::string& url, long count) {
    std::vector<CURL*> easies;
    for (long i = 0; i < count; ++i) {
      CURL* easy = easies.emplace_back(curl_easy_init());
      curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
      curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file_.c_str());
      if (tuned_) curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
      curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
      curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &swallow);
      curl_multi_add_handle(multi_, easy);
    }
    for (int running = 1; running > 0;) {
      demand(curl_multi_perform(multi_, &running) == CURLM_OK, "curl_multi_perform");
      if (running > 0) curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    for (CURL* easy : easies) {
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      demand(status == 200, "a request failed");
      curl_multi_remove_handle(multi_, easy);
      curl_easy_cleanup(easy);
    }
  }

 private:
  std::string ca_file_;
  bool tuned_;
  CURLM* multi_ = curl_multi_init();
};

void through(Client& client, const std::string& url, long count) {
  std::atomic<long> left = count;
  for (long i = 0; i < count; ++i) {
    auto request = Request::get(url);
    request.edit_options().http_version = HttpVersion::Http1;
    client.send_then(std::move(request), [&](const Outcome& outcome) {
      demand(outcome && outcome->status == 200, "a request failed");
      if (left.fetch_sub(1) == 1) left.notify_one();
    });
  }
  for (auto now = left.load(); now > 0; now = left.load()) left.wait(now);
}

template <class Get>
void measure(const char* name, long count, const Get& get) {
  get(1);  // reads the certificates where they are kept
  let_rest();
  const auto heap = heap_bytes();
  const auto spent = spent_in([&] { get(count); });
  let_rest();
  const auto each = static_cast<double>(count - 1);  // one of them has the first one's connection
  std::printf(R"({"case": "%s", "connections": %ld, "cpu_us": %.0f, "heap_bytes": %.0f})"
              "\n",
              name, count - 1, spent.cpu_us / each,
              static_cast<double>(heap_bytes() - heap) / each);
}

}  // namespace

int main(int argc, char** argv) {
  demand(argc == 5, "usage: tls plain|tuned|client URL COUNT CA_FILE");
  const std::string url = argv[2];
  const long count = std::atol(argv[3]) + 1;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::string how = argv[1];
  if (how != "client") {
    ByHand by_hand(argv[4], how == "tuned");
    return measure(argv[1], count, [&](long n) { by_hand.get(url, n); }), 0;
  }
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = argv[4];
  Client client(options);
  measure("client", count, [&](long n) { through(client, url, n); });
}
