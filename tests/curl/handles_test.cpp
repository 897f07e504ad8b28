// libcurl's easy handles: a loop keeps those of a burst of calls for the next one, and frees them
// when it is idle.
#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>

#include <curl/curl.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

using namespace httpretry;

namespace {

// The handles of the loop's thread and of all others, counted by the functions below.
std::mutex mutex;
std::condition_variable changed;
int created = 0;
int freed = 0;

void count(int& counter) {
  const std::scoped_lock lock(mutex);
  ++counter;
  changed.notify_all();
}

int counted(const int& counter) {
  const std::scoped_lock lock(mutex);
  return counter;
}

}  // namespace

// In place of libcurl's, for all of this program.
extern "C" CURL* curl_easy_init() {
  static const auto real = reinterpret_cast<CURL* (*)()>(dlsym(RTLD_NEXT, "curl_easy_init"));
  count(created);
  return real();
}
extern "C" void curl_easy_cleanup(CURL* easy) {
  static const auto real = reinterpret_cast<void (*)(CURL*)>(dlsym(RTLD_NEXT, "curl_easy_cleanup"));
  count(freed);
  real(easy);
}

namespace {

constexpr int kWidth = 32;

// Sends this many requests from a callback, so that all are in flight before the first response is
// read. Returns when all have ended.
void send_burst(Client& client, const Request& request) {
  std::atomic<int> left = kWidth + 1;
  const auto end = [&](const Outcome& outcome) {
    CHECK(outcome.has_value());
    if (--left == 0) left.notify_one();
  };
  client.send_then(request, [&](const Outcome& outcome) {
    for (int i = 0; i < kWidth; ++i) client.send_then(request, end);
    end(outcome);
  });
  for (int now = left; now > 0; now = left) left.wait(now);
}

}  // namespace

TEST_CASE("a burst of calls uses the handles of the one before, and an idle loop keeps few") {
  FaultServer server;
  ClientOptions options;
  options.middlewares = {};
  Client client(options);
  const auto request = Request::get(server.url());
  const int before = counted(created);
  const int freed_before = counted(freed);

  send_burst(client, request);
  const int handles = counted(created) - before;
  CHECK(handles >= kWidth);
  for (int i = 0; i < 5; ++i) send_burst(client, request);
  CHECK(counted(created) - before == handles);

  std::unique_lock lock(mutex);
  const bool few_left = changed.wait_for(lock, std::chrono::minutes(1),
                                         [&] { return freed - freed_before >= handles / 2; });
  CHECK(few_left);
}
