// A program with a window, whose thread must never block. Calls run on the client's thread, and
// their callbacks only post events to the window's thread.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

using namespace httpretry;

namespace {

// Stands for the event queue of a toolkit: QMetaObject::invokeMethod, g_idle_add, PostMessage.
class Events {
 public:
  void post(std::function<void()> event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_one();
  }
  void run_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !events_.empty(); });
    const auto event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    event();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> events_;
};

struct Window {
  std::string text = "loading", pictures = "loading";
  [[nodiscard]] bool loaded() const { return text != "loading" && pictures != "loading"; }
};

std::string text_of(const Outcome& outcome) {
  return outcome ? outcome->body : std::string(to_string(outcome.error().code));
}

}  // namespace

int main() {
  Scenario scenario;
  scenario.paths["/text"] = Script({{503}, {503}, {200, "the text"}});
  scenario.paths["/pictures"] = Script({Fault::Hang});
  FaultServer server(scenario);
  Events events;  // must outlive the client, whose callbacks post to it
  Window window;  // used by this thread only
  Client client;

  client.send_then(Request::get(server.url("/text")), [&](const Outcome& outcome) {
    events.post([&, text = text_of(outcome)] { window.text = text; });
  });
  std::stop_source cancel;  // the cancel button for the pictures
  client.send_then(
      Request::get(server.url("/pictures")),
      [&](const Outcome& outcome) {
        events.post([&, text = text_of(outcome)] { window.pictures = text; });
      },
      CallOptions().with_stop(cancel.get_token()));

  while (!window.loaded()) {
    events.run_one();
    std::printf("text: %s, pictures: %s\n", window.text.c_str(), window.pictures.c_str());
    if (window.text != "loading") cancel.request_stop();  // the user cancels the pictures
  }
  return window.text == "the text" && window.pictures == "canceled" ? 0 : 1;
}
