#include <httpretry/http/request.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>

namespace httpretry {

Credentials::Credentials(Scheme how, std::string name, std::string secret)
    : scheme(how), user(std::move(name)), password(std::move(secret)) {}

namespace {

std::string checked_method(std::string method) {
  if (valid_header_name(method)) return method;
  throw std::invalid_argument(
      "a request method must be a token of RFC 9110, such as GET or PROPFIND");
}

// Returns the data of a Request. Aborts if it was moved from.
template <class Data>
Data& checked(Data* data) {
  if (data == nullptr) detail::misuse("a Request was used after it was moved from");
  return *data;
}

}  // namespace

// Shared by several handles. A handle that changes it copies it first, unless it is the only one.
struct Request::Data {
  Data(std::string method_, std::string url_) : method(std::move(method_)), url(std::move(url_)) {}
  // Copies the parsed URL only if it is complete, because another thread may be parsing it.
  Data(const Data& other)
      : method(other.method),
        url(other.url),
        headers(other.headers),
        body(other.body),
        options(other.options),
        keeps_dot_segments(other.keeps_dot_segments),
        parsed(other.is_parsed.load(std::memory_order_acquire) ? other.parsed : std::nullopt),
        is_parsed(parsed.has_value()) {}
  Data& operator=(const Data&) = delete;
  ~Data() = default;

  const Result<Url>& parsed_url() const {
    if (!is_parsed.load(std::memory_order_acquire)) {
      std::call_once(*parsing, [this] {
        parsed = Url::parse(url, keeps_dot_segments);
        is_parsed.store(true, std::memory_order_release);
      });
    }
    return *parsed;
  }
  // May be called only by the only owner.
  void set_url(std::string changed) {
    url = std::move(changed);
    parsing.emplace();
    is_parsed = false;
  }

  std::atomic<int> owners = 1;
  std::string method;
  std::string url;
  Headers headers;
  Body body;
  detail::HeapOptional<RequestOptions> options;  // empty for most requests, which use the defaults
  bool keeps_dot_segments = false;

 private:
  mutable std::optional<std::once_flag> parsing{std::in_place};
  mutable std::optional<Result<Url>> parsed;
  mutable std::atomic<bool> is_parsed = false;
};

Request::Request(std::string method, std::string url)
    : data_(new Data(checked_method(std::move(method)), std::move(url))) {}

Request Request::get(std::string url) { return {"GET", std::move(url)}; }
Request Request::head(std::string url) { return {"HEAD", std::move(url)}; }
Request Request::del(std::string url) { return {"DELETE", std::move(url)}; }
Request Request::post(std::string url, Body body) {
  return Request("POST", std::move(url)).set_body(std::move(body));
}
Request Request::put(std::string url, Body body) {
  return Request("PUT", std::move(url)).set_body(std::move(body));
}
Request Request::patch(std::string url, Body body) {
  return Request("PATCH", std::move(url)).set_body(std::move(body));
}

Request::Request(const Request& other) noexcept : data_(other.data_) {
  if (data_ != nullptr) data_->owners.fetch_add(1, std::memory_order_relaxed);
}
Request& Request::operator=(const Request& other) noexcept { return *this = Request(other); }
Request& Request::operator=(Request&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}
void Request::release() noexcept {
  if (data_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete data_;
}

const std::string& Request::method() const { return checked(data_).method; }
const std::string& Request::url() const { return checked(data_).url; }
const Headers& Request::headers() const { return checked(data_).headers; }
const Body& Request::body() const { return checked(data_).body; }
const RequestOptions& Request::options() const {
  static const RequestOptions defaults;
  const auto& own = checked(data_).options;
  return own ? *own : defaults;
}

const Result<Url>& Request::parsed_url() const { return checked(data_).parsed_url(); }

Request::Data& Request::edit() {
  if (checked(data_).owners.load(std::memory_order_acquire) != 1) {
    auto* const mine = new Data(*data_);
    release();
    data_ = mine;
  }
  return *data_;
}

Request& Request::set_method(std::string method) {
  auto checked = checked_method(std::move(method));
  edit().method = std::move(checked);
  return *this;
}
Request& Request::set_url(std::string url) {
  edit().set_url(std::move(url));
  return *this;
}
Request& Request::set_header(std::string_view name, std::string_view value) {
  edit().headers.set(name, value);
  return *this;
}
Request& Request::add_header(std::string_view name, std::string_view value) {
  edit().headers.add(name, value);
  return *this;
}
Request& Request::remove_header(std::string_view name) {
  if (headers().contains(name)) edit().headers.remove(name);
  return *this;
}
Request& Request::add_query(std::string_view name, std::string_view value) {
  return set_url(with_query(url(), name, value));
}
Request& Request::keep_dot_segments() {
  edit().keeps_dot_segments = true;
  return set_url(url());  // so that the URL is parsed again
}
Request& Request::set_body(Body body) {
  edit().body = std::move(body);
  return *this;
}
RequestOptions& Request::edit_options() {
  auto& options = edit().options;
  if (!options) options = detail::HeapOptional<RequestOptions>(std::in_place);
  return *options;
}

// Returns whether a server may receive the request twice: if its options say so, if its method is
// idempotent, or if a header or a query item makes the server refuse a repetition.
bool Request::repeatable() const {
  if (options().repeatable) return *options().repeatable;
  constexpr std::array<std::string_view, 7> kIdempotent{"GET", "HEAD",   "OPTIONS", "TRACE",
                                                        "PUT", "DELETE", "QUERY"};
  if (std::find(kIdempotent.begin(), kIdempotent.end(), method()) != kIdempotent.end()) return true;
  if (headers().contains("Idempotency-Key") || headers().contains("If-Match")) return true;
  if (headers().get("If-None-Match") == "*") return true;
  const auto& parsed = parsed_url();
  if (!parsed || parsed->query().empty()) return false;
  // Google Cloud Storage changes an object only if it still has this generation.
  return ("&" + std::string(parsed->query())).find("&ifGenerationMatch=") != std::string::npos;
}

}  // namespace httpretry
