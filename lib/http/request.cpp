#include <httpretry/http/request.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace httpretry {

Credentials::Credentials(Scheme how, std::string name, std::string secret)
    : scheme(how), user(std::move(name)), password(std::move(secret)) {}

namespace {

// Shared by several handles. A handle that changes it takes a copy first, unless it is the only
// one.
struct Shared {
  Shared() = default;
  Shared(const Shared& /*other*/) {}
  Shared& operator=(const Shared&) = delete;
  std::atomic<int> owners = 1;
};

template <class T>
T* retain(T* shared) {
  if (shared != nullptr) shared->owners.fetch_add(1, std::memory_order_relaxed);
  return shared;
}

template <class T>
void release_one(T* shared) {
  if (shared != nullptr && shared->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete shared;
}

template <class T>
T& own(T*& shared) {
  if (shared->owners.load(std::memory_order_acquire) != 1) {
    auto* mine = new T(*shared);
    release_one(std::exchange(shared, mine));
  }
  return *shared;
}

// The usual ones are shared by all requests.
std::shared_ptr<const std::string> checked_method(std::string method) {
  static const std::array<std::string, 6> kUsual{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
  const auto* const usual = std::find(kUsual.begin(), kUsual.end(), method);
  if (usual != kUsual.end()) return {std::shared_ptr<const std::string>(), usual};
  if (!valid_header_name(method)) {
    throw std::invalid_argument(
        "a request method must be a token of RFC 9110, such as GET or PROPFIND");
  }
  return std::make_shared<const std::string>(std::move(method));
}

}  // namespace

struct Request::Text : Shared {
  Text(std::shared_ptr<const std::string> method_, std::string url_)
      : method(std::move(method_)), url(std::move(url_)) {}
  Text(const Text& other)
      : Shared(other),
        method(other.method),
        url(other.url),
        headers(other.headers),
        body(other.body),
        parsed(other.is_parsed.load(std::memory_order_acquire) ? other.parsed : std::nullopt),
        is_parsed(parsed.has_value()) {}
  Text& operator=(const Text&) = delete;
  ~Text() = default;

  const Result<Url>& parsed_url() const {
    if (!is_parsed.load(std::memory_order_acquire)) {
      const std::lock_guard lock(parsing);
      if (!parsed) parsed = Url::parse(url);
      is_parsed.store(true, std::memory_order_release);
    }
    return *parsed;
  }
  // Sets the URL, on behalf of the only owner.
  void set_url(std::string changed) {
    url = std::move(changed);
    parsed.reset();
    is_parsed = false;
  }

  std::shared_ptr<const std::string> method;
  std::string url;
  Headers headers;
  Body body;

 private:
  mutable std::mutex parsing;
  mutable std::optional<Result<Url>> parsed;
  mutable std::atomic<bool> is_parsed = false;
};

struct Request::Options : Shared {
  RequestOptions value;
};

Request::Request(std::string method, std::string url)
    : text_(new Text(checked_method(std::move(method)), std::move(url))) {}

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

Request::Request(const Request& other) noexcept
    : text_(retain(other.text_)), options_(retain(other.options_)) {}
Request& Request::operator=(const Request& other) noexcept { return *this = Request(other); }
Request& Request::operator=(Request&& other) noexcept {
  std::swap(text_, other.text_);
  std::swap(options_, other.options_);
  return *this;
}
void Request::release() noexcept {
  release_one(text_);
  release_one(options_);
}

const std::string& Request::method() const { return *text_->method; }
const std::string& Request::url() const { return text_->url; }
const Headers& Request::headers() const { return text_->headers; }
const Body& Request::body() const { return text_->body; }
const RequestOptions& Request::options() const {
  static const RequestOptions defaults;
  return options_ == nullptr ? defaults : options_->value;
}

const Result<Url>& Request::parsed_url() const { return text_->parsed_url(); }

Request::Text& Request::edit() { return own(text_); }

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
Request& Request::set_body(Body body) {
  edit().body = std::move(body);
  return *this;
}
Request& Request::set_form(const Form& form) {
  return set_header("Content-Type", form.content_type()).set_body(form.body());
}
RequestOptions& Request::edit_options() {
  if (options_ == nullptr) options_ = new Options;
  return own(options_).value;
}

bool Request::repeatable() const {
  if (options().repeatable) return *options().repeatable;
  constexpr std::array<std::string_view, 7> kMethods{"GET", "HEAD",   "OPTIONS", "TRACE",
                                                     "PUT", "DELETE", "QUERY"};
  if (std::find(kMethods.begin(), kMethods.end(), method()) != kMethods.end()) return true;
  if (headers().contains("Idempotency-Key") || headers().contains("If-Match")) return true;
  if (headers().get("If-None-Match") == "*") return true;
  const auto& parsed = parsed_url();
  if (!parsed || parsed->query().empty()) return false;
  return ("&" + std::string(parsed->query())).find("&ifGenerationMatch=") != std::string::npos;
}

}  // namespace httpretry
