// A program on Boost.Asio: its coroutines await calls and continue on the io_context.
#include <httpretry/asio.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <thread>

using namespace httpretry;
using boost::asio::use_awaitable;

namespace {

boost::asio::awaitable<int> two_statuses(Client& client, std::string url) {
  Outcome first = co_await async_send(client, Request::get(url), use_awaitable);
  Outcome second = co_await async_send(client, Request::get(url), use_awaitable);
  co_return first.value().status + second.value().status;
}

}  // namespace

int main() {
  FaultServer server({{503}, {503}, {200, "good"}});
  boost::asio::io_context io;
  Client client;  // after the io_context, so that it is destroyed first
  int sum = 0;
  bool on_this_thread = false;
  boost::asio::co_spawn(io, two_statuses(client, server.url("/")),
                        [&, thread = std::this_thread::get_id()](std::exception_ptr thrown, int s) {
                          if (!thrown) sum = s;
                          on_this_thread = std::this_thread::get_id() == thread;
                        });
  io.run();  // until both calls have ended
  std::printf("the sum of two statuses: %d\n", sum);
  return sum == 400 && on_this_thread ? 0 : 1;
}
