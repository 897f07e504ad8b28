// A program on Boost.Asio. Its io_context drives the calls of a client, so everything runs on the
// thread that calls io_context::run.
#include <httpretry/client/event_loop.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

using namespace httpretry;
using namespace std::chrono_literals;
using boost::system::error_code;

namespace {

// AsioDriver drives an EventLoop in the handlers of an io_context while it exists.
class AsioDriver {
 public:
  AsioDriver(boost::asio::io_context& io, std::shared_ptr<EventLoop> loop)
      : loop_(std::move(loop)), descriptor_(io, loop_->descriptor()), timer_(io) {
    wait_for_descriptor();
    wait_for_time();
  }
  ~AsioDriver() { descriptor_.release(); }  // it belongs to the EventLoop
  AsioDriver(const AsioDriver&) = delete;
  AsioDriver& operator=(const AsioDriver&) = delete;

 private:
  void wait_for_descriptor() {
    descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                           [this](const error_code& canceled) {
                             if (canceled) return;
                             turn();
                             wait_for_descriptor();
                           });
  }
  void wait_for_time() {
    const auto left = loop_->time_left();
    timer_.expires_after(left.value_or(1h));  // cancels the previous wait
    timer_.async_wait([this](const error_code& canceled) {
      if (!canceled) turn();
    });
  }
  void turn() {
    loop_->turn();
    wait_for_time();
  }

  std::shared_ptr<EventLoop> loop_;
  boost::asio::posix::stream_descriptor descriptor_;
  boost::asio::steady_timer timer_;
};

Task<int> two_requests(Client& client, std::string url) {
  Outcome first = co_await client.co_send(Request::get(url));
  Outcome second = co_await client.co_send(Request::get(url));
  co_return (first ? first->status : 0) + (second ? second->status : 0);
}

}  // namespace

int main() {
  FaultServer server({{503}, {503}, {200, "good"}});
  boost::asio::io_context io;
  const auto loop = std::make_shared<EventLoop>();
  const AsioDriver driver(io, loop);
  ClientOptions options;
  options.scheduler = loop;
  Client client(options);

  // The program's own work continues on the same thread.
  int running = 2;
  boost::asio::steady_timer other(io, 1ms);
  other.async_wait([&](const error_code&) {
    if (--running == 0) io.stop();
  });

  int sum = 0;
  bool on_this_thread = false;
  start(two_requests(client, server.url("/")),
        [&, thread = std::this_thread::get_id()](const Result<int>& result) {
          sum = *result;
          on_this_thread = std::this_thread::get_id() == thread;
          if (--running == 0) io.stop();
        });
  io.run();
  std::printf("the sum of two statuses: %d\n", sum);
  return sum == 400 && on_this_thread ? 0 : 1;
}
