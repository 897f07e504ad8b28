// The state of a transfer's connection: which transfers share it, and whether it is closing or
// broken.
#include "log_text.hpp"
#include "transfer.hpp"

#include <algorithm>
#include <cstring>

namespace httpretry {
// Opens a socket for libcurl, and remembers the address and the error for `explain_socket`. Returns
// CURL_SOCKET_BAD if the process lacks something.
curl_socket_t Transfer::open_socket(const curl_sockaddr& address) noexcept {
  const int fd = loop_.sockets.open(address);
  socket_error_ = fd < 0 ? -fd : 0;
  socket_address_ = {};
  if (address.addrlen <= sizeof socket_address_) {
    std::memcpy(&socket_address_, &address.addr, address.addrlen);
  }
  return fd < 0 ? CURL_SOCKET_BAD : fd;
}

// Returns whether the pooled connection has something to read that makes it unusable. Bytes that
// arrive without a pending request are not the response to the next one (RFC 9112 §9.2), but
// libcurl 7.88 would take them for it. Over TLS they may only be a session ticket; such a
// connection is not used either. Over HTTP/2 a server may send frames at any time, so only the end
// of the connection counts. libcurl checks for that itself, but from 8.22 on only once per second.
bool Transfer::has_unread(int local_port) noexcept {
  static const bool checks_rarely = libcurl().version_num >= CURL_VERSION_BITS(8, 22, 0);
  try {
    const bool http1 = !plan_.may_multiplex || loop_.origin(url_).speaks_http1 ||
                       loop_.sockets.is_http1(local_port);
    return http1 ? loop_.sockets.has_unread(local_port)
                 : checks_rarely && loop_.sockets.has_ended(local_port);
  } catch (const std::bad_alloc&) {
    return true;  // a new connection is always safe
  }
}

// Counts a send on the connection with this local port if it is allowed. Otherwise returns false,
// with the reason in `abort_`, whose `set` always returns false.
bool Transfer::begin_send(int local_port) noexcept {
  // libcurl has made no connection for this transfer, so the first send uses one from the pool.
  const bool first_reuses = info<long>(handle(), CURLINFO_NUM_CONNECTS) == 0;
  // A later send is on a used connection if the first send was on the same one.
  const bool used_before = sends_.sends == 0 ? first_reuses : local_port == sends_.local_port;
  // Bytes that have arrived on an idle connection would be taken for the response. If the send is
  // not allowed anyway, the reason for that takes precedence.
  if (used_before && sends_.may_send() && has_unread(local_port)) return abort_.set(Abort::Unread);
  // Only the first send is allowed, and those that authentication needs.
  if (sends_.count_if_allowed(first_reuses, local_port)) return true;
  // libcurl would send again after a 417 to "Expect: 100-continue". Sets no reason, so that
  // on_finished takes the 417 for the response.
  if (reader_.response.status == 417 && sends_.answered) return false;
  // The server has not processed the request, or closed the connection before it responded.
  return abort_.set(refused_ ? Abort::StreamRefused : Abort::ConnectionDied);
}

// Called by libcurl right before it sends the request, or sends it again. Prepares for the
// response. At the first send, also begins to observe the connection if it may speak HTTP/2.
// Returns false to make libcurl abort the transfer.
bool Transfer::about_to_send(int local_port) noexcept {
  loop_.progress(connection_.get());  // shows the watchdog thread that libcurl is not stuck
  // The watchdog has closed the connection, because the server sends frames without end.
  if (is_flooded()) return abort_.set(flood_reason());
  if (!begin_send(local_port)) return false;
  // Forgets the previous response. A new one follows, which begins with a header block.
  reader_.awaits_block = true;
  reader_.response.status = 0;
  check_rest_at_ = kNever;
  awaits_stream_end_ = false;
  if (sends_.sends > 1) return true;  // the rest was done at the first send
  --shard->connecting;                // the number of transfers that have not sent yet
  // A connection that is known to speak HTTP/1 need not be watched, which saves 8 000 instructions.
  if (!plan_.may_multiplex || (sends_.reused && loop_.sockets.is_http1(local_port))) return true;
  return abort_.guard(CURLE_OUT_OF_MEMORY, "watching the connection", [this] {
    // libcurl's log reports what happens to an HTTP/2 connection. It is of no use if libcurl closes
    // each connection after its exchange, because then a close means nothing.
    if (!easy_->closes_connection) easy_->set(CURLOPT_VERBOSE, 1L);
    connection_ = loop_.watch_connection(sends_.local_port);
    return true;
  });
}

// Calls the function for this transfer and for each other one on the same connection.
template <class Function>
void Transfer::each_on_connection(const Function& function) {
  function(*this);
  for (const auto* list : {&shard->active, &shard->unconfirmed}) {
    for (auto* other : *list) {
      if (other != this && shares_with(*other)) function(*other);
    }
  }
}

// Updates what is known about the connection from a line of libcurl's log, because libcurl reports
// these facts in no other way. A line about a connection may arrive through any transfer on it.
// Other lines are ignored.
void Transfer::on_log_text(std::string_view text) noexcept {
  using enum LogLine::Kind;
  const auto line = read_log_line(text);
  if (!line) return;  // not one of these facts
  // Before the request is sent, lines are about connections that this transfer does not use, except
  // for the one about TLS.
  if (sends_.sends == 0 && line->kind != Tls) return;
  switch (line->kind) {
    // The HTTP/2 stream of this request, or 0 if the line does not contain its number.
    case StreamOpened: stream_ = line->number.value_or(0); break;
    // The server has not processed this request, and libcurl will close the connection. The line
    // does not say whether the server processes other streams.
    case StreamRefused:
      refused_ = true;
      on_connection_closing(kUnknownLastStream);
      break;
    // The server closes the connection, and processes no stream above this number.
    case GoAway: on_connection_closing(line->number.value_or(kUnknownLastStream)); break;
    // If a bad frame was the cause, check_connection marks all transfers on the connection.
    case ConnectionClosed: closed_ = true; break;
    // The connection goes back to the pool. So a ConnectionClosed before this line was about
    // another connection, which libcurl closed to make room in the pool.
    case ConnectionKept: closed_ = false; break;
    case Tls:
      // The TLS version and the cipher, for the user's callback. There is also such a line for an
      // https proxy. It comes before that of the server, which replaces it, and with an http URL it
      // is the only one.
      if (!options_.on_connection || url_.scheme() != "https") break;
      abort_.guard(CURLE_OUT_OF_MEMORY, "the name of the cipher", [&] {
        tls_ = line->text;
        return true;
      });
      break;
  }
}

// Notes, for all transfers on the connection, that libcurl will close it and that the server
// processes no stream above `last_stream`.
void Transfer::on_connection_closing(std::uint32_t last_stream) {
  each_on_connection([&](Transfer& transfer) {
    transfer.last_stream_ = std::min(transfer.last_stream_, last_stream);
  });
}

// Returns whether both transfers have sent on the same connection. The local port alone does not
// tell, because connections to different servers may have the same one.
bool Transfer::shares_with(const Transfer& other) const {
  const int port = sends_.local_port;
  return port > 0 && other.sends_.sends > 0 && other.sends_.local_port == port &&
         other.url_.origin() == url_.origin() &&
         text_info(other.handle(), CURLINFO_PRIMARY_IP) == text_info(handle(), CURLINFO_PRIMARY_IP);
}

// Returns whether only the end of the HTTP/2 stream shows that the response is complete.
bool Transfer::end_is_unproven() const {
  return reader_.response.http_version == "2" && reader_.has_body() &&
         !reader_.response.headers.contains("Content-Length");
}

// Called when libcurl is done. Marks the connection as broken if a bad frame broke it, or begins to
// find that out if only another transfer on the connection can tell.
void Transfer::check_connection() {
  // libcurl 7.88 ends the streams of a connection that a bad frame broke with these codes.
  const bool may_be_broken = code_ == CURLE_OK || code_ == CURLE_GOT_NOTHING;
  const bool was_closing = last_stream_ != kNoLastStream;
  if (closed_ && !was_closing && may_be_broken) {
    each_on_connection([](Transfer& transfer) { transfer.broken_ = true; });
  }
  if (code_ == CURLE_OK && !broken_ && !was_closing && end_is_unproven()) probe_connection();
}

// Begins to find out whether the connection, which other transfers share, is intact. libcurl has
// reported success, but libcurl 7.88 also does so if a bad HTTP/2 frame broke the connection. It
// closes a broken connection, which shows the truth, only when the last stream ends. So this makes
// another transfer on the connection read, as a probe: on a broken connection, the probe ends at
// once, and then probes with the next transfer. Until the probe has run, this transfer is in
// `unconfirmed`, and its exchange does not end. Does nothing if there is no other transfer.
void Transfer::probe_connection() {
  // The push_back below must not allocate, because that may throw. So if the list is full, there is
  // no probe, and libcurl's success is trusted.
  if (shard->unconfirmed.size() == shard->unconfirmed.capacity()) return;
  for (auto* probe : shard->active) {
    if (probe == this || probe->curl_paused_ || !shares_with(*probe)) continue;
    // If all possible probes have ended, the next confirm_end ends this exchange.
    if (!std::exchange(unconfirmed_, true)) shard->unconfirmed.push_back(this);
    // libcurl has no function to run a transfer, but runs one whose pause ends. So the upload of
    // the probe is paused first. An error means that the probe has ended.
    probe->upload_held_ = false;  // CURLPAUSE_CONT also ends a pause by hold_upload
    if (curl_easy_pause(probe->handle(), CURLPAUSE_SEND) != CURLE_OK) continue;
    curl_easy_pause(probe->handle(), CURLPAUSE_CONT);
    // Other transfers may have used this one as their probe. It has ended, so they get the new one.
    // `awaits_probe_` makes confirm_end wait until libcurl has run the probe.
    for (auto* waiting : shard->unconfirmed) {
      if (waiting != this && waiting->probe_ != this) continue;
      waiting->probe_ = probe;
      waiting->awaits_probe_ = true;
    }
    return;
  }
}

// Ends the exchange if the probe has shown that the connection is broken, or if a second call shows
// that the probe has run and the connection is not broken.
void Transfer::confirm_end() {
  if (std::exchange(awaits_probe_, false) && !broken_) return;
  unconfirmed_ = false;
  std::erase(shard->unconfirmed, this);
  conclude_if_done();
}

// Returns why to end a transfer whose connection was flooded. A cancellation or a timeout that
// happened during the flood takes precedence.
Abort Transfer::flood_reason() const {
  if (stop_requested()) return Abort::Canceled;
  if (time_limit() > loop_.now()) return Abort::Flooded;
  return sends_.answered ? Abort::ResponseIncomplete : Abort::NoResponse;
}
}  // namespace httpretry
