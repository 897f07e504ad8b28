// What one GET costs, through each door and each chain, beside libcurl used by hand.
//
//   one_get CASE REQUESTS [WIDTH]    WIDTH in flight together: of raw_*, callback* and coroutine
//   one_get --list
#include "measure.hpp"
#include "passing.hpp"
#include "raw.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT

namespace {

int width = 1;

const std::vector<std::pair<std::string, std::string>> kFiveHeaders{
    {"Accept", "application/json"},
    {"User-Agent", "shop-frontend/4.2 (linux; x86_64)"},
    {"Authorization", "Bearer 0123456789abcdef0123456789abcdef0123456789abcdef"},
    {"X-Request-Id", "7f3c9a52-1d0e-4b8a-9c61-0f2f6d5f1e77"},
    {"Accept-Language", "en-GB, en;q=0.8"}};

MiddlewarePtr plain() {
  return on_request("plain", [](Request&, Call&) {});
}
MiddlewarePtr quick_retry() {
  RetryPolicy policy;
  policy.backoff = Backoff{};
  policy.backoff.kind = Backoff::Kind::None;
  return retry(std::move(policy));
}
MiddlewarePtr attempt_limit() { return timeout(std::chrono::seconds(2)); }

void demand_good(const Outcome& outcome) {
  demand(outcome && outcome->status == 200 && !outcome->body.empty() &&
             outcome->headers.contains("Content-Type"),
         "a request was not answered as it should be");
}

Request with_headers(const std::string& url) {
  auto request = Request::get(url);
  for (const auto& [name, value] : kFiveHeaders) request.add_header(name, value);
  return request;
}

using Work = std::function<void(long count)>;

// --- by hand ---

std::vector<std::string> five_lines() {
  std::vector<std::string> lines;
  for (const auto& [name, value] : kFiveHeaders) lines.push_back(name + ": " + value);
  return lines;
}

Work raw_plain(const std::string& url, const std::vector<std::string>& lines) {
  auto request = std::make_shared<RawRequest>(url, lines, Options::Plain);
  return [=](long count) { perform(*request, count); };
}

Work raw(const std::string& url, const std::vector<std::string>& lines, bool poll) {
  const auto together = static_cast<std::size_t>(width);
  auto requests = std::make_shared<std::vector<std::unique_ptr<RawRequest>>>();
  for (std::size_t i = 0; i < together; ++i)
    requests->push_back(std::make_unique<RawRequest>(url, lines));
  // Past that a multi's look-up of a connection is what costs.
  std::shared_ptr<Drive> drive =
      poll ? drive_by_poll(together)
           : drive_by_epoll(together, std::min<std::size_t>(together, 256));
  return [=](long count) { drive->run(*requests, count); };
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  demand(value != nullptr, "the cases with TLS need BENCH_TLS_URL and BENCH_CA_FILE");
  return value;
}

Work raw_tls() {
  auto requests = std::make_shared<std::vector<std::unique_ptr<RawRequest>>>();
  requests->push_back(
      std::make_unique<RawRequest>(from_environment("BENCH_TLS_URL"), std::vector<std::string>()));
  requests->front()->trust(from_environment("BENCH_CA_FILE"));
  std::shared_ptr<Drive> drive = drive_by_poll(1);
  return [=](long count) { drive->run(*requests, count); };
}

// --- through a Client ---

// As `Client client;`.
std::shared_ptr<Client> default_client() { return std::make_shared<Client>(); }

Work blocking_with(std::shared_ptr<Client> client, std::function<Request()> request) {
  return [=](long count) {
    for (long i = 0; i < count; ++i) demand_good(client->send(request()));
  };
}

Work blocking(std::vector<MiddlewarePtr> chain, std::function<Request()> request) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  return blocking_with(std::make_shared<Client>(std::move(options)), std::move(request));
}

Work blocking(std::vector<MiddlewarePtr> chain, Request request) {
  return blocking(std::move(chain), [request] { return request; });
}

// `width` calls at a time, each begun in the callback of the one before.
class Callbacks {
 public:
  Callbacks(Client& client, const Request& request, long count)
      : client_(client), request_(request), to_start_(count), to_end_(count) {}
  void run() {
    for (int i = 0; i < width; ++i) next();
    for (auto left = to_end_.load(); left > 0; left = to_end_.load()) to_end_.wait(left);
  }

 private:
  void next() {
    if (to_start_.fetch_sub(1) <= 0) return;
    client_.send_then(request_, [this](Outcome outcome) {
      demand_good(outcome);
      next();
      if (to_end_.fetch_sub(1) == 1) to_end_.notify_one();
    });
  }
  Client& client_;
  const Request& request_;
  std::atomic<long> to_start_;
  std::atomic<long> to_end_;
};

Work by_callback(std::shared_ptr<Client> client, const Request& request) {
  return [=](long count) { Callbacks(*client, request, count).run(); };
}

class Coroutines {
 public:
  Coroutines(Client& client, const Request& request, long count)
      : client_(client), request_(request), to_start_(count), to_end_(width) {}
  void run() {
    for (int i = 0; i < width; ++i) carry();
    for (auto left = to_end_.load(); left > 0; left = to_end_.load()) to_end_.wait(left);
  }

 private:
  detail::Detached carry() {
    while (to_start_.fetch_sub(1) > 0) {
      Outcome outcome = co_await client_.co_send(request_);
      demand_good(outcome);
    }
    if (to_end_.fetch_sub(1) == 1) to_end_.notify_one();
  }
  Client& client_;
  const Request& request_;
  std::atomic<long> to_start_;
  std::atomic<int> to_end_;
};

Work by_coroutine(std::vector<MiddlewarePtr> chain, const Request& request) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  auto client = std::make_shared<Client>(std::move(options));
  return [=](long count) { Coroutines(*client, request, count).run(); };
}

using Make = std::function<Work(const Server&)>;

const std::map<std::string, Make>& cases() {
  static const auto plain_get = [](const Server& server) { return Request::get(server.url()); };
  static const std::map<std::string, Make> all{
      {"raw_plain", [](const Server& s) { return raw_plain(s.url(), {}); }},
      {"raw_plain_headers5", [](const Server& s) { return raw_plain(s.url(), five_lines()); }},
      {"raw_poll", [](const Server& s) { return raw(s.url(), {}, true); }},
      {"raw_epoll", [](const Server& s) { return raw(s.url(), {}, false); }},
      {"raw_poll_headers5", [](const Server& s) { return raw(s.url(), five_lines(), true); }},
      {"get", [](const Server& s) { return blocking({}, plain_get(s)); }},
      {"get_from_text",
       [](const Server& s) { return blocking({}, [url = s.url()] { return Request::get(url); }); }},
      {"get_passing1", [](const Server& s) { return blocking({passing()}, plain_get(s)); }},
      {"get_passing5",
       [](const Server& s) {
         return blocking({passing(), passing(), passing(), passing(), passing()}, plain_get(s));
       }},
      {"get_on_request1", [](const Server& s) { return blocking({plain()}, plain_get(s)); }},
      {"get_on_request5",
       [](const Server& s) {
         return blocking({plain(), plain(), plain(), plain(), plain()}, plain_get(s));
       }},
      {"get_retry", [](const Server& s) { return blocking({retry()}, plain_get(s)); }},
      {"get_default_chain",
       [](const Server& s) {
         return blocking_with(default_client(), [get = plain_get(s)] { return get; });
       }},
      {"get_default_chain_from_text",
       [](const Server& s) {
         return blocking_with(default_client(), [url = s.url()] { return Request::get(url); });
       }},
      {"raw_poll_tls", [](const Server&) { return raw_tls(); }},
      {"get_default_chain_tls",
       [](const Server&) {
         ClientOptions options;
         options.connection.ca_file = from_environment("BENCH_CA_FILE");
         return blocking_with(
             std::make_shared<Client>(std::move(options)),
             [get = Request::get(from_environment("BENCH_TLS_URL"))] { return get; });
       }},
      {"get_headers5", [](const Server& s) { return blocking({}, with_headers(s.url())); }},
      {"get_headers5_middlewares5",
       [](const Server& s) {
         return blocking({passing(), redirect(), retry(), attempt_limit(), passing()},
                         with_headers(s.url()));
       }},
      {"get_503_then_200",
       [](const Server& s) { return blocking({quick_retry()}, Request::get(s.url("/flaky"))); }},
      {"callback",
       [](const Server& s) {
         return by_callback(std::make_shared<Client>(Client::bare()), plain_get(s));
       }},
      {"callback_default_chain",
       [](const Server& s) { return by_callback(default_client(), plain_get(s)); }},
      {"coroutine", [](const Server& s) { return by_coroutine({}, plain_get(s)); }},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--list") {
    for (const auto& [name, make] : cases()) std::printf("%s\n", name.c_str());
    return 0;
  }
  demand((argc == 3 || argc == 4) && cases().contains(argv[1]),
         "usage: one_get CASE REQUESTS [WIDTH], one_get --list");
  const long count = std::atol(argv[2]);
  if (argc == 4) width = std::atoi(argv[3]);
  raise_file_limit();
  curl_global_init(CURL_GLOBAL_DEFAULT);
  const Server server;
  const auto work = cases().at(argv[1])(server);
  work(300 + 2 * width);  // connections, free lists
  const auto spent = spent_in([&] { work(count); });
  const auto each = static_cast<double>(count);
  std::printf(R"({"case": "%s", "width": %d, "requests": %ld, "cpu_us": %.2f, )"
              R"("allocations": %.2f, "per_second": %.0f})"
              "\n",
              argv[1], width, count, spent.cpu_us / each,
              static_cast<double>(spent.allocations) / each, each / spent.wall_us * 1e6);
}
