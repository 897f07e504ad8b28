// An upload over HTTP/2 to a server that gives it no window.
#include "event_loops.hpp"
#include "http2_server.hpp"

#include <future>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("an upload without a window waits, and does not run its event loop again and again") {
  // The first window of a stream is 64 KiB, and this server never gives another.
  const FrameServer server([](const std::string&, int) { return FrameServer::Pieces{}; });
  const std::string large(1'000'000, 'x');
  const auto start = [&large]() -> Body::Generator {
    return [left = std::string_view(large)](std::span<char> into) mutable {
      const auto size = left.copy(into.data(), into.size());
      left.remove_prefix(size);
      return size;
    };
  };
  for (const auto& body : {Body(large), Body::generated(start)}) {
    CAPTURE(body.bytes() != nullptr);
    const auto loop = std::make_shared<EventLoop>();
    auto options = options_on(loop, {timeout(1s)});
    options.connection.ca_file = server.ca_file();
    Client client(std::move(options));
    bool over = false;
    client.send_then(Request("POST", server.url()).set_body(body), [&](const Outcome& outcome) {
      over = true;
      CHECK(timed_out(outcome));
    });
    int turns = 0;
    while (!over) {
      wait_and_turn(*loop);
      ++turns;
    }
    // It looks ten times in a second whether a window has come.
    CHECK(turns < 300);
  }
}
