// The test kit. The library's own tests use it, and yours can: link httpretry::testing.
//
// Without a network: ScriptedTransport returns the outcomes of your script, and ManualScheduler is
// a clock that only the test moves. These tests never sleep and are never random.
//
//   auto clock = std::make_shared<ManualScheduler>();
//   auto network = std::make_shared<ScriptedTransport>();
//   network->say(Response(503)).say(Response(200, "ok"));
//
//   ClientOptions options;
//   options.call_middlewares = {my_middleware()};
//   options.scheduler = clock;
//   options.transport = network;
//   options.random = fixed_random(0.5);
//   Client client(options);
//
//   CHECK(client.get("http://x/")->body == "ok");  // without a real wait
//   CHECK(network->requests().size() == 2);
//
// A blocking `send` moves the clock itself. Otherwise the test must: `clock->run(task)` for a
// co_send, `clock->advance(1s)` or `run_until` after a send_async or send_then.
//
// With real sockets: FaultServer fails as its Scenario says, and records the requests it receives.
//
//   FaultServer server({503, Fault::Reset, {200, "ok"}});
//   CHECK(client.get(server.url("/"))->body == "ok");
//   CHECK(server.requests() == 3);
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/observer.hpp>
#include <httpretry/chain/transport.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/testing/time_header.hpp>

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

// A Scheduler in virtual time. Everything runs on the thread that moves the clock. The destructor
// cancels all waits.
class HTTPRETRY_API ManualScheduler final : public Scheduler {
 public:
  // `wall` is the calendar time at which the clock starts.
  explicit ManualScheduler(WallTime wall = WallTime(std::chrono::seconds(1'700'000'000)));
  ~ManualScheduler() override;

  [[nodiscard]] Time now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  void post(std::coroutine_handle<> handle) override;
  Task<bool> sleep_until(Time when, std::stop_token stop) override;

  // Moves the clock from one timer to the next until `done`, as a blocking `send` does. Throws
  // std::logic_error if no timer is left and `done` is still false.
  void run_until(const std::atomic<bool>& done) override;

  // Does the same until `task` ends, and returns its result.
  template <class T>
  T run(Task<T> task) {
    const auto running = std::make_shared<detail::Running<T>>();
    detail::run_into(running, std::move(task));
    run_until(running->done());
    return running->take();
  }

  // Runs everything that is ready, without moving the clock.
  void run();
  // Moves the clock by `by`; each timer on the way fires at its own time. Throws
  // std::invalid_argument if `by` is negative.
  void advance(Duration by);
  // Return the number of sleeps in progress, and the time when the first one ends (kNever without
  // any).
  [[nodiscard]] std::size_t sleeping() const;
  [[nodiscard]] Time next() const;

 private:
  class Queue;
  [[nodiscard]] const detail::RunQueue* queue() const override;
  std::unique_ptr<Queue> queue_;
};

// A Transport that returns scripted outcomes and records the requests. It treats requests like the
// real transport: a bad URL, or a body that cannot be opened, is an error. It reads bodies, so
// generators run, and a body that can be read only once cannot be sent again. A wait for an awaited
// body takes virtual time, and ends as with the real transport. RequestOptions::on_progress is
// called before the request, after its body, and after the response.
//
// Safe with calls on several threads.
class HTTPRETRY_API ScriptedTransport final : public Transport {
 public:
  ScriptedTransport();
  ~ScriptedTransport() override;

  // Appends an outcome, which is returned after `after` of virtual time. The last outcome repeats.
  // If the outcome's `exchange` is empty, it is filled in: the request was sent once, or not at all
  // for an Error that happens before sending (InvalidRequest, Resolve, Connect, Tls). In the latter
  // case, the body is not read. A success with Response::incomplete is one whose body breaks off: a
  // sink gets its bytes, and the outcome is Errc::Receive.
  ScriptedTransport& say(Outcome outcome, Duration after = {});
  // The same, and adds `times` to the outcome's headers when it is returned. Throws like
  // Headers::add.
  ScriptedTransport& say(Outcome outcome, std::vector<TimeHeader> times, Duration after = {});
  // Computes the outcome of a request; `number` counts requests from 1.
  using Respond = std::function<Outcome(const Request& request, int number)>;
  // Appends a function that computes the outcome. It runs when the body has been read and `after`
  // has passed, one call at a time. The body of its request is in memory
  // (`request.body().bytes()`, nullptr without a body).
  //
  //   network->say([](const Request& request, int number) -> Outcome {
  //     return Response(number % 2 == 1 ? 503 : 200, request.url());
  //   });
  ScriptedTransport& say(Respond respond, Duration after = {});

  // Returns a transport that responds with the recorded responses of an HTTP archive: parse_har
  // says which request gets which. Throws std::invalid_argument if the archive has errors.
  [[nodiscard]] static std::shared_ptr<ScriptedTransport> from_har(
      std::string_view json, std::string file_name = "the archive");

  // A request, and the time when it reached the transport. `request.body().bytes()` holds the bytes
  // that were read of the body. It is nullptr without a body, or if no byte was sent of a body that
  // is not in memory.
  struct Seen {
    Seen(Request sent, Time at) : request(std::move(sent)), when(at) {}

    Request request;
    Time when;
  };
  // Returns the requests so far, in order.
  [[nodiscard]] std::vector<Seen> requests() const;

  Task<Outcome> send(Request request, Call& call) override;

 private:
  struct Script;
  std::unique_ptr<Script> script_;
};

// An Observer that records all events of calls. Safe with calls on several threads.
class HTTPRETRY_API RecordingObserver final : public Observer {
 public:
  RecordingObserver();
  ~RecordingObserver() override;

  // Returns one line for each event: "call GET http://x/", "attempt 1", "attempt 1: 503 transient,
  // retry after 100ms", "hedge 2 after 50ms", "attempt 1: canceled permanent, lost", "hedge
  // refused: busy", "redirect to http://y/", "policies accepted", "circuit http://x: open for
  // 5000ms, 5 failures in a row", "pause http://x: for 2000ms, retry-after", "pause http://x:
  // over", "concurrency http://x: 20 to 18", "not sent: circuit_open", "end 200 success".
  [[nodiscard]] std::vector<std::string> lines() const;
  // Returns the attempts of all calls, in the order in which they ended.
  [[nodiscard]] std::vector<Attempt> attempts() const;

  void call_started(const Call& call, const Request& request) noexcept override;
  void attempt_started(const Call& call, const Request& request, int number) noexcept override;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept override;
  void hedge_started(const Call& call, const Request& request, int number,
                     Duration after) noexcept override;
  void hedge_refused(const Call& call, HedgeRefused why) noexcept override;
  void held_back(const Call& call, QueuedBy by, Time until) noexcept override;
  void redirected(const Call& call, const Request& next) noexcept override;
  void policies_reloaded(const Call& call, const PolicyReload& reload) noexcept override;
  void circuit_changed(const Call& call, const CircuitChange& change) noexcept override;
  void paused(const Call& call, const PauseBegun& pause) noexcept override;
  void resumed(const Call& call, std::string_view key) noexcept override;
  void limit_changed(const Call& call, const LimitChange& change) noexcept override;
  void shed(const Call& call, const Error& reason) noexcept override;
  void call_ended(const Call& call, const Outcome& outcome) noexcept override;

 private:
  struct Record;
  std::unique_ptr<Record> record_;
};

// Return a function for ClientOptions::random: it always returns `value`, or numbers that depend
// only on the seed.
[[nodiscard]] HTTPRETRY_API std::function<double()> fixed_random(double value);
[[nodiscard]] HTTPRETRY_API std::function<double()> seeded_random(std::uint64_t seed);

// A Scenario is a list of steps, and each request takes the next one, on whichever connection it
// arrives. A Step is a response or a Fault.

// A failure that the server produces. Over TLS, it sends close_notify before a FIN, but not before
// an RST. If a fault happens inside the body and the step has none, 1 KiB of filler is sent. A
// response that cannot have a body (to HEAD; 204, 304) ends after its head.
enum class Fault : std::uint8_t {
  None,
  Reset,           // RST, after the request was read
  Close,           // FIN without a response, after the request was read
  ResetEarly,      // RST at the first byte of the request, before reading it
  ResetDuring,     // the head and half of the body, then RST
  Truncate,        // the head and half of the body, then FIN
  Hang,            // reads the request, never responds, and waits until the client disconnects
  Drip,            // the head, then the body one byte each `interval`
  Garbage,         // bytes that are not HTTP (the step's body, if it has one), then FIN
  Stale,           // responds; the next request on that connection is read, then FIN
  Huge,            // a chunked body of `size` bytes, generated while it is sent
  BadChunk,        // half of the body in a valid chunk, then an invalid chunk size
  HugeHeaders,     // a head with `size` bytes of headers
  EndlessInterim,  // `size` bytes of 1xx responses, then FIN
  GzipCutShort,    // half of a gzip body; its Content-Length matches what is sent
  GzipBomb,        // a chunked gzip body, about a thousandth of the `size` bytes that it decodes to
  // Only over HTTP/2: see FaultServer.
  Http2EmptyData,    // a head, then `size` bytes of empty DATA frames
  Http2GoawayFlood,  // `size` bytes of GOAWAY frames
  Http2ResetFlood,   // `size` bytes of RST_STREAM frames
  Http2NoEndStream,  // a head without a length, half of the body, then a frame whose padding is
                     // longer than the frame, which breaks the connection
  TlsStall,          // accepts the connection and never starts TLS
  TlsReset,          // RST during the TLS handshake
  Refused,           // no server listens; only for `httpretry plan`
  Resolve,           // the host name has no address; only for `httpretry plan`
};

// Returns the word for a fault in scenario files: "reset", "reset_early", … Hang is "timeout",
// because that is the client's error; TlsReset is "tls".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Fault fault);
// Inverts `to_string`, and also accepts "hang". Returns nullopt for an unknown word.
[[nodiscard]] HTTPRETRY_API std::optional<Fault> parse_fault(std::string_view word);

// An interim response (100, 102, 103), which is sent before the final one.
struct HTTPRETRY_API Interim {
  Interim(int code, Headers fields = {})  // NOLINT(google-explicit-constructor)
      : status(code), headers(std::move(fields)) {}

  int status;
  Headers headers;
};

struct SeenRequest;

// The response or fault for one request. The server adds Content-Length, and "Connection: close" if
// it closes the connection. Headers of the step replace these, even if they are wrong. With
// "Connection: close" the server closes the connection. With "Transfer-Encoding: chunked" it sends
// the body as one chunk.
struct HTTPRETRY_API Step {
  Step() = default;
  Step(Fault what) : fault(what) {}         // NOLINT(google-explicit-constructor)
  Step(int code, std::string content = {})  // NOLINT(google-explicit-constructor)
      : status(code), body(std::move(content)) {}
  Step(int code, Headers fields, std::string content = {})
      : status(code), headers(std::move(fields)), body(std::move(content)) {}

  int status = 200;
  Headers headers;
  std::vector<TimeHeader> time_headers;  // follow `headers`, relative to the response
  std::string body;
  bool gzip = false;  // compress the body and add Content-Encoding
  Fault fault = Fault::None;
  std::uint64_t times = 1;                             // the number of requests that take this step
  std::vector<Interim> interims;                       // sent before the delay
  Duration delay{0};                                   // before the response or the fault
  Duration interval = std::chrono::milliseconds(100);  // for Drip
  // For Huge, GzipBomb, HugeHeaders, EndlessInterim and the floods of frames.
  std::uint64_t size = std::uint64_t{1} << 30;
  // Sends no "100 Continue" to a request that expects one, but still waits for its body.
  bool ignore_expect = false;
  // Responds after the head without reading the body, and closes the connection. A 417 to a request
  // with "Expect: 100-continue" always does.
  bool respond_early = false;
  // Computes the response for each request that takes this step, from the request as it was read:
  //
  //   Step echo;
  //   echo.respond = [](const SeenRequest& request) { return Step(200, request.body); };
  //
  // The server uses those members of the returned step that describe the response and its fault. A
  // fault that normally happens before the request is read happens afterwards. The function runs on
  // the thread of the connection, so several calls may run at once. If it throws, or returns a step
  // that no server can perform, the response is a 500 with the reason in its body.
  std::function<Step(const SeenRequest& request)> respond;
};

// The behavior after the last step.
enum class Then : std::uint8_t {
  RepeatLast,
  Restart,
  Close,  // FIN without a response to all further requests
};

// Steps, in order. Without steps, every response is 200.
struct HTTPRETRY_API Script {
  Script() = default;
  explicit Script(std::vector<Step> list) : steps(std::move(list)) {}
  Script(std::initializer_list<Step> list) : steps(list) {}

  std::vector<Step> steps;
  Then then = Then::RepeatLast;
};

// What a FaultServer does: the steps for all requests, and other steps for some paths.
struct HTTPRETRY_API Scenario : Script {
  using Script::Script;

  // Paths (without query) that have their own steps. Here, faults that precede reading the request
  // (ResetEarly, TlsStall, TlsReset) happen after its head was read, because the head contains the
  // path. In `steps`, they happen to the next connection or request, whatever its path.
  std::map<std::string, Script, std::less<>> paths;
};

// Parses a scenario file:
//
//   { "steps": [
//       {"status": 503, "headers": {"Retry-After": "2"}, "body": "busy", "delay": "50ms"},
//       {"fault": "reset", "times": 3} ],
//     "then": "repeat_last", "paths": { "/other": { "steps": [ {"status": 200} ] } } }
//
// A step may also have "interval" and "size". A header's value may be a list, or a TimeHeader:
// {"at": "now+60", "as": "http-date"}. "then" may also be "restart" or "close". An Error has the
// code Errc::InvalidRequest, and one line for each problem in its message.
[[nodiscard]] HTTPRETRY_API Result<Scenario> parse_scenario(std::string_view json,
                                                            std::string file_name);

// Parses an HTTP archive (HAR 1.2, as `httpretry --har FILE --har-bodies` and browsers write it)
// and returns a scenario with a single step, which responds with the recorded responses:
//
//   * A request gets the first response that was recorded for its method, path and query, the next
//     request gets the second one, and so on. The last one repeats. The host does not count.
//   * A recorded value REDACTED in a query matches any value.
//   * A recorded connection that broke is reset, a timeout hangs, and a response that broke off is
//     truncated. Other entries without a response are skipped, and so are those whose URL is not
//     http or https.
//   * A request without a recorded response, or with one whose body the archive lacks, gets a 501.
//     `on_unmatched` is then called with the reason, on the thread of the connection.
//   * Headers that are REDACTED, or that describe the connection or the coding, are left out. A
//     Location or Link on a recorded origin leads to the server itself.
//
// The responses do not wait as the recorded ones did. An Error has the code Errc::InvalidRequest,
// and one line for each problem in its message. An archive has at most 64 MiB.
[[nodiscard]] HTTPRETRY_API Result<Scenario> parse_har(
    std::string_view json, std::string file_name,
    std::function<void(const std::string& reason)> on_unmatched = nullptr);

// A request as a FaultServer received it. Only requests with a valid head are counted. All others
// get a 400, 431 (a head over 64 KiB) or 505, and count only as a connection.
struct HTTPRETRY_API SeenRequest {
  SeenRequest() = default;
  Time arrived;                  // when the server saw the first byte
  WallTime arrived_wall;         // the same by the system clock
  std::uint64_t connection = 0;  // 1 for the first connection accepted, and so on
  std::string method;
  std::string target;        // as sent: "/a?b", "http://host/a?b", "host:443"
  std::string path;          // the path of the target without query; the whole target of a CONNECT
  std::string http_version;  // "1.0", "1.1" or "2"
  Headers headers;
  std::string body;             // the first MiB, with chunks decoded
  std::uint64_t body_size = 0;  // of the whole body, in bytes
  bool body_complete = false;   // false: it broke off, or the server did not read it
  // The index of its step among the steps of its path or of the scenario. Empty if it took no step:
  // after the last one, or on a stale connection.
  std::optional<std::size_t> step;
};

// Whether the server uses TLS, and with which certificate.
enum class Tls : std::uint8_t {
  Off,
  Good,        // for localhost, 127.0.0.1 and ::1; signed by the authority in `ca_file`
  Expired,     // like Good, but expired yesterday
  WrongHost,   // like Good, but for another host name
  SelfSigned,  // like Good, but signed by itself
};

// The options of a FaultServer: its address, TLS, and what it notifies the test of.
struct HTTPRETRY_API FaultServerOptions {
  FaultServerOptions() = default;
  std::string address = "127.0.0.1";  // a numeric IPv4 or IPv6 address
  std::uint16_t port = 0;             // 0: any free port
  Tls tls = Tls::Off;
  bool keep_alive = true;  // false: close the connection after each response
  // Closes a connection that was idle for this long, and announces it: "Keep-Alive: timeout=5".
  std::optional<std::chrono::seconds> idle_timeout;
  // Receives each request before its response is written. It runs on the thread of the connection,
  // so several calls may run at once. It must not throw. `stop` waits for it.
  std::function<void(const SeenRequest&)> on_request;
  // Acts as a proxy: a CONNECT whose step has a 2xx status becomes a tunnel to its target. The
  // target must be this machine's loopback (otherwise 403; 502 if no server listens there).
  // Requests in absolute form take steps like others. Without `proxy`, the response to CONNECT is
  // 405.
  bool proxy = false;
  std::size_t max_connections = 1000;  // at once; the server resets further ones and warns
  std::size_t max_seen = 100'000;      // requests kept for `seen`; older ones are dropped
};

// An HTTP/1.1 server on real sockets that performs a Scenario and records the requests. It counts
// requests where they arrive, so the counts do not depend on what a client believes it has sent.
// Each connection has a thread that blocks all signals, so that the program's signal handlers run
// on other threads. The server trusts every client: let it listen on the loopback interface only.
//
// If a step has an HTTP/2 fault (such as Http2EmptyData), the server also speaks HTTP/2: over TLS
// with clients that offer "h2" (ALPN), without TLS with clients that begin with it (prior
// knowledge). Over HTTP/2, it records requests when they are complete, and responds to those of a
// connection one after the other. `ignore_expect`, `respond_early` and `proxy` work only over
// HTTP/1.1, and so do Drip, Garbage, Stale, Huge, BadChunk, HugeHeaders, EndlessInterim and
// GzipBomb. If a step has a fault of the other version, the response is a 505 that says so.
class HTTPRETRY_API FaultServer {
 public:
  // Returns when the server listens. Throws std::invalid_argument for an invalid scenario (a status
  // outside 200 to 999, `times` 0, a negative time, Refused or Resolve), std::system_error if it
  // cannot bind, std::runtime_error if it cannot make its certificates.
  explicit FaultServer(Scenario scenario = {}, FaultServerOptions options = {});
  ~FaultServer();

  // Returns the port on which the server listens.
  [[nodiscard]] std::uint16_t port() const;
  // Returns "http://127.0.0.1:PORT" (or https), followed by `path`.
  [[nodiscard]] std::string url(std::string_view path = "/") const;
  // Returns the name of a PEM file with the certificate authority of Good, Expired and WrongHost;
  // empty without TLS. The destructor deletes the file.
  [[nodiscard]] const std::string& ca_file() const;

  // Closes all connections and joins all threads. Afterwards connections are refused, but the port
  // stays reserved.
  void stop();
  // Stops, then listens again on the same port. Keeps steps, counts and certificates. Throws like
  // the constructor. Must not run at the same time as `stop`.
  void restart();

  // Returns the requests so far, in the order in which their last byte was read. This function and
  // those below may be called from any thread.
  [[nodiscard]] std::vector<SeenRequest> seen() const;
  // Returns the number of requests so far.
  [[nodiscard]] std::size_t requests() const;
  // Waits until there were `count` requests in total. Returns false if `limit` passes first.
  [[nodiscard]] bool wait_for_requests(std::size_t count, Duration limit) const;
  // Returns the number of accepted connections, without those beyond `max_connections`.
  [[nodiscard]] std::size_t connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace httpretry
