// What came of a transfer: the response or the error, with what was sent.
#include "transfer.hpp"

#include "url_parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace httpretry {
namespace {

Duration since_zero(curl_off_t microseconds) { return std::chrono::microseconds(microseconds); }

// libcurl quotes the URL of a proxy that it cannot read, with its password.
std::string without_userinfo(std::string text) {
  const auto at = text.rfind('@');
  if (at == std::string::npos) return text;
  const auto quote = text.find('\'');
  const auto before = quote < at ? quote : text.rfind(' ', at);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return text.erase(begin, at + 1 - begin);
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
  response.reason = std::move(reason_);
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
    case Abort::Coding:
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
    case Abort::Coding:
      return "the body of the answer has another coding than gzip, and that alone was asked for";
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
  return printable(without_userinfo(*text != '\0' ? text : curl_easy_strerror(code_)));
}

}  // namespace httpretry
