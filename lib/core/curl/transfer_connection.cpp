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

// Returns whether the pooled connection has something to read that makes it unusable (RFC 9112
// §9.2: bytes that arrive without a pending request are not the response to the next request, but
// libcurl 7.88 would take them for it). Over TLS the bytes may not be a response, but even then the
// connection was not quite idle. Over HTTP/2 a server may send frames at any time, so only the end
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

// Updates what is known about the connection from a line of libcurl's log. A line about a
// connection may arrive through any transfer on it.
void Transfer::on_log_text(std::string_view text) noexcept {
  using enum LogLine::Kind;
  const auto line = read_log_line(text);
  if (!line) return;
  if (sends_.sends == 0 && line->kind != Tls) return;  // about connections that were not used
  switch (line->kind) {
    case StreamOpened: stream_ = line->number.value_or(0); break;
    case StreamRefused:
      refused_ = true;
      on_connection_closing(kUnknownLastStream);
      break;
    case GoAway: on_connection_closing(line->number.value_or(kUnknownLastStream)); break;
    case ConnectionClosed: closed_ = true; break;
    // The connection that was closed was another one, to make room in the pool.
    case ConnectionKept: closed_ = false; break;
    case Tls:
      // A proxy may speak TLS as well. Its line comes first, or is the only one, hence the check
      // for https. Otherwise only the headers of libcurl's TLS library would give access to these
      // facts.
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

// Makes another transfer on the connection read, as a probe, and leaves the end of this one
// unconfirmed until then. If a bad frame broke the connection, libcurl closes it only with the last
// of its streams; the other transfer then ends at once and probes with the next one. libcurl has no
// function to run a transfer, but runs one that is unpaused.
void Transfer::probe_connection() {
  // push_back would allocate, so this does without a probe.
  if (shard->unconfirmed.size() == shard->unconfirmed.capacity()) return;
  for (auto* other : shard->active) {
    if (other == this || other->curl_paused_ || !shares_with(*other)) continue;
    if (!std::exchange(unconfirmed_, true)) shard->unconfirmed.push_back(this);
    // An error means that the other transfer has ended.
    if (curl_easy_pause(other->handle(), CURLPAUSE_SEND) != CURLE_OK) continue;
    curl_easy_pause(other->handle(), CURLPAUSE_CONT);
    // Those whose probe was this transfer, which has ended, get the new probe as well.
    for (auto* waiting : shard->unconfirmed) {
      if (waiting != this && waiting->probe_ != this) continue;
      waiting->probe_ = other;
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
