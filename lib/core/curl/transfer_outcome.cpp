// Makes the outcome of a transfer: the response or the error, with what was sent.
#include "transfer.hpp"
#include "url_parts.hpp"

#include "lib/core/base/descriptor.hpp"
#include "lib/core/base/shortage.hpp"
#include "lib/core/chain/detail/call_state.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <charconv>

namespace httpretry {
namespace {

// Part of OpenSSL's message if the received bytes are not TLS, such as a plain HTTP response.
constexpr std::string_view kNotTlsText = "wrong version number";
// Part of OpenSSL's message if one side supports no TLS version of the other.
constexpr std::string_view kNoCommonVersionText = "alert protocol version";
// libcurl looks up the names of proxies on its own threads. This is its message if one cannot
// start.
constexpr std::string_view kNoThreadText = "getaddrinfo() thread failed to start";
// How its message begins if the URL of a proxy, from the environment, cannot be parsed or has an
// unknown scheme.
constexpr std::string_view kBadProxyText = "Unsupported proxy ";

// Returns libcurl's message without the user name and password in it. libcurl quotes the URL of a
// proxy that it cannot parse: what stands between the quote, or the space, and the "@" is removed.
std::string without_userinfo(std::string text) {
  const auto at_sign = text.rfind('@');
  if (at_sign == std::string::npos) return text;
  const auto quote = text.find('\'');
  const auto before = quote < at_sign ? quote : text.rfind(' ', at_sign);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return text.erase(begin, at_sign + 1 - begin);
}

// Returns a number that libcurl reports as a long, such as a port or a count, as an int.
int int_info(CURL* easy, CURLINFO what) { return static_cast<int>(info<long>(easy, what)); }

Peer peer_of(CURL* easy) {
  Peer peer;  // allocates nothing, because memory may be lacking
  text_info(easy, CURLINFO_PRIMARY_IP).copy(peer.text.data(), peer.text.size() - 1);
  peer.port = static_cast<std::uint16_t>(int_info(easy, CURLINFO_PRIMARY_PORT));
  return peer;
}

// Returns the fields of a certificate as text. libcurl has a line for each field. The last field,
// after "cert:", is the certificate itself as PEM, with many lines.
std::string certificate(const curl_slist* fields) {
  constexpr std::string_view kPem = "cert:";
  std::string text;
  for (; fields != nullptr; fields = fields->next) {
    std::string_view field = fields->data;
    if (equal_ignoring_case(field.substr(0, kPem.size()), kPem)) field.remove_prefix(kPem.size());
    text += field;
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

// Returns whether a SOCKS proxy refused to connect us. If it merely failed, a retry may help.
bool refused_by_socks(CURL* easy) {
  const auto reason = info<long>(easy, CURLINFO_PROXY_ERROR);
  return reason == CURLPX_NO_AUTH || reason == CURLPX_USER_REJECTED ||
         reason == CURLPX_REPLY_NOT_ALLOWED || reason == CURLPX_BAD_VERSION ||
         reason == CURLPX_REPLY_COMMAND_NOT_SUPPORTED || reason == CURLPX_UNKNOWN_MODE;
}

// Returns whether `error`, from connecting, means that all local ports for this address are in use.
// With IPv6 the same code can mean that the machine has no address in the network. The ports of UDP
// are separate, so a UDP socket can be connected even without a free TCP port, but not without an
// address.
bool lacks_port(int error, const sockaddr_in6& address) {
  if (error != EADDRNOTAVAIL) return false;
  const auto family = address.sin6_family;
  if (family != AF_INET && family != AF_INET6) return false;
  const Descriptor udp(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return udp.is_open() && ::connect(udp.get(), reinterpret_cast<const sockaddr*>(&address),
                                    family == AF_INET ? sizeof(sockaddr_in) : sizeof address) == 0;
}

// Returns what libcurl reports about the connection of an exchange, for the user's callback
// RequestOptions::on_connection. The server's certificates are in it only if CURLOPT_CERTINFO was
// set; otherwise their list is empty.
ConnectionInfo connection_info(CURL* easy) {
  ConnectionInfo result;
  result.remote_ip = text_info(easy, CURLINFO_PRIMARY_IP);
  result.local_ip = text_info(easy, CURLINFO_LOCAL_IP);
  result.remote_port = int_info(easy, CURLINFO_PRIMARY_PORT);
  result.local_port = int_info(easy, CURLINFO_LOCAL_PORT);
  // 0 if an existing connection was reused.
  result.new_connections = int_info(easy, CURLINFO_NUM_CONNECTS);
  result.request_bytes = static_cast<std::uint64_t>(info<long>(easy, CURLINFO_REQUEST_SIZE));
  result.verify_result = info<long>(easy, CURLINFO_SSL_VERIFYRESULT);
  result.proxy_verify_result = info<long>(easy, CURLINFO_PROXY_SSL_VERIFYRESULT);
  result.proxy_status = int_info(easy, CURLINFO_HTTP_CONNECTCODE);
  const auto* chain = info<curl_certinfo*>(easy, CURLINFO_CERTINFO);  // may be nullptr
  for (int i = 0; chain != nullptr && i < chain->num_of_certs; ++i) {
    result.certificates.push_back(certificate(chain->certinfo[i]));
  }
  return result;
}

}  // namespace

// Returns the outcome, after the sink has received its end if the body went there.
Outcome Transfer::outcome() {
  Outcome outcome = make_outcome();
  if (!outcome || !reader_.to_sink) return outcome;
  auto finished = delivery_->finish(*outcome);
  if (finished) return outcome;
  return sink_failed(request_, *outcome, std::move(finished).error());
}

// Makes the outcome of the exchange when it is over: the response, or the error of a failure. Both
// contain what was sent and when. Gives the libcurl handle back to the loop, and has the client
// remember what the response shows about its origin and which cookies it set.
Outcome Transfer::make_outcome() {
  end_waiting();       // from here on, nothing cancels this transfer
  loop_.read_clock();  // because the timings of a very short transfer would be 0 otherwise
  if (!easy_) return failure();  // the exchange did not begin
  easy_->transfer = nullptr;     // libcurl may still call back, for its log or the progress
  try {
    // A transfer that found unread data before its send is replaced by a second one, and only that
    // one is reported.
    if (options_.on_connection && !had_unread()) {
      auto connection = connection_info(handle());
      connection.tls = std::move(tls_);
      abort_.guard(CURLE_ABORTED_BY_CALLBACK, "RequestOptions::on_connection", [&] {
        options_.on_connection(connection);
        return true;
      });
    }
    // libcurl may report success for a response that is not valid. Sets `abort_` or `code_` then.
    if (abort_.none() && code_ == CURLE_OK) verify_success();
    const bool success = abort_.none() && code_ == CURLE_OK;
    if (success) update_origin();
    if (plan_.cookies && sends_.answered) easy_->return_cookies();
    // If only the rest of the body is missing, and the status and headers say enough (as those of a
    // 503 do), the outcome is the incomplete response instead of an error.
    const bool incomplete = !success && only_rest_is_missing();
    reader_.response.incomplete = incomplete;
    if (success || incomplete) reader_.response.exchange = exchange();
    // The next exchange of this handle chooses the size of its buffer by this.
    easy_->expected_body = reader_.to_sink ? 0 : reader_.received;
    auto outcome = success || incomplete ? reader_.take_response() : Outcome(failure());
    // A handle remembers a refused stream, a second send and the credentials of its URL, so after
    // these it must not serve other requests.
    const bool reusable = success && sends_.sends == 1 && !plan_.private_handle;
    loop_.return_easy(std::move(easy_), reusable);
    return outcome;
  } catch (const std::bad_alloc&) {
    // The error still says what was sent. The handle is destroyed instead of given back.
    auto error = failure_of(CURLE_OUT_OF_MEMORY, "out of memory");
    mark_shortage(error);
    error.exchange = exchange();
    return error;
  }
}

// Called if the exchange failed. Returns whether there is a response nevertheless: its status and
// headers say enough, and only a part of its body is missing.
bool Transfer::only_rest_is_missing() const {
  const bool has_head = sends_.answered && !sends_.body_left_out && !reader_.in_headers;
  if (!has_head || reader_.to_sink || !reader_.head_suffices()) return false;
  const auto why = abort_.why();
  if (why == Abort::None) {
    const auto code = failure_of(code_).code;
    return code == Errc::Receive || code == Errc::Send;
  }
  if (why != Abort::Failed) {
    return why == Abort::ResponseIncomplete || why == Abort::RestUnneeded || why == Abort::Flooded;
  }
  // True if the reader cannot decode the body. (Before the body, Errc::Protocol is an error of the
  // sink: a 416 does not fit the part of the body that the sink has.)
  return reader_.body_begun && abort_.error(loop_.now() - started_).code == Errc::Protocol;
}

// Called if libcurl reports success. Sets the reason of a failure if the request was not sent
// completely or the response has not arrived completely.
void Transfer::verify_success() {
  if (sends_.body_left_out) {
    abort_.set(Abort::BodyLeftOut);
  } else if (reader_.response.status < 300 && !upload_.check_end()) {
    sends_.body_left_out = true;  // `check_end` has set the error
  } else if (reader_.cut_short() || was_cut_off()) {
    code_ = CURLE_PARTIAL_FILE;
  }
}

// Called if libcurl reports a failure. Replaces libcurl's code if the library knows better what
// happened; the failure may even turn out to be a complete response.
void Transfer::reinterpret_failure() {
  // libcurl 7.88 reports FAILED_INIT if another request has found the shared connection closed.
  if (code_ == CURLE_FAILED_INIT && sends_.sends > 0) code_ = CURLE_SEND_ERROR;
  const bool connection_lost =
      code_ == CURLE_SEND_ERROR || code_ == CURLE_RECV_ERROR || code_ == CURLE_GOT_NOTHING;
  const auto kind = failure_of(code_).code;
  // The server reported that it did not process the request. After a second send, the report may be
  // about the first one, so it does not count.
  const bool not_processed =
      sends_.sends == 1 && !sends_.answered && (refused_ || stream_ > last_stream_);
  if (not_processed) {
    abort_.set(Abort::StreamRefused);
  } else if (connection_lost && sends_.reused && reader_.awaits_block &&
             reader_.response.status == 0) {
    // Not even a 1xx has arrived since the request was sent.
    abort_.set(Abort::ConnectionDied);
  } else if ((kind == Errc::Receive || kind == Errc::Send) && is_complete()) {
    // Any failure to send or receive counts, not only a lost connection. RFC 9113 §8.1: a server
    // may respond before it has read the whole request, and then reset the stream.
    code_ = CURLE_OK;
    plan_.private_handle = true;
  }
}

// Returns whether the whole response has arrived, as far as its length tells.
bool Transfer::is_complete() const {
  if (!sends_.answered || reader_.in_headers) return false;
  if (!reader_.has_body()) return true;
  const auto length = announced_length();
  return length >= 0 && reader_.received == static_cast<std::uint64_t>(length);
}

// Stores what the response shows about its origin: the HTTP version, and how long the server keeps
// an idle connection.
void Transfer::update_origin() {
  const auto keep_alive = reader_.response.headers.get("Keep-Alive");
  if (!keep_alive && !plan_.may_multiplex) return;
  auto& origin = loop_.edit_origin(url_);
  if (plan_.may_multiplex) {
    origin.speaks_http2 = reader_.response.http_version == "2";
    origin.speaks_http1 = !origin.speaks_http2;
  }
  constexpr std::string_view kTimeout = "timeout=";
  const auto position = keep_alive ? keep_alive->find(kTimeout) : std::string_view::npos;
  if (position == std::string_view::npos) return;
  const auto digits = keep_alive->substr(position + kTimeout.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), origin.keep_alive_seconds);
}

// Returns what was sent and received, and when. Times count from the beginning of the exchange; a
// step that did not happen has the time zero.
Exchange Transfer::exchange() const {
  Exchange exchange;
  // Whether the connection died after the request was sent. The two codes of libcurl mean that, and
  // that libcurl then failed to send again on a new connection. (If nothing was sent, `describe`
  // ignores `died`.)
  const bool died = abort_.why() == Abort::ConnectionDied || code_ == CURLE_SEND_FAIL_REWIND ||
                    code_ == CURLE_COULDNT_CONNECT;
  sends_.describe(exchange, died, /*refused=*/abort_.why() == Abort::StreamRefused);
  auto& timings = exchange.timings;
  timings.total = loop_.now() - started_;
  if (!easy_) return exchange;  // without a libcurl handle, nothing else has happened
  const auto time_of = [&](CURLINFO step) -> Duration {
    return std::chrono::microseconds(info<curl_off_t>(handle(), step));
  };
  // For a reused connection, libcurl reports when it skipped these steps.
  if (!exchange.reused_connection) {
    timings.resolved = time_of(CURLINFO_NAMELOOKUP_TIME_T);
    timings.connected = time_of(CURLINFO_CONNECT_TIME_T);
    timings.secured = time_of(CURLINFO_APPCONNECT_TIME_T);
  }
  if (request_.body().present()) exchange.body_sent = sent_bytes();
  exchange.body_received = reader_.received;
  timings.sent = time_of(CURLINFO_PRETRANSFER_TIME_T);
  timings.first_byte = time_of(CURLINFO_STARTTRANSFER_TIME_T);
  // Only observers of the call read the server's address.
  if (!Call::State::of(call_).common->observers->empty()) exchange.peer = peer_of(handle());
  return exchange;
}

// Makes the error of a failed exchange, with what was sent and, if the headers of a response have
// arrived, with those. Also has the loop look the host up again if it could not be reached.
Error Transfer::failure() {
  Error error = abort_.none() ? curl_failure() : abort_.error(loop_.now() - started_);
  mark_shortage(error);
  error.exchange = exchange();
  error.partial = sends_.answered && (error.code == Errc::Receive || error.code == Errc::Timeout);
  if (sends_.answered) {
    error.status = reader_.response.status;
    error.headers = std::move(reader_.response.headers);
  }
  const bool not_reached = error.code == Errc::Connect || error.code == Errc::Timeout;
  if (not_reached && sends_.sends == 0 && url_.parts().host_is_name) loop_.renew_addresses(url_);
  error.message = about(request_, url_) + error.message;
  return error;
}

// Sets the message of `error` if the connection failed because of this machine: it could open no
// socket, or had no local port or other resource for it. If it lacked a resource, also sets the
// kind of the error to LocalShortage. Returns false, without changing `error`, in all other cases.
bool Transfer::explain_socket(Error& error) const {
  if (code_ != CURLE_COULDNT_CONNECT || sends_.sends > 0) return false;
  const int cause = int_info(handle(), CURLINFO_OS_ERRNO);
  if (socket_error_ != 0) {  // the errno of open_socket, of which libcurl does not know
    error.message = "cannot open a socket: " + system_text(socket_error_);
  } else if (is_shortage(cause)) {
    error.message = "cannot connect: " + system_text(cause);
  } else if (lacks_port(cause, socket_address_)) {
    error.message = "cannot connect: all local ports for this server are in use";
  } else {
    return false;
  }
  // A socket may also have been refused for another reason, such as a missing permission.
  if (socket_error_ == 0 || is_shortage(socket_error_)) error.code = Errc::LocalShortage;
  return true;
}

// Turns the error into a local shortage if libcurl or the library lacked memory or a thread before
// the request was sent.
void Transfer::mark_shortage(Error& error) const {
  // SETOPT_OPTION_SYNTAX: libcurl had no memory for a host's addresses. Their syntax is known to be
  // right.
  const bool no_memory =
      error.curl_code == CURLE_OUT_OF_MEMORY || error.curl_code == CURLE_SETOPT_OPTION_SYNTAX;
  const bool no_thread = error.message.find(kNoThreadText) != std::string::npos;
  if (sends_.sends > 0 || (!no_memory && !no_thread)) return;
  error.code = Errc::LocalShortage;
  error.permanent = false;
}

// Returns whether a header line of the response exceeded libcurl's limit. libcurl 7.88 reports that
// as OUT_OF_MEMORY; if memory was really lacking, errno was ENOMEM before libcurl closed the
// connection. Newer versions report TOO_LARGE, which also stands for too many headers, but then
// with an error text.
bool Transfer::line_too_long() const {
  const bool in_block = reader_.in_headers || reader_.awaits_block;
  const bool too_long = (code_ == CURLE_OUT_OF_MEMORY && loop_.sockets.close_error != ENOMEM) ||
                        (code_ == kCurlTooLarge && easy_->error_text[0] == '\0');
  return too_long && sends_.sends > 0 && in_block;
}

// Makes the error for the code with which libcurl failed. The code decides its kind and whether it
// is permanent (`failure_of`), and libcurl's text is its message. If the library knows better what
// happened, the first branch that applies replaces them.
Error Transfer::curl_failure() {
  const std::string_view text = easy_->error_text.data();
  Error error = failure_of(code_);
  // The status of a proxy's response to CONNECT, if the request was not sent; otherwise 0.
  const int proxy_status = sends_.sends == 0 ? reader_.proxy_status : 0;
  const bool proxy_refused = proxy_status >= 300;
  if (!proxy_refused && explain_socket(error)) return error;
  if (proxy_refused) {
    error.code = Errc::Connect;
    // The code of libcurl 7.88. Newer versions report COULDNT_CONNECT, but users get the same code
    // with every version.
    error.curl_code = CURLE_RECV_ERROR;
    error.from_proxy = true;
    error.status = proxy_status;
    error.headers = std::move(reader_.proxy_headers);
    error.permanent = proxy_status < 500 && proxy_status != 429;
    error.message = "the proxy refused to connect, with status " + std::to_string(proxy_status);
  } else if (code_ == CURLE_PARTIAL_FILE && reader_.cut_short() != nullptr) {
    error.message = "the " + *reader_.cut_short() + " body of the response ends early";
  } else if (code_ == CURLE_PARTIAL_FILE && was_cut_off()) {
    error.message = "the HTTP/2 connection broke before the end of the response";
  } else if (code_ == CURLE_UNSUPPORTED_PROTOCOL) {
    error.message = "the response is not HTTP";
  } else if (code_ == CURLE_BAD_FUNCTION_ARGUMENT && sends_.sends == 0) {
    // From libcurl 8.23; older versions report SSL_CERTPROBLEM.
    error = failure_of(CURLE_SSL_CERTPROBLEM, "the client certificate or its key cannot be used");
  } else if (code_ == CURLE_BAD_FUNCTION_ARGUMENT ||
             (code_ == CURLE_WEIRD_SERVER_REPLY && text == "Header without colon")) {
    // libcurl 7.88 reports BAD_FUNCTION_ARGUMENT for such a line, newer versions either code.
    error.message = "a header line of the response is not NAME: VALUE";
  } else if (code_ == kCurlTooLarge && text.starts_with("Too many response headers")) {
    error.message = ResponseReader::kTooManyHeaders;
  } else if (line_too_long()) {
    error.code = Errc::TooLarge;
    error.message = "a header line of the response is longer than libcurl's limit of 100 KiB";
  } else {
    if (code_ == CURLE_PROXY) {  // the handshake with a proxy failed
      error.from_proxy = true;
      error.permanent = refused_by_socks(handle());
    }
    // libcurl may quote the URL of a proxy, with a password.
    error.message =
        printable(without_userinfo(std::string(text.empty() ? curl_easy_strerror(code_) : text)));
    const bool tls_failed = code_ == CURLE_SSL_CONNECT_ERROR;
    const bool not_tls = tls_failed && error.message.find(kNotTlsText) != std::string::npos;
    const bool no_common_version =
        tls_failed && error.message.find(kNoCommonVersionText) != std::string::npos;
    // The cause is a wrong setting, so another attempt would fail in the same way.
    if (text.starts_with(kBadProxyText) || no_common_version || not_tls) error.permanent = true;
    if (not_tls) {
      error.message = "the server does not speak TLS on port " + std::to_string(url_.port()) +
                      "; is it meant to be http://? (" + error.message + ")";
    }
  }
  return error;
}

}  // namespace httpretry
