// The state of a transfer's connection: which transfers share it, and whether it is closing or
// broken.
#include "log_text.hpp"
#include "transfer.hpp"

#include <algorithm>
#include <cstring>

namespace httpretry {
curl_socket_t Transfer::open_socket(const curl_sockaddr& address) noexcept {
  const int fd = loop_.sockets.open(address);
  socket_error_ = fd < 0 ? -fd : 0;
  socket_address_ = {};
  if (address.addrlen <= sizeof socket_address_) {
    std::memcpy(&socket_address_, &address.addr, address.addrlen);
  }
  return fd < 0 ? CURL_SOCKET_BAD : fd;
}

// RFC 9112 §9.2: bytes on a connection without a pending request are not the response to the next
// request, but libcurl 7.88 would take them for it. Over TLS the bytes may not be a response, but
// even then the connection was not quite idle. Over HTTP/2 a server may send frames at any time, so
// only the end of the connection counts. libcurl checks for that itself, but from 8.22 on only once
// per second.
bool Transfer::has_unread(int local_port) noexcept {
  static const bool checks_rarely = curl_version_info(CURLVERSION_NOW)->version_num >= 0x081600;
  try {
    const bool http1 = !plan_.may_multiplex || loop_.origin(url_).speaks_http1 ||
                       loop_.sockets.is_http1(local_port);
    return http1 ? loop_.sockets.has_unread(local_port)
                 : checks_rarely && loop_.sockets.has_ended(local_port);
  } catch (const std::bad_alloc&) {
    return true;
  }
}

template <class Function>
void Transfer::each_on_connection(const Function& function) {
  function(*this);
  for (const auto* list : {&shard->active, &shard->doubtful}) {
    for (auto* other : *list) {
      if (other != this && shares_with(*other)) function(*other);
    }
  }
}

// libcurl's log about a connection may come through any transfer on it.
void Transfer::on_log_text(std::string_view text) noexcept {
  using enum LogLine::Kind;
  const auto line = read_log_line(text);
  if (!line) return;
  if (sends_.sends == 0 && line->kind != Tls) return;  // about connections that were not used
  switch (line->kind) {
    case StreamOpened: stream_ = line->number.value_or(0); break;
    case StreamRefused:
      refused_ = true;
      will_close(kStays - 1);
      break;
    case GoAway: will_close(line->number.value_or(kStays - 1)); break;
    case ConnectionClosed: closed_ = true; break;
    // Another connection was closed, to make room in the pool.
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

void Transfer::will_close(std::uint32_t last_stream) {
  each_on_connection([&](Transfer& transfer) {
    transfer.last_stream_ = std::min(transfer.last_stream_, last_stream);
  });
}

// Connections to different servers may have the same local port.
bool Transfer::shares_with(const Transfer& other) const {
  const int port = sends_.local_port;
  return port > 0 && other.sends_.sends > 0 && other.sends_.local_port == port &&
         other.url_.origin() == url_.origin() &&
         text_info(other.handle(), CURLINFO_PRIMARY_IP) == text_info(handle(), CURLINFO_PRIMARY_IP);
}

void Transfer::look_at_connection() {
  // libcurl 7.88 ends the streams of a connection that a bad frame broke with these codes.
  const bool by_frame = code_ == CURLE_OK || code_ == CURLE_GOT_NOTHING;
  const bool will_close = last_stream_ != kStays;
  if (closed_ && !will_close && by_frame) {
    each_on_connection([](Transfer& transfer) { transfer.broken_ = true; });
  }
  if (code_ == CURLE_OK && !broken_ && !will_close && may_be_cut_short()) ask_other();
}

// libcurl closes a connection that a bad frame broke only with the last of its streams. So if the
// connection has other transfers, this makes one of them read. If the connection is broken, that
// transfer ends at once and in turn asks the next. libcurl has no function to run a transfer, but
// runs one that is unpaused.
void Transfer::ask_other() {
  // push_back would allocate.
  if (shard->doubtful.size() == shard->doubtful.capacity()) return;
  for (auto* other : shard->active) {
    if (other == this || other->curl_paused_ || !shares_with(*other)) continue;
    if (!std::exchange(doubtful_, true)) shard->doubtful.push_back(this);
    // The transfer has ended.
    if (curl_easy_pause(other->handle(), CURLPAUSE_SEND) != CURLE_OK) continue;
    curl_easy_pause(other->handle(), CURLPAUSE_CONT);
    for (auto* asking : shard->doubtful) {  // also those that waited for this one
      if (asking != this && asking->asked_ != this) continue;
      asking->asked_ = other;
      asking->awaits_answer_ = true;
    }
    return;
  }
}

void Transfer::settle() {
  if (std::exchange(awaits_answer_, false) && !broken_) return;
  doubtful_ = false;
  std::erase(shard->doubtful, this);
  conclude_if_done();
}

// A cancellation or a timeout that happened during the flood takes precedence.
Abort Transfer::flood_reason() const {
  if (stop_requested()) return Abort::Canceled;
  if (limit() > loop_.now()) return Abort::Flooded;
  return sends_.answered ? Abort::ResponseIncomplete : Abort::NoResponse;
}
}  // namespace httpretry
