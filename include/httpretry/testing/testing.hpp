// The kit that the library's own tests are written with, for yours: a network that says what you
// tell it, and a clock that stands still until you move it. Nothing sleeps and nothing is random.
//
//   auto clock = std::make_shared<ManualScheduler>();
//   auto network = std::make_shared<ScriptedTransport>();
//   network->say(Response(503)).say(Response(200, "ok"));
//
//   ClientOptions options;
//   options.middlewares = {my_middleware(), retry()};
//   options.scheduler = clock;
//   options.transport = network;
//   options.random = fixed_random(0.5);
//   Client client(options);
//
//   CHECK(client.get("http://x/")->body == "ok");        // the wait took no time
//   CHECK(network->requests().size() == 2);
//
// A blocking `send` moves the clock itself. For coroutines and the other doors somebody must move
// it, or they wait for ever: `clock->run(task)` gives what the task gives; `clock->advance(1s)`, or
// `run_until`, is for what began with send_async or send_then.
//
// Link httpretry::testing. A server that misbehaves on real sockets is in fault_server.hpp.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/flow/observer.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/flow/transport.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/http/result.hpp>
#include <httpretry/http/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// A Scheduler in virtual time, on the thread that moves it. Thousands of calls may wait on it.
// Destroying it ends what is left on it as canceled.
class HTTPRETRY_API ManualScheduler final : public Scheduler {
 public:
  // The calendar stands at `wall` when the clock stands at its beginning.
  explicit ManualScheduler(WallTime wall = WallTime(std::chrono::seconds(1'700'000'000)));
  ~ManualScheduler() override;
  ManualScheduler(const ManualScheduler&) = delete;
  ManualScheduler& operator=(const ManualScheduler&) = delete;

  [[nodiscard]] Time now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  void post(std::coroutine_handle<> handle) override;
  Task<bool> sleep_until(Time when, std::stop_token stop) override;

  // Moves the clock to whatever is due next, again and again, until `done`. This is what a blocking
  // `send` does. Throws std::logic_error where nothing is left that could ever happen.
  void run_until(const std::atomic<bool>& done) override;

  // The same for a task: gives what it gives.
  template <class T>
  T run(Task<T> task) {
    const auto running = std::make_shared<detail::Running<T>>();
    detail::run_into(running, std::move(task));
    run_until(running->done());
    return running->take();
  }

  // Runs what can run now. The clock stands.
  void run();
  // Moves the clock by that much; everything that falls due on the way runs at its own time.
  void advance(Duration by);
  // How many sleeps are under way, and when the first ends (kNever where there is none).
  [[nodiscard]] std::size_t sleeping() const;
  [[nodiscard]] Time next() const;

 private:
  class Queue;
  std::unique_ptr<Queue> queue_;
};

// A Transport that answers from a script and remembers what it was sent. What no transport could
// send (a bad URL) is refused as by the real one.
class HTTPRETRY_API ScriptedTransport final : public Transport {
 public:
  ScriptedTransport();
  ~ScriptedTransport() override;

  // Appends an answer, given `after` that much virtual time. The last one repeats for ever. An
  // outcome whose `exchange` says nothing is taken as sent once: answered where it is a Response,
  // and for an Error by its code (nothing was sent where there was no connection).
  ScriptedTransport& say(Outcome outcome, Duration after = {});
  // An answer made when the request comes; `number` counts from 1.
  using Answer = std::function<Outcome(const Request& request, int number)>;
  ScriptedTransport& say(Answer answer, Duration after = {});

  // What was sent, in order, and when.
  struct Seen {
    Seen(Request sent, Time at) : request(std::move(sent)), when(at) {}

    Request request;
    Time when;
  };
  [[nodiscard]] const std::vector<Seen>& requests() const { return seen_; }

  Task<Outcome> send(Request request, Call& call) override;

 private:
  struct Step {
    Answer answer;
    Duration after;
  };
  std::vector<Step> steps_;
  std::vector<Seen> seen_;
};

// Writes down what an Observer hears. Safe with calls on several threads.
class HTTPRETRY_API RecordingObserver final : public Observer {
 public:
  RecordingObserver();
  ~RecordingObserver() override;

  // A line each: "call GET http://x/", "attempt 1", "attempt 1: 503 transient, again after 100ms",
  // "redirect to http://y/", "policies accepted", "end 200 success".
  [[nodiscard]] std::vector<std::string> lines() const;
  // The attempts of all calls, as they ended.
  [[nodiscard]] std::vector<Attempt> attempts() const;

  void call_started(const Call& call, const Request& request) noexcept override;
  void attempt_started(const Call& call, const Request& request, int number) noexcept override;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept override;
  void redirected(const Call& call, const Request& next) noexcept override;
  void policies_reloaded(const Call& call, const PolicyReload& reload) noexcept override;
  void call_ended(const Call& call, const Outcome& outcome) noexcept override;

 private:
  struct Record;
  std::unique_ptr<Record> record_;
};

// For ClientOptions::random: always the same number, or a sequence that the seed gives.
[[nodiscard]] HTTPRETRY_API std::function<double()> fixed_random(double value);
[[nodiscard]] HTTPRETRY_API std::function<double()> seeded_random(std::uint64_t seed);

// Scenario: what a misbehaving server does to one request after the other.
//
// A scenario is a list of steps, and each request takes the next one, whatever connection it comes
// on. A step is an answer (a status, headers, a body, a delay) or a fault: the connection reset,
// the body cut off, a flood of headers. `FaultServer` plays scenarios on real sockets.
//
//   Scenario scenario({503, Fault::Reset, {429, {{"Retry-After", "1"}}}, {200, "ok"}});
//
// All of these are values without a clock or a lock.

// What goes wrong. Over TLS, a connection that ends with FIN sends its close_notify first, and one
// that ends with RST does not. A fault inside the body needs a body: where the step has none, 1 KiB
// of filler stands in for it; an answer that can have none (to HEAD, 204, 304) ends after its head.
enum class Fault : std::uint8_t {
  None,
  Reset,           // RST, after the request was read
  Close,           // FIN without an answer, after the request was read
  ResetEarly,      // RST as the first byte of the request arrives; nothing is read
  ResetDuring,     // the head and half of the body, then RST
  Truncate,        // the head and half of the body, then FIN
  Hang,            // reads, never answers, and keeps the connection until the client leaves
  Drip,            // the head, then the body one byte each `interval`
  Garbage,         // bytes that are no HTTP (the step's body, where it has one), then FIN
  Stale,           // answers; the next request on that connection is read and meets a FIN
  Huge,            // a chunked body of `size` bytes, never held in memory
  BadChunk,        // half of the body in a good chunk, then a chunk size that is no number
  HugeHeaders,     // `size` bytes of header fields before the end of the head
  EndlessInterim,  // 1xx answers and no end: `size` bytes of them, then FIN
  GzipCutShort,  // the body gzip-compressed, of which half is sent under a Content-Length that says
                 // that this is all
  TlsStall,      // accepts the connection and never speaks TLS
  TlsReset,      // RST in the TLS handshake
  // Of a network rather than a server: `httpretry plan` plays them, a FaultServer cannot.
  Refused,
  Resolve,
};

// The word for it in a scenario file: "reset", "reset_early", …; Hang is "timeout", which is what
// the client makes of it, TlsReset is "tls", None is "none".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Fault fault);
// The fault that a word of `to_string` names, and Hang for "hang"; empty where there is none.
[[nodiscard]] HTTPRETRY_API std::optional<Fault> parse_fault(std::string_view word);

// An answer before the answer: 100, 102, 103.
struct HTTPRETRY_API Interim {
  Interim(int code, Headers fields = {});  // NOLINT(google-explicit-constructor)

  int status;
  Headers headers;
};

// What happens to a request. A plain answer has Content-Length and, where the connection ends with
// it, "Connection: close". A field that the step names itself replaces ours, right or wrong, and
// "Connection: close" among them ends the connection. With "Transfer-Encoding: chunked" the body is
// sent as one chunk.
struct HTTPRETRY_API Step {
  Step() = default;
  Step(Fault what);                          // NOLINT(google-explicit-constructor)
  Step(int code, std::string content = {});  // NOLINT(google-explicit-constructor)
  Step(int code, Headers fields, std::string content = {});

  int status = 200;
  Headers headers;
  std::string body;
  bool gzip = false;  // compress the body, and say so
  Fault fault = Fault::None;
  std::uint64_t times = 1;        // how many requests it answers before the next step's turn
  std::vector<Interim> interims;  // sent at once, before the delay
  Duration delay{0};              // before the answer, or before what the fault does in its place
  Duration interval = std::chrono::milliseconds(100);  // of Drip
  std::uint64_t size = std::uint64_t{1} << 30;         // of Huge, HugeHeaders and EndlessInterim
  // Sends no "100 Continue" to a request that expects one, and waits for its body all the same.
  bool ignore_expect = false;
  // Acts when the head is read, leaves the body unread, and ends the connection. A 417 does so
  // anyhow where the request expects "100 Continue".
  bool answer_early = false;
};

// What happens once every step had its turn.
enum class Then : std::uint8_t {
  RepeatLast,
  Restart,
  Close,  // FIN without an answer, to all further requests
};

// Steps, in order. Without any, every request is answered 200.
struct HTTPRETRY_API Script {
  Script() = default;
  explicit Script(std::vector<Step> list);
  Script(std::initializer_list<Step> list);

  std::vector<Step> steps;
  Then then = Then::RepeatLast;
};

struct HTTPRETRY_API Scenario : Script {
  Scenario() = default;
  explicit Scenario(std::vector<Step> list);
  Scenario(std::initializer_list<Step> list);

  // Paths (without query) that have steps and a count of their own. A step that acts before the
  // request is read (ResetEarly, TlsStall, TlsReset) cannot know the path: in here it acts when the
  // head is read, and in the scenario itself it meets whatever request comes next.
  std::map<std::string, Script, std::less<>> paths;
};

// Reads a scenario file:
//
//   { "steps": [
//       {"status": 503, "headers": {"Retry-After": "2"}, "body": "busy", "delay": "50ms"},
//       {"fault": "reset"},
//       {"status": 429, "times": 3},
//       {"status": 200, "body": "ok"} ],
//     "then": "repeat_last",
//     "paths": { "/other": { "steps": [ {"status": 200} ] } } }
//
// A step may also have "interval" and "size"; a header's value may be a list of several; "then" is
// repeat_last, restart or close. Errc::InvalidRequest with a line for each problem, as policy files
// have them: "scenario.json:3:16: /steps/1/fault: ...".
[[nodiscard]] HTTPRETRY_API Result<Scenario> parse_scenario(std::string_view json,
                                                            std::string file_name);

// FaultServer: an HTTP/1.1 server on real sockets that misbehaves as a Scenario says, and counts
// what reached it.
//
//   FaultServer server({503, Fault::Reset, {200, "ok"}});
//   auto outcome = client.get(server.url("/"));
//   CHECK(server.requests() == 3);
//
// For tests of clients: what was sent is counted here, at the other end of the wire, and not where
// it may only be believed. A thread serves each connection, up to `max_connections`; the server
// thread and these block all signals, so that the program's handlers run elsewhere.
//
// It trusts everybody who can connect to it. Leave it on the loopback interface.

// A request as the server saw it. Only what has a readable head counts as one; anything else is
// answered 400, 431 (a head over 64 KiB) or 505, and is only a connection.
struct HTTPRETRY_API SeenRequest {
  SeenRequest() = default;

  Time arrived;  // its first byte, to the server's knowledge
  WallTime arrived_wall;
  std::uint64_t connection = 0;  // 1 for the first connection accepted, and so on
  std::string method;
  std::string target;        // as sent: "/a?b", "http://host/a?b", "host:443"
  std::string path;          // of the target, without the query; the whole target of a CONNECT
  std::string http_version;  // "1.0" or "1.1"
  Headers headers;
  std::string body;  // its first MiB, without transfer coding
  std::uint64_t body_size = 0;
  bool body_complete = false;  // false: it broke off, or the step did not let it be read
  // The index of the step it took, in the steps of its path or else of the scenario. Empty where
  // none was taken: after the last step, or on a connection gone stale.
  std::optional<std::size_t> step;
};

// How the server identifies itself.
enum class Tls : std::uint8_t {
  Off,
  Good,        // for localhost, 127.0.0.1 and ::1, signed by `ca_file`
  Expired,     // as Good, but until yesterday
  WrongHost,   // as Good, but for another name
  SelfSigned,  // as Good, but signed by itself
};

struct HTTPRETRY_API FaultServerOptions {
  FaultServerOptions() = default;

  std::string address = "127.0.0.1";  // a literal, IPv4 or IPv6
  std::uint16_t port = 0;             // 0: any that is free
  Tls tls = Tls::Off;
  bool keep_alive = true;  // false: each answer ends its connection
  // Closes a connection that was idle for so long, and announces it: "Keep-Alive: timeout=5".
  std::optional<std::chrono::seconds> idle_timeout;
  // Called with each request, before its answer is written: on the connection's thread, so on
  // several at once. It must not throw; `stop` waits for it.
  std::function<void(const SeenRequest&)> on_request;
  // Acts as a proxy: a CONNECT that its step answers with 2xx becomes a tunnel to the host it
  // names, which must be this machine's loopback (else 403; 502 where nobody listens). Requests in
  // absolute form are answered by their steps. Without it, CONNECT is answered 405.
  bool proxy = false;
  // Connections beyond it are reset at once, and the first of them is mentioned on standard error.
  std::size_t max_connections = 1000;
  std::size_t max_seen = 100'000;  // requests kept for `seen`; older ones are dropped
};

class HTTPRETRY_API FaultServer {
 public:
  // Listens when it returns. Throws std::invalid_argument for a scenario that cannot be played (a
  // status out of 200-999, `times` 0, a negative time), std::system_error where it cannot bind and
  // std::runtime_error where it cannot make its certificates.
  explicit FaultServer(Scenario scenario = {}, FaultServerOptions options = {});
  // Stops.
  ~FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  // "http://127.0.0.1:PORT" (or https) and the path.
  [[nodiscard]] std::string url(std::string_view path = "/") const;
  // A PEM file with the authority behind Good, Expired and WrongHost. It lies in a directory of its
  // own, which goes with the server; empty without TLS.
  [[nodiscard]] const std::string& ca_file() const;

  // Ends every connection and joins every thread, at once. Connecting is refused from then
  // on; the port stays the server's.
  void stop();
  // Listens again on the same port (stopping first). Steps and counts go on where they were; the
  // certificates stay. Throws as the constructor. Not at the same time as `stop`.
  void restart();

  // The requests so far, in the order in which they were read to their end. Like everything below
  // it may be called from any thread.
  [[nodiscard]] std::vector<SeenRequest> seen() const;
  [[nodiscard]] std::size_t requests() const;
  // Waits until there were so many requests; false where `limit` passed first.
  [[nodiscard]] bool wait_for_requests(std::size_t count, Duration limit) const;
  // Connections accepted; those that `max_connections` turned away do not count.
  [[nodiscard]] std::size_t connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace httpretry
