// Request: what is to be sent. A thin handle, two pointers, on shared data that is copied when it
// is changed: copying is cheap, and a middleware that changes its copy changes nobody else's.
//
//   auto request = Request::post("https://api.example.com/v1/orders", R"({"sku": 7})")
//                      .set_header("Content-Type", "application/json");
//
// One Request object may be sent from many threads at once; changing one while another thread uses
// the same object needs the usual care.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/http/body.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/http/url.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// ConnectionFacts: what the transport knows of the connection of one exchange, for those who ask
// with RequestOptions::on_connection. Nobody else pays for it.
struct HTTPRETRY_API ConnectionFacts {
  ConnectionFacts() = default;

  std::string remote_ip;  // the proxy's, where there is one; empty without a connection
  std::string local_ip;
  int remote_port = 0;
  int local_port = 0;
  int new_connections = 0;          // 0: a pooled one was used
  std::uint64_t request_bytes = 0;  // of the request's head, as it went out
  // 0, or OpenSSL's number for what is wrong with the certificate.
  long verify_result = 0;
  long proxy_verify_result = 0;
  int proxy_status = 0;  // what a proxy answered to CONNECT
  // The server's chain as readable text, each with its PEM at the end. Of a new connection only.
  std::vector<std::string> certificates;
};

struct RetryPolicy;
class Sink;

enum class HttpVersion : std::uint8_t {
  Any,    // HTTP/2 where TLS negotiates it, else HTTP/1.1
  Http1,  // HTTP/1.1 only
  // HTTP/2 from the first byte. Without TLS and with a libcurl older than 8.0, which cannot use
  // such a connection twice, each exchange has a connection of its own.
  Http2PriorKnowledge,
};

// A name and a password, for the server to ask for. They go to the origin of the request alone.
struct HTTPRETRY_API Credentials {
  enum class Scheme : std::uint8_t { Basic, Digest };
  Credentials() = default;
  Credentials(Scheme how, std::string name, std::string secret);

  Scheme scheme = Scheme::Basic;
  std::string user;
  std::string password;
};

// What belongs to one request and is no part of its text.
struct HTTPRETRY_API RequestOptions {
  RequestOptions() = default;

  // false: the retry stage sends it once, whatever its policy says.
  bool retry = true;
  // Used instead of the endpoint's policy.
  std::shared_ptr<const RetryPolicy> policy;
  // Whether sending it twice does no more than sending it once. Left out, the method and the
  // headers say: see Request::repeatable.
  std::optional<bool> repeatable;
  // Ask for gzip and hand out the decoded body.
  bool compressed = false;
  HttpVersion http_version = HttpVersion::Any;
  std::optional<Credentials> credentials;
  // Asks the server ("Expect: 100-continue") before it sends a body of so many bytes or more, or of
  // unknown size. Where an answer comes instead, the body was not touched, and one that can be read
  // only once can still be sent again. A server that cannot be asked answers 417. HTTP/1.1 only;
  // left out, nobody is asked.
  std::optional<std::uint64_t> expect_continue_from;
  // How long it waits for the server's word before it sends all the same.
  Duration expect_timeout = std::chrono::seconds(1);
  // Where the body of a good answer goes instead of into memory: see sink.hpp.
  std::shared_ptr<Sink> sink;
  // Bytes of body (decoded) that are taken into memory; the client's limit where left out.
  std::optional<std::uint64_t> max_body;
  // The body goes out with at most so many bytes a second.
  std::optional<std::uint64_t> upload_rate;
  // Hears of the connection of each exchange, retries and redirects included, on the thread that
  // drives the call. It must not send.
  std::function<void(const ConnectionFacts&)> on_connection;
  // No pooled connection.
  bool fresh_connection = false;
  // The transport's where left out.
  std::optional<Duration> connect_timeout;
  // The final header block must have come by then; a body may take longer.
  Time answer_by = kNever;
  // The longest pause within the body of the answer.
  Duration stall_timeout = kForever;
};

class HTTPRETRY_API Request {
 public:
  // Throws std::invalid_argument where `method` is not a token of RFC 9110. The URL is looked at
  // when the request is sent: a bad one is an Outcome with Errc::InvalidRequest.
  Request(std::string method, std::string url);
  static Request get(std::string url);
  static Request head(std::string url);
  static Request del(std::string url);
  // No Content-Type is made up for a body: set the one that it has.
  static Request post(std::string url, Body body);
  static Request put(std::string url, Body body);
  static Request patch(std::string url, Body body);

  Request(const Request& other) noexcept;
  // A moved-from Request may only be assigned or destroyed.
  Request(Request&& other) noexcept
      : text_(std::exchange(other.text_, nullptr)),
        options_(std::exchange(other.options_, nullptr)) {}
  Request& operator=(const Request& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  ~Request() {
    if (text_ != nullptr) release();
  }

  [[nodiscard]] const std::string& method() const;
  [[nodiscard]] const std::string& url() const;
  [[nodiscard]] const Headers& headers() const;
  [[nodiscard]] const Body& body() const;
  [[nodiscard]] const RequestOptions& options() const;
  // The URL, parsed once for all copies.
  [[nodiscard]] const Result<Url>& parsed_url() const;

  // Each changes this handle only. The header functions throw as those of Headers do.
  Request& set_method(std::string method);
  Request& set_url(std::string url);
  Request& set_header(std::string_view name, std::string_view value);
  Request& add_header(std::string_view name, std::string_view value);
  Request& remove_header(std::string_view name);
  Request& add_query(std::string_view name, std::string_view value);
  Request& set_body(Body body);
  // The body, and the Content-Type that goes with it.
  Request& set_form(const Form& form);
  // The options, for changing: request.edit_options().compressed = true.
  RequestOptions& edit_options();

  // Whether sending it twice does no more than sending it once: what options().repeatable says,
  // else GET HEAD OPTIONS TRACE PUT DELETE QUERY, and any method with an Idempotency-Key, If-Match
  // or "If-None-Match: *" header or an ifGenerationMatch query item.
  [[nodiscard]] bool repeatable() const;

 private:
  struct Text;     // all that is sent
  struct Options;  // the options; most requests have none of their own
  Text& edit();
  void release() noexcept;
  Text* text_;  // nullptr: moved from
  Options* options_ = nullptr;
};

}  // namespace httpretry
