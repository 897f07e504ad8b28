#include "transfer.hpp"

#include "connection_facts.hpp"
#include "url_parts.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace httpretry {
namespace {

// libcurl goes on by itself after these: an authentication round, or a body that was not expected.
bool invites_another_send(int status) { return status == 401 || status == 407 || status == 417; }
constexpr int kMostSends = 5;

// A server closes a connection when it has been idle for some time, perhaps at the moment we use
// it. What must not be sent twice is therefore sent only on connections that are younger than that.
constexpr long kIdleSecondsIfUnsafe = 2;

constexpr std::uint64_t kMostReserved = 64U << 20U;

Duration since_zero(curl_off_t microseconds) { return std::chrono::microseconds(microseconds); }

// A server's text in a message of ours: no control byte of it reaches a terminal or a log.
std::string printable(std::string_view text) {
  std::string safe(text);
  std::replace_if(
      safe.begin(), safe.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return safe;
}

// Rather than that it could not reach the server.
bool refused_by_socks(CURL* easy) {
  long why = 0;
  curl_easy_getinfo(easy, CURLINFO_PROXY_ERROR, &why);
  constexpr std::array<long, 6> kForGood{CURLPX_NO_AUTH,
                                         CURLPX_USER_REJECTED,
                                         CURLPX_REPLY_NOT_ALLOWED,
                                         CURLPX_BAD_VERSION,
                                         CURLPX_REPLY_COMMAND_NOT_SUPPORTED,
                                         CURLPX_UNKNOWN_MODE};
  return std::find(kForGood.begin(), kForGood.end(), why) != kForGood.end();
}

Error wants_no_more() {
  Error error(Errc::Canceled, "the reader of the body wants no more");
  error.permanent = true;
  return error;
}

std::string seconds(Duration time) {
  std::array<char, 32> text{};
  const auto written = std::snprintf(text.data(), text.size(), "%.3g s",
                                     std::chrono::duration<double>(time).count());
  return {text.data(), static_cast<std::size_t>(written)};
}

}  // namespace

std::string about(const Request& request, const Url& url) {
  return request.method() + " " + printable(url.without_secrets()) + ": ";
}

Transfer::Transfer(Loop& loop, const Request& request, const Url& url, const Call& call,
                   const std::string* addresses, Delivery* delivery)
    : Waiter(loop, call.stop()),
      loop_(loop),
      request_(request),
      options_(request.options()),
      url_(url),
      addresses_(addresses),
      call_(call),
      delivery_(delivery),
      deadline_(call.deadline()) {}

Transfer::~Transfer() {
  if (!running_) return;
  loop_.timers().remove(*this);
  loop_.remove(*this);
}

bool Transfer::await_ready() {
  started_ = loop_.now();
  if (stop_requested()) {
    abort_ = Abort::Canceled;
  } else if (deadline_ <= started_) {
    abort_ = Abort::Timeout;
  } else {
    return !prepare();
  }
  return true;
}

// False where there is nothing to wait for: the outcome is an error.
bool Transfer::prepare() {
  const auto& headers = request_.headers();
  for (const auto* name : {"Content-Length", "Transfer-Encoding"}) {
    if (headers.contains(name)) {
      refused_.emplace(Errc::InvalidRequest, std::string("the header ") + name +
                                                 " is made from the body and cannot be set");
      return false;
    }
  }
  const auto& options = loop_.options();
  SendPlan plan;
  if (options.netrc || options.cookies || !options.client_certificate.file.empty()) {
    own_origin_ = url_.origin() == call_.origin();
    plan.own_origin = own_origin_;
    plan.cookies = options.cookies && (own_origin_ || options.cookies_of_other_origins);
  }
  if (!check_private()) return false;
  if (delivery_ != nullptr) {
    const auto& rest = delivery_->ask(request_);
    if (!rest.range.empty()) plan.range = rest.range.c_str();
    if (!rest.if_range.empty()) plan.if_range = rest.if_range.c_str();
  }
  if (request_.body().present() && request_.body().bytes() == nullptr) {
    auto opened = request_.body().open();
    if (!opened) {
      refused_ = std::move(opened).error();
      return false;
    }
    reader_ = *std::move(opened);
    plan.streamed_body = true;
    body_left_ = reader_->size();
    if (body_left_) plan.body_size = static_cast<std::int64_t>(*body_left_);
  }
  const auto idle = idle_limit();
  plan.fresh_connection = options_.fresh_connection || idle < 0;
  plan.max_idle_seconds = std::max(0L, idle);
  plan.connect_timeout = options_.connect_timeout.value_or(loop_.options().connect_timeout);
  if (deadline_ != kNever) plan.time_left = deadline_ - started_;
  plan.addresses = addresses_;
  easy_ = loop_.take_easy();
  easy_->listen(this);
  easy_->prepare(request_, url_, plan);
  return true;
}

// False where what is secret cannot be used as it is.
bool Transfer::check_private() {
  if (const auto& credentials = options_.credentials) {
    if (const char* why = unusable(*credentials)) {
      refused_.emplace(Errc::InvalidRequest, why);
      return false;
    }
  }
  const auto& netrc = loop_.options().netrc;
  if (netrc && own_origin_ && !netrc->empty() && ::access(netrc->c_str(), R_OK) != 0) {
    refused_.emplace(Errc::InvalidRequest, "cannot read netrc file " + *netrc + ": " +
                                               std::generic_category().message(errno));
    return false;
  }
  return true;
}

// For MAXAGE_CONN, which compares whole seconds: N lets connections pass that were idle for less
// than N + 1.
long Transfer::idle_limit() const {
  using std::chrono::seconds;
  const auto usual =
      static_cast<long>(std::chrono::floor<seconds>(loop_.options().max_idle).count());
  if (request_.repeatable()) return usual;
  const auto announced = loop_.known_facts(url_.origin()).keep_alive_seconds;
  const auto limit = announced >= 0 ? announced - 1 : kIdleSecondsIfUnsafe;
  return std::min(usual, limit - 1);
}

void Transfer::await_suspend(std::coroutine_handle<> awaiter) {
  awaiter_ = awaiter;
  start();
}

void Transfer::start() {
  begin_waiting();
  if (const char* refusal = loop_.start(*this, loop_.known_facts(url_.origin()).speaks_http2)) {
    refused_.emplace(Errc::Internal, std::string("libcurl refused the transfer: ") + refusal);
    return resume_awaiter();
  }
  running_ = true;
  arm();
}

// Where there is a sink, its coroutine may be busy with that; it looks for the end by itself then.
void Transfer::resume_awaiter() {
  if (awaiter_) queue_.ready(std::exchange(awaiter_, nullptr));
}

void Transfer::go_on(Result<BodyWriter::Wish> drained) {
  paused_ = false;
  if (!drained) {
    refused_by_sink(std::move(drained).error());
    return end(Abort::Sink);
  }
  if (!running_) return;
  if (*drained == BodyWriter::Wish::Stop) {
    refused_by_sink(wants_no_more());
    return end(Abort::Sink);
  }
  last_byte_ = loop_.now();
  arm();
  if (!std::exchange(stopped_, false)) return;
  const auto code = curl_easy_pause(handle(), CURLPAUSE_CONT);  // calls us with what came meanwhile
  if (code == CURLE_OK || !running_) return;
  code_ = code;
  end(abort_);
}

void Transfer::arm() {
  const auto when = limit();
  loop_.timers().remove(*this);
  if (when != kNever) loop_.timers().add(*this, when);
}

Time Transfer::limit() const {
  if (paused_) return deadline_;
  const bool headers_done = answered_ && !in_headers_;
  return std::min(deadline_,
                  headers_done ? later(last_byte_, options_.stall_timeout) : options_.answer_by);
}

// With the bytes that come the limit only moves back; the timer follows when it fires.
void Transfer::due() {
  if (limit() > loop_.now()) return arm();
  end(Abort::Timeout);
}

void Transfer::called_off() { end(Abort::Canceled); }

void Transfer::end(Abort why) {
  if (!running_) return;  // it has ended in this very turn
  running_ = false;
  abort_ = why;
  loop_.timers().remove(*this);
  loop_.remove(*this);
  resume_awaiter();
}

void Transfer::finished(CURLcode code) {
  running_ = false;
  code_ = code;
  loop_.timers().remove(*this);
  resume_awaiter();
}

Outcome Transfer::await_resume() {
  end_waiting();
  if (refused_ && abort_ != Abort::Sink) return *std::move(refused_);
  if (!easy_) return failure();
  easy_->listen(nullptr);
  try {
    if (options_.on_connection) options_.on_connection(connection_facts(handle()));
    return conclude();
  } catch (const std::bad_alloc&) {  // what was sent is told all the same
    Error error(Errc::Internal, "out of memory");
    error.permanent = true;
    error.curl_code = CURLE_OUT_OF_MEMORY;
    error.exchange = facts();
    return error;
  }
}

Outcome Transfer::conclude() {
  if (abort_ == Abort::None && code_ == CURLE_OK && gunzip_ && !gunzip_->complete())
    code_ = CURLE_PARTIAL_FILE;

  const bool good = abort_ == Abort::None && code_ == CURLE_OK;
  if (good) learn();
  if (uses_cookies() && answered_) easy_->return_cookies();
  auto outcome = good ? answer() : Outcome(failure());
  // A handle remembers a refused stream, a resend and the credentials of its URL: not fit for
  // others.
  loop_.give_back(std::move(easy_), good && wire_sends_ == 1 && !is_private());
  return outcome;
}

// --- what libcurl tells while the exchange runs ---

// Called before each send, the silent ones included.
bool Transfer::about_to_send(int local_port) noexcept {
  if (wire_sends_ == 0) {
    long connections_made = 0;
    curl_easy_getinfo(handle(), CURLINFO_NUM_CONNECTS, &connections_made);
    reused_ = connections_made == 0;
    local_port_ = local_port;
    if (reused_) share_connection();
  } else if (!answered_ || !invites_another_send(status_) || wire_sends_ == kMostSends) {
    return fail(Abort::Resend);
  }
  ++wire_sends_;
  answered_ = false;
  return true;
}

// Whoever made the connection that this goes out on must know: libcurl takes it for a pooled one
// from now on, and when it dies sends that request again, too, as it would where a stream was
// refused.
void Transfer::share_connection() const {
  const bool may_multiplex =
      url_.scheme() == "https" || options_.http_version == HttpVersion::Http2PriorKnowledge;
  if (!may_multiplex) return;
  for (auto* other : shard->active) {
    if (other != this && other->local_port_ == local_port_) other->shared_ = true;
  }
}

bool Transfer::fail(Abort why) {
  if (abort_ == Abort::None) abort_ = why;
  return false;
}

bool Transfer::header_line(std::string_view line) noexcept {
  header_bytes_ += line.size();
  if (header_bytes_ > loop_.options().max_headers) return fail(Abort::HeadersTooLarge);
  try {
    if (!in_headers_) {
      // What else comes outside of a block is a trailer.
      if (line.starts_with("HTTP/")) begin_block(line);
      return true;
    }
    if (line == "\r\n" || line == "\n") return end_block();
    // What libcurl lets pass and RFC 9110 does not is left out.
    static_cast<void>(headers_.try_add_line(line));
    return true;
  } catch (...) {
    return fail(Abort::NoMemory);
  }
}

void Transfer::begin_block(std::string_view status_line) {
  headers_.clear();
  if (headers_.size() == 0) headers_.reserve(12, 384);
  in_headers_ = true;
  status_ = 0;
  const auto space = status_line.find(' ');
  if (space == std::string_view::npos) return;
  const auto version = status_line.substr(5, space - 5);
  version_ = version == "2" ? "2" : version == "1.0" ? "1.0" : "1.1";
  const char* digits = status_line.data() + space + 1;
  std::from_chars(digits, status_line.data() + status_line.size(), status_);
}

bool Transfer::end_block() {
  in_headers_ = false;
  last_byte_ = loop_.now();
  if (wire_sends_ == 0) {  // nothing went to the origin: a proxy's answer to CONNECT
    proxy_status_ = status_;
    proxy_headers_ = std::move(headers_);
    headers_.clear();
    return true;
  }
  if (status_ < 200) return true;
  answered_ = true;
  arm();  // from here on other limits count
  return delivery_ == nullptr || begin_delivery();
}

bool Transfer::begin_delivery() {
  Response head(status_);
  head.http_version = version_;
  head.headers = headers_;
  head.url = request_.url();
  auto begun = delivery_->begin(request_, head);
  if (!begun) return refused_by_sink(std::move(begun).error());
  to_sink_ = *begun;
  return true;
}

bool Transfer::deliver(std::string_view bytes) {
  auto wish = delivery_->write(bytes);
  if (!wish) return refused_by_sink(std::move(wish).error());
  if (*wish == BodyWriter::Wish::Stop) return refused_by_sink(wants_no_more());
  if (*wish == BodyWriter::Wish::Pause && !paused_) {
    paused_ = true;
    arm();  // waiting for the sink is not waiting for the server
    resume_awaiter();
  }
  return true;
}

bool Transfer::refused_by_sink(Error error) {
  if (abort_ == Abort::None) refused_.emplace(std::move(error));
  return fail(Abort::Sink);
}

EasyListener::Taken Transfer::body_bytes(std::string_view bytes) noexcept {
  if (paused_) {
    stopped_ = true;
    return Taken::NotNow;
  }
  last_byte_ = loop_.now();
  try {
    const bool taken = (body_begun_ || start_body()) && take_encoded(bytes);
    return taken ? Taken::All : Taken::Refused;
  } catch (...) {
    fail(Abort::NoMemory);
    return Taken::Refused;
  }
}

bool Transfer::take_encoded(std::string_view bytes) {
  if (!gunzip_) return take_body(bytes);
  const auto status =
      gunzip_->feed(bytes, [this](std::string_view decoded) { return take_body(decoded); });
  return status == Gunzip::Status::Corrupt ? fail(Abort::Corrupt) : status == Gunzip::Status::Ok;
}

bool Transfer::uses_cookies() const {
  const auto& options = loop_.options();
  return options.cookies && (own_origin_ || options.cookies_of_other_origins);
}

bool Transfer::is_private() const {
  return has_credentials() || uses_cookies() || (loop_.options().netrc && own_origin_) ||
         options_.on_connection;
}

bool Transfer::has_credentials() const {
  return url_.has_userinfo() || options_.credentials.has_value();
}

std::uint64_t Transfer::max_body() const {
  return options_.max_body.value_or(loop_.options().max_body);
}

bool Transfer::start_body() {
  body_begun_ = true;
  if (options_.compressed) {
    const auto encoding = headers_.get("Content-Encoding");
    if (encoding &&
        (equal_ignoring_case(*encoding, "gzip") || equal_ignoring_case(*encoding, "x-gzip"))) {
      gunzip_ = std::make_unique<Gunzip>();
      return true;
    }
  }
  if (to_sink_) return true;
  curl_off_t length = -1;
  curl_easy_getinfo(handle(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (length <= 0) return true;
  if (static_cast<std::uint64_t>(length) > max_body()) return fail(Abort::BodyTooLarge);
  body_.reserve(std::min(static_cast<std::uint64_t>(length), kMostReserved));
  return true;
}

bool Transfer::take_body(std::string_view bytes) {
  if (to_sink_) return deliver(bytes);
  if (bytes.size() > max_body() - body_.size()) return fail(Abort::BodyTooLarge);
  body_.append(bytes);
  return true;
}

std::size_t Transfer::read_body(std::span<char> into) noexcept {
  try {
    const auto count = reader_->read(into);
    const auto kept = count ? keep_to_size(*count) : Result<void>(count.error());
    if (kept) return *count;
    body_error_ = kept.error().message;
  } catch (const std::exception& thrown) {
    body_error_ = std::string("reading the body threw: ") + thrown.what();
  } catch (...) {
    body_error_ = "reading the body threw something that is no std::exception";
  }
  fail(Abort::BodyUnreadable);
  return CURL_READFUNC_ABORT;
}

// A body of another size than was announced would make what follows it, or the wait for its rest,
// part of the request.
Result<void> Transfer::keep_to_size(std::size_t count) {
  if (!body_left_) return {};
  if (count == 0 && *body_left_ > 0) {
    return Error(Errc::InvalidRequest, "the body ended " + std::to_string(*body_left_) +
                                           " bytes before the size that it had told");
  }
  if (count > *body_left_) {
    return Error(Errc::InvalidRequest, "the body is longer than the size that it had told");
  }
  *body_left_ -= count;
  return {};
}

// For a second round of authentication; a resend has been stopped by then.
bool Transfer::rewind_body() noexcept {
  try {
    auto opened = request_.body().open();
    if (!opened) return false;
    reader_ = *std::move(opened);
    body_left_ = reader_->size();
    return true;
  } catch (...) {
    return fail(Abort::NoMemory);
  }
}

// --- what came of it ---

void Transfer::learn() {
  const auto keep_alive = headers_.get("Keep-Alive");
  const bool http2 = version_ == "2";
  if (!keep_alive && !http2) return;
  auto& facts = loop_.facts(url_.origin());
  facts.speaks_http2 = http2;
  if (!keep_alive) return;
  const auto at = keep_alive->find("timeout=");
  if (at == std::string_view::npos) return;
  const auto digits = keep_alive->substr(at + 8);
  std::from_chars(digits.data(), digits.data() + digits.size(), facts.keep_alive_seconds);
}

Exchange Transfer::facts() const {
  Exchange exchange;
  exchange.wire_sends = wire_sends_;
  exchange.sent = wire_sends_ == 0 ? Sent::Never : answered_ ? Sent::Answered : Sent::Maybe;
  exchange.reused_connection = wire_sends_ > 0 && reused_;
  const bool died =
      abort_ == Abort::Resend || code_ == CURLE_SEND_FAIL_REWIND || code_ == CURLE_COULDNT_CONNECT;
  exchange.stale_connection = exchange.sent == Sent::Maybe && reused_ && died;
  // On a new connection that nobody else has used libcurl sends again for one reason only.
  exchange.refused =
      abort_ == Abort::Resend && !reused_ && !shared_ && wire_sends_ == 1 && !answered_;
  exchange.timings.total = loop_.now() - started_;
  if (!easy_) return exchange;
  const auto at = [&](CURLINFO what) {
    curl_off_t time = 0;
    curl_easy_getinfo(handle(), what, &time);
    return since_zero(time);
  };
  if (!exchange.reused_connection) {  // else libcurl tells when it passed these steps by
    exchange.timings.resolved = at(CURLINFO_NAMELOOKUP_TIME_T);
    exchange.timings.connected = at(CURLINFO_CONNECT_TIME_T);
    exchange.timings.secured = at(CURLINFO_APPCONNECT_TIME_T);
  }
  exchange.timings.sent = at(CURLINFO_PRETRANSFER_TIME_T);
  exchange.timings.first_byte = at(CURLINFO_STARTTRANSFER_TIME_T);
  return exchange;
}

Outcome Transfer::answer() {
  Outcome outcome(std::in_place);
  auto& response = *outcome;
  response.status = status_;
  response.http_version = version_;
  if (gunzip_) {  // the body is no longer what these describe
    headers_.remove("Content-Encoding");
    headers_.remove("Content-Length");
  }
  response.headers = std::move(headers_);
  response.body = std::move(body_);
  response.url = request_.url();
  response.exchange = facts();
  return outcome;
}

bool Transfer::lacks_socket() const {
  if (code_ != CURLE_COULDNT_CONNECT || wire_sends_ != 0 || loop_.socket_error() == 0) return false;
  long cause = 0;
  curl_easy_getinfo(handle(), CURLINFO_OS_ERRNO, &cause);
  return cause == 0;  // else there was one, which could not connect
}

// With libcurl's number; for what we did ourselves: what its own limits would have given.
Transfer::Ending Transfer::ending() const {
  switch (abort_) {
    case Abort::None: break;
    case Abort::Canceled: return {{Errc::Canceled, true}, CURLE_ABORTED_BY_CALLBACK};
    case Abort::Timeout: return {{Errc::Timeout, false}, CURLE_OPERATION_TIMEDOUT};
    case Abort::Resend: return {{Errc::Receive, false}, CURLE_RECV_ERROR};
    case Abort::BodyTooLarge:
    case Abort::HeadersTooLarge: return {{Errc::TooLarge, true}, CURLE_FILESIZE_EXCEEDED};
    case Abort::Corrupt: return {{Errc::Protocol, true}, CURLE_BAD_CONTENT_ENCODING};
    case Abort::BodyUnreadable: return {{Errc::InvalidRequest, true}, CURLE_READ_ERROR};
    case Abort::Sink:
      return {{refused_->code, refused_->permanent},
              refused_->curl_code != 0 ? refused_->curl_code : CURLE_WRITE_ERROR};
    case Abort::NoMemory: return {{Errc::Internal, true}, CURLE_OUT_OF_MEMORY};
  }
  if (lacks_socket()) return {{Errc::Internal, false}, code_};
  return {failure_of(code_), code_};
}

Error Transfer::failure() {
  const auto [kind, number] = ending();
  Error error(kind.code);
  error.permanent = kind.permanent;
  error.curl_code = number;
  error.exchange = facts();
  error.partial = answered_ && (kind.code == Errc::Receive || kind.code == Errc::Timeout);
  if (code_ == CURLE_PROXY) {
    error.from_proxy = true;
    error.permanent = refused_by_socks(handle());
  }
  if (refused_by_proxy()) {
    error.code = Errc::Connect;
    error.from_proxy = true;
    error.status = proxy_status_;
    error.headers = std::move(proxy_headers_);
    error.permanent = proxy_status_ < 500 && proxy_status_ != 429;
  } else if (answered_) {
    error.status = status_;
    error.headers = std::move(headers_);
  }
  const bool led_nowhere = error.code == Errc::Connect || error.code == Errc::Timeout;
  if (led_nowhere && wire_sends_ == 0 && url_.parts().named) loop_.renew_addresses(url_);
  error.message = message(error.code);
  return error;
}

Error Transfer::unfinished(Error error, const Exchange& exchange) const {
  error.message = about(request_, url_) + error.message;
  error.exchange = exchange;
  error.status = status_;
  if (error.curl_code == 0) error.curl_code = CURLE_WRITE_ERROR;
  return error;
}

std::string Transfer::message(Errc code) const { return about(request_, url_) + cause(code); }

std::string Transfer::cause(Errc code) const {
  if (refused_by_proxy()) {
    return "the proxy refused to connect: it answered " + std::to_string(proxy_status_);
  }
  switch (abort_) {
    case Abort::Canceled: return "canceled";
    case Abort::Timeout:
      if (deadline_ <= started_) return "no time was left to send it";
      return (answered_ ? "the answer was not complete after " : "no answer after ") +
             seconds(loop_.now() - started_);
    case Abort::Resend:
      return reused_ || shared_ ? "the pooled connection was closed before an answer came"
                                : "the server refused to look at the request";
    case Abort::BodyTooLarge:
      return "the body of the answer is larger than " + std::to_string(max_body()) + " bytes";
    case Abort::HeadersTooLarge:
      return "the headers of the answer are larger than " +
             std::to_string(loop_.options().max_headers) + " bytes";
    case Abort::Corrupt: return "the gzip body of the answer is corrupt";
    case Abort::NoMemory: return "out of memory";
    case Abort::BodyUnreadable: return body_error_;
    case Abort::Sink: return refused_->message;
    case Abort::None: break;
  }
  if (lacks_socket()) return "cannot open a socket: " + system_text(loop_.socket_error());
  if (gunzip_ && code_ == CURLE_PARTIAL_FILE && !gunzip_->complete())
    return "the gzip body of the answer ends early";
  if (code == Errc::Protocol && code_ == CURLE_UNSUPPORTED_PROTOCOL)
    return "the answer is not HTTP";
  const char* text = easy_ ? easy_->error_text() : "";
  return printable(*text != '\0' ? text : curl_easy_strerror(code_));
}

}  // namespace httpretry
