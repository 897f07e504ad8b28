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
#pragma once

#include <httpretry/scenario.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// A request as the server saw it. Only what has a readable head counts as one; anything else is
// answered 400, 431 (a head over 64 KiB) or 505, and is only a connection.
struct HTTPRETRY_API SeenRequest {
  SeenRequest();
  ~SeenRequest();
  SeenRequest(const SeenRequest&);
  SeenRequest(SeenRequest&&) noexcept;
  SeenRequest& operator=(const SeenRequest&);
  SeenRequest& operator=(SeenRequest&&) noexcept;

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
  FaultServerOptions();
  ~FaultServerOptions();
  FaultServerOptions(const FaultServerOptions&);
  FaultServerOptions& operator=(const FaultServerOptions&);

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
