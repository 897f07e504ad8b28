// Requests as asynchronous operations of Boost.Asio: on which executor they complete, what keeps an
// io_context running, and how they are canceled.
#include "tests/waiting.hpp"

#include <httpretry/asio.hpp>
#include <httpretry/client/event_loop.hpp>
#include <httpretry/flow/start.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>
#include <boost/asio.hpp>

#include <atomic>
#include <memory>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

Client quick_client() {
  RetryPolicy policy;
  policy.backoff = Backoff::constant(1ms);
  return Client(ClientOptions().with_policies(policy));
}

// The thread of the client's loop.
std::thread::id loop_thread(Client& client) {
  std::promise<std::thread::id> id;
  client.send_then(Request::get("no URL"),
                   [&](const Outcome&) { id.set_value(std::this_thread::get_id()); });
  return id.get_future().get();
}

}  // namespace

TEST_CASE("a callback runs on its executor, after the retries") {
  FaultServer server({{503}, {200, "good"}});
  asio::io_context io;
  Client client = quick_client();
  std::optional<Outcome> got;
  std::thread::id thread;
  async_send(client, Request::get(server.url()),
             asio::bind_executor(io.get_executor(), [&](Outcome outcome) {
               got.emplace(std::move(outcome));
               thread = std::this_thread::get_id();
             }));
  CHECK(io.run() == 1);
  REQUIRE(got);
  CHECK((*got)->body == "good");
  CHECK((*got)->history.attempts.size() == 2);
  CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("an io_context has work until the call has ended") {
  FaultServer server(Scenario{{Fault::Hang}});
  asio::io_context io;
  Client client;
  std::stop_source stop;
  std::optional<Outcome> got;
  async_send(client, Request::get(server.url()), CallOptions().with_stop(stop.get_token()),
             asio::bind_executor(io.get_executor(),
                                 [&](Outcome outcome) { got.emplace(std::move(outcome)); }));
  wait_until([&] { return server.seen().size() == 1; });
  CHECK(io.poll() == 0);
  CHECK_FALSE(io.stopped());
  stop.request_stop();
  CHECK(io.run() == 1);
  CHECK(io.stopped());
  CHECK(got.value().error().code == Errc::Canceled);
}

TEST_CASE("use_future gives a future of the outcome") {
  FaultServer server({{503}, {200, "good"}});
  Client client = quick_client();
  std::future<Outcome> future = async_send(client, Request::get(server.url()), asio::use_future);
  CHECK(future.get()->body == "good");
}

TEST_CASE("a callback without an executor does not run on the client's thread") {
  FaultServer server;
  Client client;
  const auto of_client = loop_thread(client);
  std::promise<std::thread::id> id;
  // A callback that can only be moved.
  async_send(client, Request::get(server.url()),
             [&, own = std::make_unique<int>()](const Outcome& /*outcome*/) {
               id.set_value(std::this_thread::get_id());
             });
  CHECK(id.get_future().get() != of_client);
}

TEST_CASE("what a callback throws leaves io_context::run") {
  FaultServer server;
  asio::io_context io;
  Client client;
  async_send(client, Request::get(server.url()),
             asio::bind_executor(io.get_executor(), [](const Outcome& /*outcome*/) {
               throw std::runtime_error("x");
             }));
  CHECK_THROWS_AS(io.run(), std::runtime_error);
  CHECK(io.run() == 0);
}

TEST_CASE("the end of the client completes the operation") {
  FaultServer server(Scenario{{Fault::Hang}});
  asio::io_context io;
  auto client = std::make_unique<Client>();
  std::optional<Outcome> got;
  async_send(*client, Request::get(server.url()),
             asio::bind_executor(io.get_executor(),
                                 [&](Outcome outcome) { got.emplace(std::move(outcome)); }));
  wait_until([&] { return server.seen().size() == 1; });
  client.reset();
  CHECK_FALSE(got);
  CHECK(io.run() == 1);
  CHECK(got.value().error().code == Errc::Canceled);
}

TEST_CASE("an io_context that is destroyed first calls nothing") {
  FaultServer server;
  Client client;
  auto io = std::make_unique<asio::io_context>();
  bool called = false;
  async_send(client, Request::get(server.url()),
             asio::bind_executor(io->get_executor(), [&](const Outcome&) { called = true; }));
  client.drain(1h);  // the outcome is posted, but not handled
  io.reset();
  CHECK_FALSE(called);
}

TEST_CASE("many calls complete on a strand of several threads, one at a time") {
  FaultServer server;
  asio::thread_pool pool(2);
  const auto strand = asio::make_strand(pool);
  Client client;
  int good = 0;  // without a lock: the strand is one
  for (int i = 0; i < 100; ++i) {
    async_send(client, Request::get(server.url()),
               asio::bind_executor(strand, [&](const Outcome& outcome) {
                 if (succeeded(outcome)) ++good;
               }));
  }
  pool.join();
  CHECK(good == 100);
}

TEST_CASE("a call on an EventLoop completes on the executor, too") {
  FaultServer server;
  asio::io_context io;
  const auto loop = std::make_shared<EventLoop>();
  ClientOptions options;
  options.scheduler = loop;
  Client client(options);
  bool called = false;
  async_send(client, Request::get(server.url()),
             asio::bind_executor(io.get_executor(), [&](const Outcome&) { called = true; }));
  std::atomic<bool> done = false;
  start(client.co_drain(1h), [&](const Result<DrainResult>&) { done = true; });
  loop->run_until(done);
  CHECK_FALSE(called);
  CHECK(io.run() == 1);
  CHECK(called);
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT
namespace {

asio::awaitable<int> two_requests(Client& client, std::string url) {
  Outcome first = co_await async_send(client, Request::get(url), asio::use_awaitable);
  Outcome second = co_await async_send(client, Request::get(url), asio::use_awaitable);
  co_return first.value().status + second.value().status;
}

}  // namespace

TEST_CASE("a coroutine of Asio awaits calls, and continues on its executor") {
  FaultServer server({{503}, {200}, {503}, {204}});
  asio::io_context io;
  Client client = quick_client();
  int sum = 0;
  std::thread::id thread;
  asio::co_spawn(io, two_requests(client, server.url()), [&](const std::exception_ptr&, int its) {
    sum = its;
    thread = std::this_thread::get_id();
  });
  io.run();
  CHECK(sum == 404);
  CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("what a coroutine throws reaches its completion") {
  asio::io_context io;
  Client client;
  std::exception_ptr thrown;
  asio::co_spawn(io, two_requests(client, "no URL"),
                 [&](std::exception_ptr its, int) { thrown = std::move(its); });
  io.run();
  CHECK_THROWS_AS(std::rethrow_exception(thrown), Failure);
}
#endif

#if BOOST_ASIO_VERSION >= 101900
TEST_CASE("a cancellation slot stops the call, but not if its type is total") {
  FaultServer server(Scenario{{Fault::Hang}});
  asio::io_context io;
  Client client;
  asio::cancellation_signal signal;
  std::optional<Outcome> got;
  async_send(client, Request::get(server.url()),
             asio::bind_cancellation_slot(
                 signal.slot(), asio::bind_executor(io.get_executor(), [&](Outcome outcome) {
                   got.emplace(std::move(outcome));
                 })));
  wait_until([&] { return server.seen().size() == 1; });
  signal.emit(asio::cancellation_type::total);
  CHECK(io.poll() == 0);
  CHECK_FALSE(io.stopped());
  SUBCASE("terminal") { signal.emit(asio::cancellation_type::terminal); }
  SUBCASE("all") { signal.emit(asio::cancellation_type::all); }
  io.run();
  CHECK(got.value().error().code == Errc::Canceled);
  CHECK_FALSE(signal.slot().has_handler());
}

TEST_CASE("with a slot, the stop token of the call still works") {
  FaultServer server(Scenario{{Fault::Hang}});
  asio::io_context io;
  Client client;
  asio::cancellation_signal signal;
  std::stop_source stop;
  std::optional<Outcome> got;
  async_send(client, Request::get(server.url()), CallOptions().with_stop(stop.get_token()),
             asio::bind_cancellation_slot(
                 signal.slot(), asio::bind_executor(io.get_executor(), [&](Outcome outcome) {
                   got.emplace(std::move(outcome));
                 })));
  wait_until([&] { return server.seen().size() == 1; });
  stop.request_stop();
  io.run();
  CHECK(got.value().error().code == Errc::Canceled);
}

TEST_CASE("a signal after the end of the call does nothing") {
  FaultServer server;
  asio::io_context io;
  Client client;
  asio::cancellation_signal signal;
  bool good = false;
  async_send(client, Request::get(server.url()),
             asio::bind_cancellation_slot(
                 signal.slot(), asio::bind_executor(io.get_executor(), [&](const Outcome& outcome) {
                   signal.emit(asio::cancellation_type::terminal);
                   good = succeeded(outcome);
                 })));
  io.run();
  CHECK(good);
}
#endif
