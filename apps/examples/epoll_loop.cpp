// A program that waits for all events in one place, with epoll. The same loop drives the calls of
// its client, so everything runs on one thread.
#include <httpretry/client/event_loop.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

using namespace httpretry;

namespace {

void watch(int epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

// Returns a timer that is readable every millisecond. It stands for the program's other work.
int make_ticks() {
  const int ticks = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
  const itimerspec every_millisecond{.it_interval = millisecond, .it_value = millisecond};
  ::timerfd_settime(ticks, 0, &every_millisecond, nullptr);
  return ticks;
}

Task<int> two_requests(Client& client, std::string url) {
  Outcome first = co_await client.co_send(Request::get(url));
  Outcome second = co_await client.co_send(Request::get(url));
  co_return (first ? first->status : 0) + (second ? second->status : 0);
}

}  // namespace

int main() {
  FaultServer server({{503}, {503}, {200, "good"}});
  const std::string url = server.url("/");
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int ticks = make_ticks();

  const auto loop = std::make_shared<EventLoop>();
  ClientOptions options;
  options.scheduler = loop;
  Client client(options);

  // Both callbacks run in loop->turn(), on this thread.
  int running = 2;
  bool good = true;
  client.send_then(Request::get(url), [&](const Outcome& outcome) {
    std::printf("%s\n", describe(outcome).c_str());
    good &= succeeded(outcome);
    --running;
  });
  start(two_requests(client, url), [&](const Result<int>& sum) {
    good &= sum.has_value();  // it is an Error if the task throws
    if (sum) std::printf("the sum of two statuses: %d\n", *sum);
    --running;
  });

  watch(epoll, loop->descriptor());
  watch(epoll, ticks);
  std::uint64_t all_ticks = 0;
  // Runs until both calls have ended. At least one tick must also arrive, to show that the
  // program does its other work in the meantime.
  while (running > 0 || all_ticks == 0) {
    const auto time_left = loop->time_left();  // in milliseconds, until the loop has work to do
    constexpr int kNoTimeout = -1;
    epoll_event event{};
    ::epoll_wait(epoll, &event, 1, time_left ? static_cast<int>(time_left->count()) : kNoTimeout);
    std::uint64_t count = 0;
    if (event.data.fd == ticks && ::read(ticks, &count, sizeof count) > 0) all_ticks += count;
    loop->turn();
  }
  std::printf("the program counted to %s in the meantime\n", std::to_string(all_ticks).c_str());
  ::close(ticks);
  ::close(epoll);
  return good ? 0 : 1;
}
