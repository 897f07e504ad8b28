// Two HTTP/2 servers: nghttpd, for real traffic, and one of a few frames, for what no well-behaved
// server can be made to do.
#pragma once

#include "files.hpp"
#include "lib/extras/testing/certificates.hpp"
#include "processes.hpp"
#include "raw_server.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// Serves the files /hello ("hello, two") and /large. REQUIREs that nghttpd is installed.
class Nghttpd {
 public:
  static constexpr std::size_t kLarge = 3'000'000;

  explicit Nghttpd(bool tls = true);
  [[nodiscard]] std::string url(const std::string& path = "/hello") const;
  [[nodiscard]] const std::string& ca_file() const { return certificates_.ca_file(); }
  // The number of connections in its log so far.
  [[nodiscard]] std::size_t connections() const;

 private:
  faults::Certificates certificates_{Tls::Good};
  TemporaryDirectory directory_;
  std::string scheme_;
  std::optional<ServerProcess> process_;
};

// Frames of HTTP/2 (RFC 9113 §6), with payloads of at most 255 bytes. `stream`: its number, as four
// bytes.
enum class Frame : unsigned char {
  Data = 0,
  Headers = 1,
  Reset = 3,
  Settings = 4,
  Ping = 6,
  Goaway = 7
};
constexpr int kEndStream = 1;
constexpr int kEndHeaders = 4;
constexpr int kPadded = 8;
std::string frame(Frame type, int flags, const std::string& stream, const std::string& payload);

// Header fields, as HPACK.
inline constexpr char k200[] = "\x88";
inline constexpr char k204[] = "\x89";
inline constexpr char k304[] = "\x8b";
inline constexpr char kLength0[] = "\x0f\x0d\x01\x30";  // Content-Length: 0
inline constexpr char kLength9[] = "\x0f\x0d\x01\x39";
std::string headers(const std::string& stream, const std::string& fields = k200, int flags = 0);
std::string data(const std::string& stream, const std::string& bytes, int flags = 0);
std::string goaway(const std::string& last_stream);
// Why a stream is reset.
enum : char { kNoError = 0, kInternalError = 2, kRefusedStream = 7, kCancel = 8 };
std::string reset(const std::string& stream, int why);

// Read at once, or one after the other.
std::vector<std::string> together(const std::vector<std::string>& pieces, bool at_once);

// At the end of a piece: then the connection is closed without a goodbye.
inline const std::string kHangUp = "hang up";

// Answers each request with frames that are written down, right or wrong. Closes the connection
// when the client says goodbye.
class FrameServer {
 public:
  // For the `number`-th request; empty: the connection is reset. Of several pieces, each is sent
  // when the client has read the one before.
  using Pieces = std::vector<std::string>;
  using Answer = std::function<std::optional<Pieces>(const std::string& stream, int number)>;
  // The first connections may speak HTTP/1.1, and answer 200 to all.
  explicit FrameServer(Answer answer, int http1_connections = 0);
  [[nodiscard]] std::string url() const { return server_.url("https"); }
  [[nodiscard]] const std::string& ca_file() const { return certificates_.ca_file(); }
  [[nodiscard]] int streams() const { return streams_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void serve(int listener);
  void talk(SSL* tls);
  static void talk_http1(SSL* tls);
  faults::Certificates certificates_{Tls::Good};
  const Answer answer_;
  const int http1_connections_;
  std::atomic<int> streams_ = 0;
  std::atomic<int> connections_ = 0;
  RawServer server_;  // last: its thread uses the others
};

// Refuses the first `refusals` streams (REFUSED_STREAM) and answers 200 to the others. With
// `hangs_up_at` N it says nothing to any, and each N-th stream has its connection reset.
class RefusingServer : public FrameServer {
 public:
  explicit RefusingServer(int refusals, int hangs_up_at = 0);
};

}  // namespace httpretry
