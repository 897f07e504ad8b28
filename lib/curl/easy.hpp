// Easy: one libcurl easy handle, used for one exchange after another. It remembers what is set on
// it, so that only differences are set for the next.
#pragma once

#include "send_plan.hpp"

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/transport.hpp>
#include <httpretry/http/request.hpp>

#include <curl/curl.h>

#include <array>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace httpretry {

// The callbacks of an exchange. They must not throw, nor call libcurl except getinfo.
class EasyListener {
 public:
  virtual ~EasyListener() = default;
  // False aborts. The port is our end of the connection's.
  virtual bool about_to_send(int local_port) noexcept = 0;
  virtual bool header_line(std::string_view line) noexcept = 0;
  enum class Taken { All, NotNow, Refused };  // NotNow: the same bytes again, after a pause
  virtual Taken body_bytes(std::string_view bytes) noexcept = 0;
  virtual std::size_t read_body(std::span<char> into) noexcept = 0;  // CURL_READFUNC_ABORT aborts
  virtual bool rewind_body() noexcept = 0;
};

// Opens and closes sockets for libcurl: the loop keeps them in its epoll set.
struct SocketHooks {
  curl_opensocket_callback open;
  curl_closesocket_callback close;
  void* loop;
};

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
  Easy(const TransportOptions& options, CURLSH* share, const SocketHooks& hooks, bool proxied);
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;

  [[nodiscard]] CURL* handle() const { return handle_.get(); }
  // Sets what the request needs. `request` must stay as it is until the exchange has ended.
  void prepare(const Request& request, const Url& url, const SendPlan& plan);

  // The cookies that the exchange brought, for the jar they were taken from.
  void return_cookies();

  void listen(EasyListener* listener) { listener_ = listener; }
  [[nodiscard]] const char* error_text() const { return error_text_.data(); }

 private:
  enum class Shape { Get, Head, Bytes, Stream };
  struct Cleanup {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  // What libcurl has no memory for must not be left out in silence: a method, a pin, an authority.
  template <class Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(handle(), option, value) == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  }
  void configure(const TransportOptions& options, CURLSH* share, const SocketHooks& hooks,
                 bool proxied);
  void configure_tls(const TransportOptions& options);
  void configure_proxy(const ProxyOptions& proxy, bool proxied);
  void configure_connections(const TransportOptions& options);
  void set_http_version(const Request& request, const Url& url, const SendPlan& plan);
  void set_certificate(bool wanted);
  void set_netrc(const std::string& file);
  void set_cookies(const Request& request, const Url& url);
  [[nodiscard]] std::vector<std::string> cookie_lines() const;
  [[nodiscard]] bool expects_continue(const Request& request, const SendPlan& plan) const;
  void set_url(const Url& url);
  void set_shape(const Request& request, const SendPlan& plan);
  void set_headers(const Request& request, const SendPlan& plan);
  void set_addresses(const std::string* entry);
  void set_credentials(const Credentials& credentials);
  void set_long(CURLoption option, long value, long& known);
  void set_upload_rate(std::uint64_t rate);
  void set_method(const char* method);

  static int on_prereq(void* self, char*, char*, int, int);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_read(char* data, std::size_t size, std::size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);

  const TransportOptions& options_;
  EasyListener* listener_ = nullptr;
  CurlList lines_;
  CurlList addresses_;
  CurlList connect_to_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};

  // What is set on the handle.
  std::optional<Url> url_;
  Shape shape_ = Shape::Get;
  std::string method_;
  long http_version_ = CURL_HTTP_VERSION_NONE;
  long fresh_connection_ = 0;
  long max_idle_seconds_ = -1;
  long connect_timeout_ms_ = 0;
  long timeout_ms_ = 0;
  long forbid_reuse_ = 0;
  long expect_timeout_ms_ = 1000;
  std::uint64_t upload_rate_ = 0;
  bool certified_ = false;
  std::vector<std::string> cookies_before_;

  std::unique_ptr<CURL, Cleanup> handle_;  // last: its clean-up may still call back
};

// Throws std::invalid_argument for options that make no sense.
void check(const TransportOptions& options);

// Whether a proxy variable that libcurl reads is set in the environment.
bool may_use_proxy(const ProxyOptions& options);

}  // namespace httpretry
