// Easy: a libcurl easy handle that is reused for one exchange after another. It remembers the
// options set on it, and sets only the differences for the next exchange.
#pragma once

#include "url_parts.hpp"

#include "lib/core/base/owned.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/curl/transport_options.hpp>

#include <curl/curl.h>

#include <array>

namespace httpretry {

class Transfer;
struct OriginInfo;

// Whether an exchange may use an idle connection from the pool.
enum class Pooling : std::uint8_t { Allowed, Forbidden };

// The parts of sending a request that the request itself does not specify: which of the client's
// secrets it may use, which connections, and the limits of time.
struct SendPlan {
  bool certificate = false;
  bool netrc = false;
  bool cookies = false;
  // An option is set on the handle that must not serve another request, so the handle is destroyed
  // after this one.
  bool private_handle = false;
  // Digest and the like: libcurl first gets a challenge, from the server or a proxy, by a request
  // without the body.
  bool asks_for_challenge = false;
  // The challenge may come from the server. The connection is then shared with no other request:
  // see Shard::negotiates.
  bool negotiates = false;
  // The credentials count for the whole connection (NTLM). So the request gets a new connection,
  // which is closed after it.
  bool own_connection = false;
  HttpVersion version = HttpVersion::Any;
  bool may_multiplex = false;  // the connection may turn out to speak HTTP/2

  bool streamed_body = false;   // the read callback provides the body
  std::int64_t body_size = -1;  // 0 without a body; -1 if unknown
  const char* range = nullptr;  // these two header lines ask for the rest of a body; may be nullptr
  const char* if_range = nullptr;

  bool fresh_connection = false;
  long max_idle_seconds = 0;  // use no connection that was idle for longer
  bool http2 = false;         // the origin is known to speak HTTP/2
  Duration connect_timeout{};
  const std::string* addresses = nullptr;  // the host's addresses, in the format of CURLOPT_RESOLVE

  [[nodiscard]] bool only_http2() const { return version == HttpVersion::Http2PriorKnowledge; }
};

// `limits` are those of the request; `origin` is what the loop knows about the URL's origin.
SendPlan plan_send(const Request& request, const ExchangeLimits& limits, const Url& url,
                   const Call& call, const TransportOptions& options, const OriginInfo& origin);

// Returns the error if the request cannot be sent as it is.
Result<void> check_sendable(const Request& request, const TransportOptions& options,
                            const SendPlan& plan);

// Describes the libcurl that the program runs with. Compare its `version_num` with
// CURL_VERSION_BITS.
inline const curl_version_info_data& libcurl() { return *curl_version_info(CURLVERSION_NOW); }

// Returns a value that curl_easy_getinfo reports for the handle's transfer.
template <class Value>
Value info(CURL* easy, CURLINFO what) {
  Value value{};
  curl_easy_getinfo(easy, what, &value);
  return value;
}

// The same for a text. Returns "" if there is no value.
inline std::string_view text_info(CURL* easy, CURLINFO what) {
  const auto* text = info<const char*>(easy, what);
  return text == nullptr ? std::string_view() : text;
}

// A list of libcurl (curl_slist) whose nodes are in one array. It does not own the texts.
class CurlList {
 public:
  void clear() { nodes_.clear(); }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  // `text` must live as long as the list is used.
  void add(const char* text) { nodes_.push_back({const_cast<char*>(text), nullptr}); }  // only read
  // Returns nullptr if the list is empty.
  curl_slist* chained() {
    for (std::size_t i = 1; i < nodes_.size(); ++i) nodes_[i - 1].next = &nodes_[i];
    return nodes_.empty() ? nullptr : nodes_.data();
  }

 private:
  std::vector<curl_slist> nodes_;
};

class Easy {
 public:
  Easy(const TransportOptions& options, bool with_proxy);
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;

  [[nodiscard]] CURL* handle() const { return handle_.get(); }
  // Sets what the request needs. `request` must not change until the exchange has ended.
  void prepare(const Request& request, const Url& url, const SendPlan& plan);

  // Puts the cookies that the exchange changed into the client's jar.
  void return_cookies();

  // Throws std::bad_alloc or std::runtime_error if libcurl refuses the value. A refusal must not be
  // ignored, because the value may be a method, a pin or an authority.
  template <class Value>
  void set(CURLoption option, Value value) {
    const auto code = curl_easy_setopt(handle(), option, value);
    if (code != CURLE_OK) fail(option, code);
  }

  Transfer* transfer = nullptr;    // the receiver of libcurl's callbacks
  bool closes_connection = false;  // the connection is closed after the exchange
  // The request waits, with "Expect: 100-continue", before it sends its body, and could do without.
  bool expects = false;
  // The size of the last body that was kept in memory. The next one on this handle probably has a
  // similar size.
  std::uint64_t expected_body = 0;
  std::array<char, CURL_ERROR_SIZE> error_text{};  // libcurl empties it before each exchange

 private:
  [[noreturn]] static void fail(CURLoption option, CURLcode code);
  // Sets an option that some builds of libcurl lack and that the library can do without.
  template <class Value>
  void set_if_known(CURLoption option, Value value) {
    const auto code = curl_easy_setopt(handle(), option, value);
    const bool unknown = code == CURLE_UNKNOWN_OPTION || code == CURLE_NOT_BUILT_IN;
    if (code != CURLE_OK && !unknown) fail(option, code);
  }
  // An empty text leaves libcurl's default.
  void set_text(CURLoption option, const std::string& text) {
    if (!text.empty()) set(option, text.c_str());
  }
  // libcurl does not copy the text, which lives in the options.
  void set_pem(CURLoption option, const std::string& pem) {
    curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_NOCOPY};  // only read
    set(option, pem.empty() ? nullptr : &blob);
  }
  void set_addresses(const SendPlan& plan);
  void set_curl_option(const CurlOption& option);  // already checked
  void configure_tls();
  void configure_proxy(bool with_proxy);
  void set_buffer_size();
  void set_http_version(const SendPlan& plan, bool tls);
  void set_pooling(const SendPlan& plan, bool tls);
  void set_certificate(bool use);
  void set_cookies(const Request& request, const Url& url);
  [[nodiscard]] std::vector<std::string> cookie_lines() const;
  void set_url(const Url& url);
  CURLU* updated_plain_url(const Url& url, const std::optional<Url>& previous);
  void set_method_and_body(const Request& request, const SendPlan& plan);
  void set_headers(const Request& request, const SendPlan& plan);
  void add_expect(const Request& request, const SendPlan& plan, bool is_signed);
  void set_credentials(const Credentials& credentials, CURLoption scheme, CURLoption user,
                       CURLoption password);

  const TransportOptions& options_;
  const std::string user_agent_;       // the header line for requests that have no User-Agent
  const std::string accept_encoding_;  // the header line for RequestOptions::compressed
  CurlList lines_;
  CurlList addresses_;
  CurlList connect_to_;
  CurlList proxy_lines_;

  // The options that are set on the handle.
  std::optional<Url> url_;
  detail::CurlUrl plain_url_;  // the last URL that the library has parsed itself
  std::string method_;
  bool sends_body_ = false;
  bool sends_length_0_ = false;
  std::vector<std::string> cookies_before_;

  Owned<CURL, curl_easy_cleanup> handle_;  // last, because its cleanup may still call back
};

// Returns whether libcurl might resume a TLS session for a request that must not use it.
bool would_share_session(const TransportOptions& options);

// Returns why the credentials cannot be sent, or nullptr if they can.
const char* problem_of(const Credentials& credentials);

// Throws std::invalid_argument for invalid options.
void check(const TransportOptions& options);

// Sets what requests with these options need on an unused handle. Throws std::runtime_error, with
// the name of the option, if this libcurl refuses one.
void try_out(const TransportOptions& options);

// Checks TransportOptions::curl_options. Throws std::invalid_argument.
void check_curl_options(const std::vector<CurlOption>& options);

// Returns whether a certificate is given, as a file or in memory.
inline bool has_certificate(const ClientCertificate& certificate) {
  return !certificate.file.empty() || !certificate.pem.empty();
}

// Returns whether a proxy variable that libcurl reads is set in the environment, unless the options
// decide it.
bool may_use_proxy(const ProxyOptions& options);

}  // namespace httpretry
