// Scenario: what a misbehaving server does to one request after the other.
//
// A scenario is a list of steps, and each request takes the next one, whatever connection it comes
// on. A step is an answer (a status, headers, a body, a delay) or a fault: the connection reset,
// the body cut off, a flood of headers. `FaultServer` plays scenarios on real sockets.
//
//   Scenario scenario({503, Fault::Reset, {429, {{"Retry-After", "1"}}}, {200, "ok"}});
//
// All of these are values without a clock or a lock.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/headers.hpp>
#include <httpretry/result.hpp>
#include <httpretry/time.hpp>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

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
  Step();
  Step(Fault what);                          // NOLINT(google-explicit-constructor)
  Step(int code, std::string content = {});  // NOLINT(google-explicit-constructor)
  Step(int code, Headers fields, std::string content = {});
  ~Step();
  Step(const Step&);
  Step(Step&&) noexcept;
  Step& operator=(const Step&);
  Step& operator=(Step&&) noexcept;

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
  Script();
  explicit Script(std::vector<Step> list);
  Script(std::initializer_list<Step> list);

  std::vector<Step> steps;
  Then then = Then::RepeatLast;
};

struct HTTPRETRY_API Scenario : Script {
  Scenario();
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

}  // namespace httpretry
