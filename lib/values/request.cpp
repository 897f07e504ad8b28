#include <httpretry/request.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>

namespace httpretry {

Credentials::Credentials() = default;
Credentials::Credentials(Scheme how, std::string name, std::string secret)
    : scheme(how), user(std::move(name)), password(std::move(secret)) {}
Credentials::~Credentials() = default;
Credentials::Credentials(const Credentials&) = default;
Credentials::Credentials(Credentials&&) noexcept = default;
Credentials& Credentials::operator=(const Credentials&) = default;
Credentials& Credentials::operator=(Credentials&&) noexcept = default;

RequestOptions::RequestOptions() = default;
RequestOptions::~RequestOptions() = default;
RequestOptions::RequestOptions(const RequestOptions&) = default;
RequestOptions::RequestOptions(RequestOptions&&) noexcept = default;
RequestOptions& RequestOptions::operator=(const RequestOptions&) = default;
RequestOptions& RequestOptions::operator=(RequestOptions&&) noexcept = default;

struct Request::Data {
  Data(std::string method_, std::string url_) : method(std::move(method_)), url(std::move(url_)) {}
  Data(const Data& other)
      : method(other.method),
        url(other.url),
        headers(other.headers),
        body(other.body),
        options(other.options) {}
  Data& operator=(const Data&) = delete;
  ~Data() { forget_parsed(); }

  void forget_parsed() { delete parsed.exchange(nullptr); }

  std::atomic<int> owners = 1;
  std::string method;
  std::string url;
  Headers headers;
  Body body;
  RequestOptions options;
  mutable std::atomic<const Result<Url>*> parsed = nullptr;
};

namespace {

std::string checked_method(std::string method) {
  if (!valid_header_name(method)) {
    throw std::invalid_argument(
        "a request method must be a token of RFC 9110, such as GET or PROPFIND");
  }
  return method;
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

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
  data_->owners.fetch_add(1, std::memory_order_relaxed);
}
Request::Request(Request&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
Request& Request::operator=(const Request& other) noexcept { return *this = Request(other); }
Request& Request::operator=(Request&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}
Request::~Request() {
  if (data_ != nullptr && data_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete data_;
}

const std::string& Request::method() const { return data_->method; }
const std::string& Request::url() const { return data_->url; }
const Headers& Request::headers() const { return data_->headers; }
const Body& Request::body() const { return data_->body; }
const RequestOptions& Request::options() const { return data_->options; }

const Result<Url>& Request::parsed_url() const {
  const auto* known = data_->parsed.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto* mine = new Result<Url>(Url::parse(data_->url));
  // Another thread may have been first; then its result serves both.
  if (data_->parsed.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) return *mine;
  delete mine;
  return *known;
}

Request::Data& Request::edit() {
  if (data_->owners.load(std::memory_order_acquire) != 1) {
    Request shared(std::move(*this));
    data_ = new Data(*shared.data_);
  }
  return *data_;
}

Request& Request::set_method(std::string method) {
  method = checked_method(std::move(method));
  edit().method = std::move(method);
  return *this;
}
Request& Request::set_url(std::string url) {
  auto& data = edit();
  data.url = std::move(url);
  data.forget_parsed();
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
Request& Request::set_body(Body body) {
  edit().body = std::move(body);
  return *this;
}
RequestOptions& Request::edit_options() { return edit().options; }

bool Request::repeatable() const {
  if (options().repeatable) return *options().repeatable;
  if (one_of(method(), {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"})) return true;
  if (headers().contains("Idempotency-Key") || headers().contains("If-Match")) return true;
  if (headers().get("If-None-Match") == "*") return true;
  const auto& parsed = parsed_url();
  return parsed && ("&" + parsed->query()).find("&ifGenerationMatch=") != std::string::npos;
}

}  // namespace httpretry
