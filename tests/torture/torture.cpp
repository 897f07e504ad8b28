// For each resource and for k = 1, 2, … has the k-th request for it fail, in a process of its own:
// every call must end once, what was sent be told, and no memory and no descriptor stay behind.
//
//   torture [RESOURCE [K]]     all of them; those of one resource; one, in this very process
#include "failures.hpp"

#include "lib/core/curl/poller.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/client/event_loop.hpp>
#include <httpretry/curl/cookies.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>
#include <tests/open_files.hpp>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace httpretry::torture;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kCalls = 14;
constexpr std::size_t kRounds = 64;  // until a round has the place of an earlier one
constexpr unsigned kPatience = 20;   // seconds until a call counts as one that never ends

// What the server saw, in memory that all the processes share.
struct Sights {
  std::array<char, 64> folder;  // for what is written
  std::array<char, 256> ca_file;
  std::atomic<int> tls_port;
  std::atomic<int> port;  // written last
  // Of each round its own: what the server reads late does not count for the next.
  std::array<std::array<std::atomic<int>, kCalls>, kRounds> requests;
  std::atomic<std::size_t> round;
  std::atomic<int> wrong;  // requests that are not as they were meant
};

struct Meant {
  const char* method;
  const char* body;
};
constexpr std::array<Meant, kCalls> kMeant{{{"GET", ""},
                                            {"POST", "unsafe"},
                                            {"GET", ""},
                                            {"GET", ""},
                                            {"GET", ""},
                                            {"PATCH", "unsafe, too"},
                                            {"PURGE", ""},
                                            {"GET", ""},
                                            {"GET", ""},
                                            {"GET", ""},
                                            {"PATCH", "unsafe and secret"},
                                            {"GET", ""},
                                            {"PATCH", "unsafe on an EventLoop"},
                                            {"GET", ""}}};

[[noreturn]] void fail(const std::string& text) {
  no_failures();
  std::fprintf(stderr, "torture: %s\n", text.c_str());
  std::abort();
}

// --- the server, in a process of its own: its allocations are not ours ---

void serve(Sights& sights) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Scenario scenario;
  Script failing_first({Step(503, "busy"), Step(200, "ok")});
  failing_first.then = Then::Restart;
  scenario.paths["/again"] = failing_first;
  scenario.paths["/elsewhere"] = Script({Step(302, Headers{{"Location", "/there"}})});
  Step zipped(200, std::string(5000, 'z'));
  zipped.gzip = true;
  scenario.paths["/zipped"] = Script({zipped});
  scenario.paths["/cookie"] = Script({Step(200, Headers{{"Set-Cookie", "a=b"}}, "ok")});
  FaultServerOptions options;
  options.max_seen = 1;
  options.on_request = [&sights](const SeenRequest& seen) {
    const auto call = seen.headers.get("X-Call");
    if (!call) {
      ++sights.wrong;
      return;
    }
    const auto id = std::stoul(std::string(*call));
    const auto number = id % kCalls;
    ++sights.requests[id / kCalls % kRounds][number];
    const auto& meant = kMeant[number];
    const bool whole = !seen.body_complete || seen.body == meant.body;
    if (seen.method != meant.method || !whole) ++sights.wrong;
  };
  FaultServer server(scenario, options);
  options.tls = Tls::Good;
  FaultServer secure(scenario, options);
  std::snprintf(sights.ca_file.data(), sights.ca_file.size(), "%s", secure.ca_file().c_str());
  sights.tls_port = secure.port();
  sights.port = server.port();
  for (;;) ::pause();
}

// --- the calls ---

// How a call ended, or that it never began.
struct Ending {
  std::atomic<int> ends = 0;
  bool refused = false;  // the send function threw
  bool may_repeat = true;
  Sent sent = Sent::Never;  // at most, over its attempts
  std::atomic<bool> told = false;

  void take(const Outcome& outcome) {
    const auto& history = history_of(outcome);
    const auto& exchange = outcome ? outcome->exchange : outcome.error().exchange;
    sent = exchange.sent;
    if (!outcome && outcome.error().code == Errc::Internal && sent == Sent::Never)
      fail("a shortage before anything was sent is not told as one: " + outcome.error().message);
    for (const auto& attempt : history.attempts) sent = std::max(sent, attempt.sent);
    if (++ends != 1) fail("a call ended twice");
    told = true;
    told.notify_all();
  }
};

class Calls {
 public:
  // libcurl 7.88 frees the name of a host twice where it has no memory to keep a TLS session: its
  // own memory fails without TLS.
  Calls(Sights& sights, Resource resource)
      : first_id_(++sights.round * kCalls),
        base_("http://127.0.0.1:" + std::to_string(sights.port)),
        named_("http://name.test:" + std::to_string(sights.port)),
        secure_(resource == Resource::CurlMemory
                    ? base_
                    : "https://127.0.0.1:" + std::to_string(sights.tls_port)),
        ca_file_(sights.ca_file.data()),
        saved_(std::string(sights.folder.data()) + "/saved") {
    for (auto& count : sights.requests[sights.round % kRounds]) count = 0;
    sights.wrong = 0;
  }
  void run();
  [[nodiscard]] const std::array<Ending, kCalls>& endings() const { return endings_; }

 private:
  static ClientOptions options() {
    ClientOptions options;
    RetryPolicy policy;
    policy.backoff.initial = 1ms;
    policy.attempt_timeout = 3s;  // libcurl 8.23 may forget a socket when it lacks memory
    options.middlewares = {redirect(), retry(policy)};
    options.max_in_flight = 2;  // so that some wait for admission
    options.connection.lookup = [](const std::string&) { return Addresses{"127.0.0.1"}; };
    options.connection.proxy.url = "";
    return options;
  }
  // It may throw where the call cannot begin: then nothing else may happen.
  void attempt(std::size_t call, const std::function<void(Ending&, Request)>& function,
               Request request) {
    auto& ending = endings_[call];
    try {
      request.set_header("X-Call", std::to_string(first_id_ + call));
      ending.may_repeat = request.repeatable();
      function(ending, std::move(request));
    } catch (const std::bad_alloc&) {
      ending.refused = true;
    } catch (const std::system_error&) {
      ending.refused = true;
    } catch (const std::exception& thrown) {
      fail(std::string("a send function threw: ") + thrown.what());
    }
  }
  void use(Client& client);
  void use_secrets(Client& client);
  void use_event_loop();

  const std::size_t first_id_;
  const std::string base_, named_, secure_, ca_file_, saved_;
  std::array<Ending, kCalls> endings_;
};

Task<Result<BearerToken>> token(Call& /*call*/) {
  BearerToken fetched;
  fetched.text = "0123456789abcdef0123456789abcdef";
  co_return fetched;
}

void Calls::use(Client& client) {
  const auto called_back = [&client](Ending& ending, Request request) {
    client.send_then(std::move(request),
                     [&ending](const Outcome& outcome) { ending.take(outcome); });
  };
  const auto blocking = [&client](Ending& ending, Request request) {
    ending.take(client.send(std::move(request)));
  };
  attempt(0, called_back, Request::get(base_ + "/again"));
  attempt(1, called_back, Request::post(base_ + "/", kMeant[1].body));
  attempt(2, called_back, Request::get(named_ + "/elsewhere"));
  attempt(3, blocking, Request::get(named_ + "/again?blocking"));
  auto zipped = Request::get(base_ + "/zipped");
  zipped.edit_options().compressed = true;
  attempt(4, blocking, std::move(zipped));
  attempt(
      5,
      [&client](Ending& ending, Request request) {
        ending.take(client.send_async(std::move(request)).get());
      },
      Request::patch(base_ + "/", kMeant[5].body));
  attempt(
      6,
      [&client](Ending& ending, Request request) {
        ending.take(sync_wait(client.co_send(std::move(request))));
      },
      Request("PURGE", base_ + "/"));
  auto streamed = Request::get(base_ + "/zipped");
  streamed.edit_options().sink = pass_to([](std::string_view /*bytes*/) { return true; });
  attempt(7, blocking, std::move(streamed));
  attempt(
      8,
      [&](Ending& ending, Request request) {  // under way when the client ends
        CallOptions stopped;
        std::stop_source stop;
        stopped.stop = stop.get_token();
        client.send_then(
            std::move(request), [&ending](const Outcome& outcome) { ending.take(outcome); },
            stopped);
        stop.request_stop();
      },
      Request::get(base_ + "/again"));
}

// TLS, a token that is fetched, cookies, and a body that goes into a file.
void Calls::use_secrets(Client& client) {
  const auto blocking = [&client](Ending& ending, Request request) {
    ending.take(client.send(std::move(request)));
  };
  attempt(9, blocking, Request::get(secure_ + "/cookie"));
  attempt(10, blocking, Request::patch(secure_ + "/", kMeant[10].body));
  auto saved = Request::get(secure_ + "/zipped");
  saved.edit_options().sink = save_to(saved_);
  attempt(11, blocking, std::move(saved));
}

// Calls in the turns of this thread, one of them under way when the client ends.
void Calls::use_event_loop() {
  if constexpr (!Poller::kHasDescriptor) {
    for (const std::size_t call : {12U, 13U}) endings_[call].refused = true;
    return;
  }
  const auto loop = std::make_shared<EventLoop>();
  auto driven = options();
  driven.scheduler = loop;
  Client client(driven);
  const auto called_back = [&client](Ending& ending, Request request) {
    client.send_then(std::move(request),
                     [&ending](const Outcome& outcome) { ending.take(outcome); });
  };
  attempt(12, called_back, Request::patch(named_ + "/", kMeant[12].body));
  attempt(13, called_back, Request::get(named_ + "/again"));
  while (!endings_[12].refused && !endings_[12].told) {
    const auto left = loop->time_left();
    pollfd ready{loop->descriptor(), POLLIN, 0};
    ::poll(&ready, 1, left ? static_cast<int>(left->count()) : -1);
    loop->turn();
  }
}

void Calls::run() {
  try {
    Client client(options());
    use(client);
    auto secret = options();
    secret.middlewares.push_back(bearer(token));
    secret.connection.ca_file = ca_file_;
    secret.connection.cookies = std::make_shared<CookieJar>();
    Client secretive(secret);
    use_secrets(secretive);
    use_event_loop();
    for (const std::size_t call : {0U, 1U, 2U}) {
      if (!endings_[call].refused) endings_[call].told.wait(false);
    }
  } catch (const std::bad_alloc&) {  // the client could not be made: nor could any call
    for (auto& ending : endings_) ending.refused = ending.refused || ending.ends == 0;
  } catch (const std::system_error&) {
    for (auto& ending : endings_) ending.refused = ending.refused || ending.ends == 0;
  }
}

void check(const Calls& calls, const Sights& sights) {
  if (sights.wrong != 0) fail("a request went out that was not as it was meant");
  for (std::size_t i = 0; i < kCalls; ++i) {
    const auto& ending = calls.endings()[i];
    const auto name = "call " + std::to_string(i);
    const int seen = sights.requests[sights.round % kRounds][i];
    if (ending.ends != (ending.refused ? 0 : 1))
      fail(name + " ended " + std::to_string(ending.ends) + " times");
    if (ending.refused && seen > 0) fail(name + " was refused, and sent");
    if (!ending.may_repeat && seen > 1) fail(name + " is unsafe and was seen twice");
    if (ending.sent == Sent::Never && seen > 0) fail(name + " says that it was never sent");
  }
}

// On a thread of its own, so that what is kept for a thread (frames) goes with it.
void play(Calls& calls, Resource resource, long k) {
  std::thread thread([&] {
    fail_at(resource, k);
    calls.run();
    no_failures();
  });
  thread.join();
}

void round(Sights& sights, Resource resource, long k) {
  Calls calls(sights, resource);
  const auto blocks = blocks_in_use();
  const auto files = open_files();
  play(calls, resource, k);
  // A loop's thread that is detached, or a look-up's, may be a moment from its end.
  const auto patience = std::chrono::steady_clock::now() + 5s;
  const auto left_behind = [&] { return blocks_in_use() != blocks || open_files() != files; };
  while (left_behind() && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  check(calls, sights);
  if (open_files() != files) fail("descriptors were left open");
  if (blocks_in_use() > blocks) {
    fail(std::to_string(blocks_in_use() - blocks) + " blocks of memory were left behind");
  }
}

bool survives(Sights& sights, Resource resource, long k) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kPatience);
    round(sights, resource, k);
    ::_exit(asked(resource) < k ? 3 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3)) return true;
  const auto name = kNames[static_cast<std::size_t>(resource)];
  std::fprintf(stderr, "torture: %.*s %ld: %s\n", static_cast<int>(name.size()), name.data(), k,
               WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "it never ended" : "it died");
  return false;
}

int torture_with(Sights& sights, Resource resource) {
  round(sights, resource, 0);
  const long most = asked(resource);
  int failures = most > 0 ? 0 : 1;  // a resource that nothing asks for would test nothing
  for (long k = 1; k <= most; ++k) failures += survives(sights, resource, k) ? 0 : 1;
  const auto name = kNames[static_cast<std::size_t>(resource)];
  std::printf("%.*s: %ld times asked for, %d failures not survived\n",
              static_cast<int>(name.size()), name.data(), most, failures);
  std::fflush(stdout);
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  if (!wanted.empty() && std::ranges::find(kNames, wanted) == kNames.end()) {
    std::fprintf(stderr, "torture: there is no resource \"%s\"\n", argv[1]);
    return 2;
  }
  auto* sights = new (::mmap(nullptr, sizeof(Sights), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Sights();
  std::snprintf(sights->folder.data(), sights->folder.size(), "/tmp/httpretry-torture-XXXXXX");
  if (::mkdtemp(sights->folder.data()) == nullptr) fail("cannot make a folder");
  ::setenv("TMPDIR", sights->folder.data(), 1);  // the server, which is killed, leaves files behind
  const pid_t server = ::fork();
  if (server == 0) serve(*sights);
  while (sights->port == 0) std::this_thread::yield();
  std::signal(SIGPIPE, SIG_IGN);
  replace_curls_memory();
  {
    Calls calls(*sights, Resource::Memory);
    play(calls, Resource::Memory, 0);  // what is made only once is there after this
  }

  int failures = 0;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (!wanted.empty() && wanted != kNames[i]) continue;
    const auto resource = static_cast<Resource>(i);
    const bool of_epoll = resource == Resource::Epoll || resource == Resource::EpollCtl;
    if (of_epoll && !Poller::kHasDescriptor) continue;
    if (argc > 2) {
      round(*sights, resource, std::atol(argv[2]));
    } else {
      failures += torture_with(*sights, resource);
    }
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  std::filesystem::remove_all(sights->folder.data());
  return failures == 0 ? 0 : 1;
}
