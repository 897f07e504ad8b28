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

// Room that is not filled is address space only, but a server may announce what no machine has.
constexpr std::uint64_t kMostReserved = 1U << 30U;

// -1: it has a coding that nobody asked for.
int times_gzipped(const Headers& headers) {
  int times = 0;
  for (auto list : headers.get_all("Content-Encoding")) {
    while (!list.empty()) {
      const auto end = std::min(list.find(','), list.size());
      auto coding = list.substr(0, end);
      list.remove_prefix(std::min(end + 1, list.size()));
      coding.remove_prefix(std::min(coding.find_first_not_of(" \t"), coding.size()));
      coding = coding.substr(0, coding.find_last_not_of(" \t") + 1);
      if (equal_ignoring_case(coding, "gzip") || equal_ignoring_case(coding, "x-gzip")) {
        ++times;
      } else if (!coding.empty() && !equal_ignoring_case(coding, "identity")) {
        return -1;
      }
    }
  }
  return times;
}

}  // namespace

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
    refused_->curl_code = CURLE_READ_ERROR;
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
    return thrown();
  }
}

void Transfer::begin_block(std::string_view line) {
  headers_.clear();
  if (headers_.size() == 0) headers_.reserve(12, 384);
  in_headers_ = true;
  status_ = 0;
  reason_.clear();
  line = line.substr(0, line.find_last_not_of("\r\n ") + 1);
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return;
  const auto version = line.substr(5, space - 5);
  version_ = version == "2" ? "2" : version == "1.0" ? "1.0" : "1.1";
  const char* digits = line.data() + line.find_first_not_of(' ', space);
  const char* end = line.data() + line.size();
  const auto [rest, problem] = std::from_chars(digits, end, status_);
  if (rest == end) return;
  const std::string_view reason(rest + 1, end);
  if (valid_header_value(reason)) reason_ = reason;
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

Response Transfer::head() const {
  Response head(status_);
  head.reason = reason_;
  head.http_version = version_;
  head.headers = headers_;
  head.url = request_.url();
  return head;
}

bool Transfer::begin_delivery() {
  auto begun = delivery_->begin(request_, head());
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
    thrown();
    return Taken::Refused;
  }
}

// By us only for want of memory; else by the user's sink.
bool Transfer::thrown() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(Abort::NoMemory);
  } catch (const std::exception& error) {
    return sink_threw(error.what());
  } catch (...) {
    return sink_threw("something that is no std::exception");
  }
}

bool Transfer::sink_threw(const char* what) noexcept {
  try {
    Error error(Errc::Internal, std::string("the sink of the body threw: ") + what);
    error.permanent = true;
    return refused_by_sink(std::move(error));
  } catch (const std::bad_alloc&) {
    return fail(Abort::NoMemory);
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
    const auto gzips = times_gzipped(headers_);
    if (gzips != 0 && gzips != 1) return fail(Abort::Coding);
    if (gzips == 1) {
      gunzip_ = std::make_unique<Gunzip>();
      return true;
    }
  }
  if (to_sink_ || (delivery_ != nullptr && delivery_->held())) return true;
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
  return delivery_ == nullptr || !delivery_->can_judge(body_.size()) || release();
}

bool Transfer::release() {
  Response begun = head();
  begun.body = std::move(body_);
  auto released = delivery_->release(request_, begun);
  if (!released) return refused_by_sink(std::move(released).error());
  to_sink_ = *released;
  body_ = to_sink_ ? std::string() : std::move(begun.body);
  return !to_sink_ || deliver(begun.body);
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

}  // namespace httpretry
