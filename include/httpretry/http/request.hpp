// Request, its options, and what a request can report while it is sent.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/body.hpp>
#include <httpretry/http/context.hpp>
#include <httpretry/http/url.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// The connection that carried one exchange, for RequestOptions::on_connection.
struct HTTPRETRY_API ConnectionInfo {
  ConnectionInfo() = default;

  std::string remote_ip;  // of the proxy, if there is one; empty if there was no connection
  std::string local_ip;
  int remote_port = 0;
  int local_port = 0;
  int new_connections = 0;          // 0 if a pooled connection was used
  std::uint64_t request_bytes = 0;  // the size of the request without its body
  // OpenSSL's error code for the certificate, or 0.
  long verify_result = 0;
  long proxy_verify_result = 0;
  int proxy_status = 0;  // the status of the proxy's response to CONNECT
  // The TLS version and cipher in libcurl's words, "TLSv1.3 / TLS_AES_256_GCM_SHA384". Set only for
  // a new connection.
  std::string tls;
  // The server's certificate chain as readable text, each certificate followed by its PEM. Set only
  // for a new connection.
  std::vector<std::string> certificates;
};

// The progress of the bodies of one exchange, for RequestOptions::on_progress.
struct HTTPRETRY_API Progress {
  Progress() = default;
  bool operator==(const Progress&) const = default;

  std::uint64_t sent = 0;                // bytes of the request body
  std::optional<std::uint64_t> to_send;  // its size; nullopt if unknown
  // Bytes of the response body as received. A compressed body is counted before decoding.
  std::uint64_t received = 0;
  std::optional<std::uint64_t> to_receive;  // its size; nullopt if unknown, or not yet known
  // The position of the received bytes in the whole body. Not 0 if the sink already has the first
  // part and the server sends the rest.
  std::uint64_t offset = 0;
};

struct RetryPolicy;
class Sink;

// Determines which requests are sent first when several wait for a rate or a concurrency limit.
enum class Priority : std::uint8_t { High, Normal, Low };

// The HTTP version of a request.
enum class HttpVersion : std::uint8_t {
  Any,    // HTTP/2 if TLS negotiates it, otherwise HTTP/1.1
  Http1,  // HTTP/1.1 only
  // HTTP/2 from the first byte. Without TLS, libcurl before 8.0 cannot reuse such a connection, so
  // each exchange opens a new one.
  Http2PriorKnowledge,
};

// A user name and a password, used when the server requests them and sent only to the origin of the
// request. Requests with Digest, Ntlm and Any use HTTP/1.1; see lib/core/curl/README.md.
struct HTTPRETRY_API Credentials {
  // The method of authentication.
  enum class Scheme : std::uint8_t {
    Basic,
    Digest,
    // NTLM authenticates a connection. So each request has a connection that no other request uses.
    Ntlm,
    // The best of the three above that the server offers. The first request is sent without
    // credentials. Each request has connections that no other request uses.
    Any,
    // Signs the request with AWS Signature Version 4. `user` is the id of the access key,
    // `password` the secret key. The body must be in memory, unless a header "x-amz-content-sha256"
    // has its hash. The query must be sorted by name and percent-encoded. Each attempt has a new
    // signature.
    AwsSigV4,
  };
  Credentials() = default;
  Credentials(Scheme how, std::string name, std::string secret);

  Scheme scheme = Scheme::Basic;
  std::string user;
  std::string password;
  // For AwsSigV4: "PROVIDER1[:PROVIDER2[:REGION[:SERVICE]]]", such as "aws:amz:eu-central-1:s3".
  // Region and service are taken from the host name if they are not given.
  std::string signer;
};

// The policy of one request: a RetryPolicy, or a pointer to one that many requests share. If empty,
// the endpoint's policy applies.
class CallPolicy : public std::shared_ptr<const RetryPolicy> {
 public:
  using std::shared_ptr<const RetryPolicy>::shared_ptr;
  CallPolicy() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  CallPolicy(std::shared_ptr<const RetryPolicy> shared) noexcept : shared_ptr(std::move(shared)) {}
  template <std::same_as<RetryPolicy> Policy>
  CallPolicy(Policy policy)  // NOLINT(google-explicit-constructor)
      : shared_ptr(std::make_shared<const Policy>(std::move(policy))) {}
};

// The options of one request. They are not part of the HTTP message.
struct HTTPRETRY_API RequestOptions {
  RequestOptions() = default;

  // False sends the request once, whatever the policy is.
  bool retry = true;
  // Used instead of the endpoint's policy. The request ends with Errc::InvalidRequest if `check`
  // rejects this policy, or if the client has no retry() or lacks a middleware that the policy
  // needs (ClientOptions::middlewares).
  CallPolicy policy;
  // The limit of the whole call, as in CallOptions. The earlier one applies.
  Duration timeout = kForever;
  // Used instead of the policy's priority.
  std::optional<Priority> priority;
  // The amount that each send takes from a rate that counts costs (RatePolicy::Counts::Cost).
  // 0 takes nothing.
  std::uint64_t cost = 1;
  // Whether sending the request twice has the same effect as sending it once. If empty,
  // Request::repeatable derives it from the method and the headers.
  std::optional<bool> repeatable;
  // Requests a compressed response and decodes the body: gzip, or one of
  // TransportOptions::content_codings. A success that cannot be decoded is an error; the body of a
  // failure is then kept as it came.
  bool compressed = false;
  // Compresses the body of the request: "gzip", or the name of one of
  // TransportOptions::content_codings. Sends Content-Encoding, and for a body that is not in memory
  // or larger than 1 MiB no Content-Length. Ignored if the request already has Content-Encoding or
  // a header such as Content-Digest that describes the bytes. If the server responds 415, the
  // request is sent once more without compression, which does not count as a retry
  // (Attempt::wire_sends is then 2); if that succeeds, later bodies for the origin are not
  // compressed. A custom transport need not do it.
  std::string compress_with;
  HttpVersion http_version = HttpVersion::Any;
  std::optional<Credentials> credentials;
  // Sends "Expect: 100-continue" before a body of at least this many bytes, or of unknown size.
  // Empty means never. If the server responds with a final status instead, the body has not been
  // read, so a body that can be read only once can still be sent. A server that does not support
  // Expect responds 417. The request is then sent once more without Expect, which does not count as
  // a retry. A request that already has an Expect header is treated the same way. HTTP/1.1 only.
  std::optional<std::uint64_t> expect_continue_from;
  // The body is sent after this time even if the server has not responded. The default is
  // libcurl's.
  Duration expect_timeout = std::chrono::seconds(1);
  // Receives the body of a successful response instead of Response::body; see sink.hpp.
  std::shared_ptr<Sink> sink;
  // The maximum size of the decoded body in memory, in bytes. If empty, the client's limit applies.
  std::optional<std::uint64_t> max_body;
  // The maximum number of body bytes sent per second. 0 is no limit.
  std::optional<std::uint64_t> upload_rate;
  // Called for each exchange, including those of retries and redirects, on the thread that drives
  // the call. It must not send. If it throws, the call ends with Errc::Internal.
  std::function<void(const ConnectionInfo&)> on_connection;
  // Called for each exchange, including those of retries and redirects: once before anything is
  // sent, and then whenever part of a body was sent or received, often many times a second. It runs
  // on the thread that drives the call, so it must not block and must not send. If it throws, the
  // call ends with Errc::Internal. A custom transport need not call it.
  std::function<void(const Progress&)> on_progress;
  // Values for the middlewares and observers of the call; see context.hpp.
  Context context;
  // True prevents the use of a pooled connection.
  bool fresh_connection = false;
  // If empty, the policy's or the transport's timeout applies.
  std::optional<Duration> connect_timeout;
  // The longest wait for the headers of the final response, measured from the start of the
  // exchange, or from the last time that part of the body was sent. The body of the response may
  // take longer.
  Duration response_timeout = kForever;
  // The time by which the headers of the final response must have been received. No retry begins
  // later.
  Time respond_by = kNever;
  // The longest pause within the body of the response.
  Duration stall_timeout = kForever;
};

// Request is a request to send: method, URL, headers, body and options. It is a value. Copies are
// cheap, because they share their data until one of them is changed; so a middleware that changes
// its copy changes no other.
//
//   auto request = Request::post("https://api.example.com/v1/orders", R"({"sku": 7})")
//                      .set_header("Content-Type", "application/json");
//
// Many threads may send one Request object at once, or use different copies of it in any way.
// Changing an object while another thread uses the same object needs synchronization.
class HTTPRETRY_API Request {
 public:
  // Throws std::invalid_argument if `method` is not a token of RFC 9110. The URL is parsed when the
  // request is sent; an invalid one results in Errc::InvalidRequest.
  Request(std::string method, std::string url);
  // Return a request with the method GET, HEAD or DELETE.
  static Request get(std::string url);
  static Request head(std::string url);
  static Request del(std::string url);
  // `post`, `put` and `patch` set no Content-Type. Set the one that fits the body.
  static Request post(std::string url, Body body);
  static Request put(std::string url, Body body);
  static Request patch(std::string url, Body body);
  // `post`, `put` and `patch` with a value that BodyOf makes a body: a form, or JSON
  // (json/nlohmann.hpp). They set its Content-Type.
  template <HasBody T>
  static Request post(std::string url, const T& value) {
    return post(std::move(url), Body()).set_body(value);
  }
  template <HasBody T>
  static Request put(std::string url, const T& value) {
    return put(std::move(url), Body()).set_body(value);
  }
  template <HasBody T>
  static Request patch(std::string url, const T& value) {
    return patch(std::move(url), Body()).set_body(value);
  }

  Request(const Request& other) noexcept;
  // A moved-from Request may only be copied, assigned or destroyed. Any other use aborts with a
  // message.
  Request(Request&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Request& operator=(const Request& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  ~Request() {
    if (data_ != nullptr) release();
  }

  // Return the parts of the request.
  [[nodiscard]] const std::string& method() const;
  [[nodiscard]] const std::string& url() const;
  [[nodiscard]] const Headers& headers() const;
  [[nodiscard]] const Body& body() const;
  [[nodiscard]] const RequestOptions& options() const;
  // Returns the parsed URL. It is parsed once for all copies.
  [[nodiscard]] const Result<Url>& parsed_url() const;

  // The setters change only this Request. The header functions throw like those of Headers.
  Request& set_method(std::string method);
  Request& set_url(std::string url);
  Request& set_header(std::string_view name, std::string_view value);
  Request& add_header(std::string_view name, std::string_view value);
  Request& remove_header(std::string_view name);
  Request& add_query(std::string_view name, std::string_view value);
  // Makes this URL, and those that are set later, keep segments "." and ".." in their paths. By
  // default they are resolved: "/a/../b" is sent as "/b".
  Request& keep_dot_segments();
  // Sets the body, and no Content-Type.
  Request& set_body(Body body);
  // Sets the body and its Content-Type.
  template <HasBody T>
  Request& set_body(const T& value) {
    return set_body(Body(BodyOf<T>::body(value)))
        .set_header("Content-Type", BodyOf<T>::content_type(value));
  }
  // Sets a form as the body, with its Content-Type.
  Request& set_form(const Form& form) { return set_body(form); }
  // Returns the options for changes: request.edit_options().compressed = true.
  RequestOptions& edit_options();

  // Set a header, and the options of these names, in one expression:
  //   client.send(Request::put(url, body).header("Accept", "text/plain").timeout(1.5s))
  Request& header(std::string_view name, std::string_view value) { return set_header(name, value); }
  Request& timeout(Duration limit) { return edit_options().timeout = limit, *this; }
  Request& cost(std::uint64_t amount) { return edit_options().cost = amount, *this; }
  Request& policy(CallPolicy rules) { return edit_options().policy = std::move(rules), *this; }
  Request& credentials(Credentials login) {
    return edit_options().credentials = std::move(login), *this;
  }
  Request& compress_with(std::string coding) {
    return edit_options().compress_with = std::move(coding), *this;
  }
  Request& sink(std::shared_ptr<Sink> destination) {
    return edit_options().sink = std::move(destination), *this;
  }
  Request& on_progress(std::function<void(const Progress&)> function) {
    return edit_options().on_progress = std::move(function), *this;
  }

  // Returns whether sending the request twice has the same effect as sending it once.
  // options().repeatable decides if it is set. Otherwise this is true for GET, HEAD, OPTIONS,
  // TRACE, PUT, DELETE and QUERY. It is true for any method if there is an Idempotency-Key,
  // If-Match or "If-None-Match: *" header, or an ifGenerationMatch query item.
  [[nodiscard]] bool repeatable() const;

 private:
  struct Data;
  Data& edit();
  void release() noexcept;
  Data* data_;  // nullptr in a moved-from Request
};

}  // namespace httpretry
