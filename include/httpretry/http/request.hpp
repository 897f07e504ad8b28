// Request: method, URL, headers, body and options. A handle to shared data that is copied on
// write: copying is cheap, and a middleware that changes its copy changes no other.
//
//   auto request = Request::post("https://api.example.com/v1/orders", R"({"sku": 7})")
//                      .set_header("Content-Type", "application/json");
//
// One Request object may be sent from many threads at once. Changing it while another thread uses
// the same object needs synchronisation.
#pragma once

#include <httpretry/http/body.hpp>
#include <httpretry/http/context.hpp>
#include <httpretry/http/url.hpp>

#include <utility>

namespace httpretry {

// The connection of one exchange, for RequestOptions::on_connection.
struct HTTPRETRY_API ConnectionInfo {
  ConnectionInfo() = default;

  std::string remote_ip;  // the proxy's, if there is one; empty without a connection
  std::string local_ip;
  int remote_port = 0;
  int local_port = 0;
  int new_connections = 0;          // 0: a pooled one was used
  std::uint64_t request_bytes = 0;  // the request without its body
  // 0, or OpenSSL's error code for the certificate.
  long verify_result = 0;
  long proxy_verify_result = 0;
  int proxy_status = 0;  // of the proxy's response to CONNECT
  // What TLS negotiated with the server, as libcurl says it: "TLSv1.3 / TLS_AES_256_GCM_SHA384".
  // Only for a new connection.
  std::string tls;
  // The server's chain as readable text, each with its PEM at the end. Only for a new connection.
  std::vector<std::string> certificates;
};

// How far the bodies of one exchange have come, for RequestOptions::on_progress.
struct HTTPRETRY_API Progress {
  Progress() = default;
  bool operator==(const Progress&) const = default;

  std::uint64_t sent = 0;                // bytes of the request's body
  std::optional<std::uint64_t> to_send;  // how many there are; empty: unknown
  // Bytes of the response's body as the server sent them: a gzip body counts before it is decoded.
  std::uint64_t received = 0;
  std::optional<std::uint64_t> to_receive;  // how many there are; empty: unknown, or not yet
  // Where the received bytes begin in the whole body: not 0 where the sink has its first part, and
  // the server sends the rest.
  std::uint64_t offset = 0;
};

struct RetryPolicy;
class Sink;

// Which requests go first while several wait for a rate or a concurrency limit.
enum class Priority : std::uint8_t { High, Normal, Low };

enum class HttpVersion : std::uint8_t {
  Any,    // HTTP/2 if TLS negotiates it, else HTTP/1.1
  Http1,  // HTTP/1.1 only
  // HTTP/2 from the first byte. Without TLS, libcurl before 8.0 cannot reuse such a connection:
  // then each exchange makes its own.
  Http2PriorKnowledge,
};

// A name and a password, used when the server asks for them. Sent only to the origin of the
// request. Requests with Digest use HTTP/1.1: see lib/core/curl/README.md.
struct HTTPRETRY_API Credentials {
  enum class Scheme : std::uint8_t { Basic, Digest };
  Credentials() = default;
  Credentials(Scheme how, std::string name, std::string secret);

  Scheme scheme = Scheme::Basic;
  std::string user;
  std::string password;
};

// Options of one request that are not part of its text.
struct HTTPRETRY_API RequestOptions {
  RequestOptions() = default;

  // false: it is sent once, whatever the policy says.
  bool retry = true;
  // Used instead of the endpoint's policy. Errc::InvalidRequest if `check` refuses it, or if the
  // client has no retry() or lacks a stage that the policy needs (ClientOptions::middlewares).
  std::shared_ptr<const RetryPolicy> policy;
  // Used instead of the policy's.
  std::optional<Priority> priority;
  // Whether sending it twice has the same effect as sending it once. If empty, it follows from the
  // method and the headers: see Request::repeatable.
  std::optional<bool> repeatable;
  // Asks for gzip, and decodes the body.
  bool compressed = false;
  HttpVersion http_version = HttpVersion::Any;
  std::optional<Credentials> credentials;
  // Sends "Expect: 100-continue" before a body of that many bytes or more, or of unknown size. If
  // the server responds with a final status instead, the body was not read, and one that can be
  // read only once can still be sent. A server that does not support it responds 417: then the
  // request is sent once more, without Expect, and that is no retry. The same is done where the
  // request has this header. HTTP/1.1 only; empty: never.
  std::optional<std::uint64_t> expect_continue_from;
  // The body is sent after that time even if the server has not responded. 1 s as in libcurl.
  Duration expect_timeout = std::chrono::seconds(1);
  // Receives the body of a successful response instead of Response::body: see sink.hpp.
  std::shared_ptr<Sink> sink;
  // The most bytes of (decoded) body that are kept in memory. Empty: the client's limit.
  std::optional<std::uint64_t> max_body;
  // The most bytes of body that are sent per second.
  std::optional<std::uint64_t> upload_rate;
  // Called for each exchange, also of retries and redirects, on the thread that drives the call. It
  // must not send.
  std::function<void(const ConnectionInfo&)> on_connection;
  // Called for each exchange, also of retries and redirects: once before anything is sent, and then
  // when more of a body was sent or received, often many times a second. It is called on the thread
  // that drives the call: it must not block, and must not send. If it throws, the call ends with
  // Errc::Internal. A transport of your own need not call it.
  std::function<void(const Progress&)> on_progress;
  // Values for the middlewares and observers of the call: see context.hpp.
  Context context;
  // Does not use a pooled connection.
  bool fresh_connection = false;
  // Empty: the transport's.
  std::optional<Duration> connect_timeout;
  // The longest wait for the headers of the final response, from the start of the exchange, or from
  // the last part of the body that was sent. The body of the response may take longer.
  Duration response_timeout = kForever;
  // The headers of the final response must have been received by then. No retry begins later.
  Time respond_by = kNever;
  // The longest pause within the body of the response.
  Duration stall_timeout = kForever;
};

class HTTPRETRY_API Request {
 public:
  // Throws std::invalid_argument if `method` is not a token of RFC 9110. The URL is parsed when the
  // request is sent: a bad one gives an Outcome with Errc::InvalidRequest.
  Request(std::string method, std::string url);
  static Request get(std::string url);
  static Request head(std::string url);
  static Request del(std::string url);
  // Without a Content-Type: set the one that the body has.
  static Request post(std::string url, Body body);
  static Request put(std::string url, Body body);
  static Request patch(std::string url, Body body);

  Request(const Request& other) noexcept;
  // A moved-from Request may only be assigned or destroyed.
  Request(Request&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Request& operator=(const Request& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  ~Request() {
    if (data_ != nullptr) release();
  }

  [[nodiscard]] const std::string& method() const;
  [[nodiscard]] const std::string& url() const;
  [[nodiscard]] const Headers& headers() const;
  [[nodiscard]] const Body& body() const;
  [[nodiscard]] const RequestOptions& options() const;
  // Parsed once for all copies.
  [[nodiscard]] const Result<Url>& parsed_url() const;

  // Each changes this Request only. The header functions throw as those of Headers do.
  Request& set_method(std::string method);
  Request& set_url(std::string url);
  Request& set_header(std::string_view name, std::string_view value);
  Request& add_header(std::string_view name, std::string_view value);
  Request& remove_header(std::string_view name);
  Request& add_query(std::string_view name, std::string_view value);
  Request& set_body(Body body);
  // Sets the body and its Content-Type.
  Request& set_form(const Form& form);
  // For changes: request.edit_options().compressed = true.
  RequestOptions& edit_options();

  // Whether sending it twice has the same effect as sending it once. options().repeatable decides
  // if it is set. Otherwise true for GET HEAD OPTIONS TRACE PUT DELETE QUERY, and for any method
  // with an Idempotency-Key, If-Match or "If-None-Match: *" header or an ifGenerationMatch query
  // item.
  [[nodiscard]] bool repeatable() const;

 private:
  struct Data;
  Data& edit();
  void release() noexcept;
  Data* data_;  // nullptr: moved from
};

}  // namespace httpretry
