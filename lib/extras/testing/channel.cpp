#include <lib/extras/testing/channel.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace httpretry::faults {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Long enough for a client on the loopback interface to read a response.
constexpr Duration kLinger = std::chrono::seconds(1);

// Returns a timeout for poll(). It is rounded up, because waking up a fraction of a millisecond
// early would spin.
int poll_timeout(Time deadline) {
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

}  // namespace

Channel::Channel(Descriptor socket, int stop_fd) : socket_(std::move(socket)), stop_fd_(stop_fd) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  // Responses are written whole; Nagle's algorithm would only delay their last segment.
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Channel::~Channel() { finish(); }

// Repeats `attempt` until its result is not WouldBlock, and returns that result, or Broken if the
// deadline passes or the server stops.
template <class Attempt>
IoResult Channel::complete(Attempt attempt, Time deadline) {
  for (;;) {
    ERR_clear_error();
    const auto result = attempt();
    if (result.io != Io::WouldBlock) return result;
    if (!wait(awaited_, deadline)) return {Io::Broken};
  }
}

bool Channel::handshake(SSL_CTX& context) {
  tls_.reset(SSL_new(&context));
  if (!tls_ || SSL_set_fd(tls_.get(), socket_.get()) != 1) return false;
  return complete([this] { return tls_result(SSL_accept(tls_.get()), 0); }).io == Io::Done;
}

// Interprets the result of an OpenSSL function, which is 1 on success. If it would block, stores
// the event to wait for: TLS may need to read before it can write, and the reverse.
IoResult Channel::tls_result(int result, std::size_t bytes) {
  if (result == 1) return {Io::Done, bytes};
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ: awaited_ = POLLIN; return {Io::WouldBlock};
    case SSL_ERROR_WANT_WRITE: awaited_ = POLLOUT; return {Io::WouldBlock};
    case SSL_ERROR_ZERO_RETURN: return {Io::End};
    default: tls_broken_ = true; return {Io::Broken};
  }
}

IoResult Channel::plain_result(ssize_t bytes, short awaited) {
  if (bytes > 0) return {Io::Done, static_cast<std::size_t>(bytes)};
  if (bytes == 0) return {Io::End};
  if (errno != EAGAIN && errno != EINTR) return {Io::Broken};
  awaited_ = awaited;
  return {Io::WouldBlock};
}

IoResult Channel::try_read(std::span<char> buffer, Peek peek) {
  const bool peeks = peek == Peek::Yes;
  if (!tls_) {
    const int flags = peeks ? MSG_PEEK : 0;
    return plain_result(::recv(socket_.get(), buffer.data(), buffer.size(), flags), POLLIN);
  }
  ERR_clear_error();
  std::size_t bytes = 0;
  const auto read_or_peek = peeks ? &SSL_peek_ex : &SSL_read_ex;
  const int result = read_or_peek(tls_.get(), buffer.data(), buffer.size(), &bytes);
  return tls_result(result, bytes);
}

// `bytes` must not be empty: a write of 0 bytes would look like the end of the connection.
IoResult Channel::try_write(std::string_view bytes) {
  if (!tls_) {
    return plain_result(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), POLLOUT);
  }
  ERR_clear_error();
  std::size_t written = 0;
  const int result = SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &written);
  return tls_result(result, written);
}

std::size_t Channel::read(std::span<char> buffer) {
  return complete([&] { return try_read(buffer); }).bytes;
}

bool Channel::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto result = complete([&] { return try_write(bytes); });
    if (result.io != Io::Done) return false;
    bytes.remove_prefix(result.bytes);
  }
  return true;
}

// Waits for poll events of the socket. Returns false if the deadline passes, the server stops, or
// poll fails. The timeout of poll is limited, so a poll without events may end before the deadline.
bool Channel::wait(short events, Time deadline) {
  std::array<pollfd, 2> polled{{{socket_.get(), events, 0}, {stop_fd_, POLLIN, 0}}};
  const auto& [socket_events, stop_events] = polled;
  for (;;) {
    const int ready = ::poll(polled.data(), polled.size(), poll_timeout(deadline));
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) return stop_events.revents == 0;
    if (ready == 0 && steady_clock::now() >= deadline) return false;
  }
}

bool Channel::wait_for_bytes(Time deadline) {
  char byte = 0;
  return complete([&] { return try_read({&byte, 1}, Peek::Yes); }, deadline).io == Io::Done;
}

void Channel::wait_for_disconnect() {
  if (socket_.is_open()) wait(POLLRDHUP, kNever);
}

bool Channel::pause(Duration time) {
  const auto deadline = later(steady_clock::now(), time);
  pollfd waited{stop_fd_, POLLIN, 0};
  do {
    if (::poll(&waited, 1, poll_timeout(deadline)) > 0) return false;
  } while (steady_clock::now() < deadline);
  return true;
}

void Channel::end_writing() {
  if (tls_ && !tls_broken_) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
  }
  ::shutdown(socket_.get(), SHUT_WR);
}

void Channel::finish() {
  // `close` alone would send the FIN without a TLS close_notify before it.
  end_writing();
  tls_.reset();
  socket_.close();
}

// Ends the writing, but reads and discards for up to a second: closing a socket with unread bytes
// would send an RST, which could make the client lose the response.
void Channel::linger() {
  end_writing();
  tls_.reset();  // the discarded bytes need not be decrypted
  const auto deadline = steady_clock::now() + kLinger;
  std::array<char, 16 * 1024> discarded{};
  while (steady_clock::now() < deadline && socket_.is_open() && wait(POLLIN, deadline)) {
    const auto result = try_read(discarded);
    if (result.io == Io::End || result.io == Io::Broken) break;
  }
  socket_.close();
}

void Channel::reset() {
  tls_.reset();
  const ::linger now{1, 0};  // a linger time of 0 makes `close` send an RST
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket_.close();
}

}  // namespace httpretry::faults
