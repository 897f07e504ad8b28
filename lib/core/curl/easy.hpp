// Easy: one libcurl easy handle, used for one exchange after another. It remembers what is set on
// it, so that only differences are set for the next.
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

// How one request goes out, where its own members do not say it: what of the client's secrets it
// may use, which connections, and how long.
struct SendPlan {
  bool certificate = false;
  bool netrc = false;
  bool cookies = false;
  // Something is set on the handle that must not serve another request: it is destroyed after this.
  bool private_handle = false;
  // libcurl asks for a challenge first, by a request without the body (Digest).
  bool asks_for_challenge = false;
  // So it may, of the server. It shares no connection with other requests: see Shard::negotiates.
  bool negotiates = false;
  HttpVersion http_version = HttpVersion::Any;
  bool may_multiplex = false;  // the connection may turn out to speak HTTP/2

  bool streamed_body = false;   // the read callback gives the body
  std::int64_t body_size = -1;  // 0 if there is no body; -1 is unknown
  const char* range = nullptr;  // header lines that ask for the rest of a body
  const char* if_range = nullptr;

  bool fresh_connection = false;
  long max_idle_seconds = 0;  // use no connection that was idle for longer
  bool http2 = false;         // the origin is known to speak it
  Duration connect_timeout{};
  const std::string* addresses = nullptr;  // of the host, as CURLOPT_RESOLVE takes them
};

// `limits`: of the request; `origin`: what is known of the URL's.
SendPlan make_send_plan(const Request& request, const ExchangeLimits& limits, const Url& url,
                        const Call& call, const TransportOptions& options,
                        const OriginInfo& origin);

// The error where the request cannot be sent as it stands.
Result<void> check_sendable(const Request& request, const TransportOptions& options,
                            const SendPlan& plan);

// Returns a value that curl_easy_getinfo gives for the transfer of this handle.
template <class Value>
Value info(CURL* easy, CURLINFO what) {
  Value value{};
  curl_easy_getinfo(easy, what, &value);
  return value;
}

// Returns a text likewise; empty if there is none.
inline std::string_view text_info(CURL* easy, CURLINFO what) {
  const auto* text = info<const char*>(easy, what);
  return text == nullptr ? std::string_view() : text;
}

// libcurl's list nodes, in an array that owns no text.
class CurlList {
 public:
  void clear() { nodes_.clear(); }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  // `text` must live as long as the list is used.
  void add(const char* text) { nodes_.push_back({const_cast<char*>(text), nullptr}); }  // only read
  // nullptr where there are none.
  curl_slist* chained() {
    for (std::size_t i = 1; i < nodes_.size(); ++i) nodes_[i - 1].next = &nodes_[i];
    return nodes_.empty() ? nullptr : nodes_.data();
  }

 private:
  std::vector<curl_slist> nodes_;
};

class Easy {
 public:
  Easy(const TransportOptions& options, bool proxied);
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;

  [[nodiscard]] CURL* handle() const { return handle_.get(); }
  // Sets what the request needs. `request` must stay as it is until the exchange has ended.
  void prepare(const Request& request, const Url& url, const SendPlan& plan);

  // The cookies that the exchange brought, for the jar they were taken from.
  void return_cookies();

  // Throws std::bad_alloc or std::runtime_error if libcurl refuses the value. A refusal must not be
  // ignored: the value may be a method, a pin or an authority.
  template <class Value>
  void set(CURLoption option, Value value) {
    const auto code = curl_easy_setopt(handle(), option, value);
    if (code != CURLE_OK) refused(option, code);
  }

  Transfer* transfer = nullptr;    // whose exchange it is: libcurl's callbacks go there
  bool closes_connection = false;  // after the exchange
  bool expects = false;  // the request asks with "Expect: 100-continue" before its body is sent
  // How much of a body went into memory: the next one on this handle is likely as large.
  std::uint64_t expected_body = 0;
  std::array<char, CURL_ERROR_SIZE> error_text{};  // emptied by libcurl before an exchange

 private:
  [[noreturn]] static void refused(CURLoption option, CURLcode code);
  // Sets an option that some builds of libcurl lack and that the library can do without.
  template <class Value>
  void set_if_known(CURLoption option, Value value) {
    const auto code = curl_easy_setopt(handle(), option, value);
    const bool unknown = code == CURLE_UNKNOWN_OPTION || code == CURLE_NOT_BUILT_IN;
    if (code != CURLE_OK && !unknown) refused(option, code);
  }
  // An empty text leaves libcurl's default.
  void set_text(CURLoption option, const std::string& text) {
    if (!text.empty()) set(option, text.c_str());
  }
  // libcurl does not copy the text, which is one of the options.
  void set_pem(CURLoption option, const std::string& pem) {
    curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_NOCOPY};  // only read
    set(option, pem.empty() ? nullptr : &blob);
  }
  void set_other(const CurlOption& option);  // which was checked
  void configure_tls();
  void configure_proxy();
  void set_http_version(const SendPlan& plan, bool tls, bool tells_tls);
  void set_certificate(bool wanted);
  void set_cookies(const Request& request, const Url& url);
  [[nodiscard]] std::vector<std::string> cookie_lines() const;
  void set_url(const Url& url);
  void set_shape(const Request& request, const SendPlan& plan);
  void set_headers(const Request& request, const SendPlan& plan);
  void set_credentials(const Credentials& credentials, CURLoption scheme, CURLoption user,
                       CURLoption password);

  const TransportOptions& options_;
  const std::string user_agent_;  // the line of requests that have none
  CurlList lines_;
  CurlList addresses_;
  CurlList connect_to_;

  // What is set on the handle.
  std::optional<Url> url_;
  detail::CurlUrl plain_url_;  // the same, where it is plain
  std::string method_;
  bool sends_body_ = false;
  bool sends_length_0_ = false;
  std::vector<std::string> cookies_before_;

  Owned<CURL, curl_easy_cleanup> handle_;  // last: its clean-up may still call back
};

// Why these cannot be sent; nullptr where they can.
const char* unusable(const Credentials& credentials);

// Throws std::invalid_argument for options that make no sense.
void check(const TransportOptions& options);

// Sets what requests with these options need on a handle that is not used. Throws
// std::runtime_error, with the name of the option, if this libcurl refuses one.
void try_out(const TransportOptions& options);

void check_others(const std::vector<CurlOption>& options);

// Whether there is one, in files or in memory.
inline bool present(const ClientCertificate& certificate) {
  return !certificate.file.empty() || !certificate.pem.empty();
}

// Whether a proxy variable that libcurl reads is set in the environment.
bool may_use_proxy(const ProxyOptions& options);

}  // namespace httpretry
