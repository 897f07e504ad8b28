// Channel: reads and writes one connection of a server, with or without TLS, and ends it with a FIN
// or RST.
//
// The socket is non-blocking. The waiting functions also return when the server stops. After a
// function has returned false, only destroy the channel.
#pragma once

#include <httpretry/http/time.hpp>
#include <lib/core/base/descriptor.hpp>
#include <lib/core/base/owned.hpp>

#include <openssl/ssl.h>
#include <sys/types.h>

#include <memory>
#include <span>

namespace httpretry::faults {

// The result of a read or write that does not wait.
enum class Io {
  Done,
  WouldBlock,
  End,  // the other side has finished sending
  Broken
};

// Whether the bytes that are read stay in the channel and can be read again.
enum class Peek { No, Yes };

struct IoResult {
  Io io;
  std::size_t bytes = 0;
};

class Channel {
 public:
  // Makes the socket non-blocking. `stop_fd` becomes readable when the server stops.
  Channel(Descriptor socket, int stop_fd);
  // Calls `finish`.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Performs a TLS handshake as the server.
  [[nodiscard]] bool handshake(SSL_CTX& context);

  // Both transfer as many bytes as they can without waiting.
  [[nodiscard]] IoResult try_read(std::span<char> buffer, Peek peek = Peek::No);
  [[nodiscard]] IoResult try_write(std::string_view bytes);
  // Waits for at least one byte. Returns 0 if the connection has ended or the server stops.
  [[nodiscard]] std::size_t read(std::span<char> buffer);
  [[nodiscard]] bool write(std::string_view bytes);

  // Waits until there is something to read, without reading it. Returns false if the connection has
  // ended, the deadline has passed, or the server stops.
  [[nodiscard]] bool wait_for_bytes(Time deadline = kNever);
  // Waits, without reading, until the client closes the connection or the server stops.
  void wait_for_disconnect();
  // Sleeps. Returns false if the server stops.
  [[nodiscard]] bool pause(Duration time);

  // Closes the connection with a FIN. If there are unread bytes, the kernel sends an RST instead;
  // see `linger`.
  void finish();
  // Sends a FIN, then reads and discards for up to a second, so that a client that is still sending
  // can read the response.
  void linger();
  // Sends a FIN. Reading is still possible.
  void end_writing();
  // Closes the connection with an RST.
  void reset();

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] int stop_fd() const { return stop_fd_; }

 private:
  // Waits for poll events. Returns false if the deadline has passed or the server stops.
  bool wait(short events, Time deadline);
  IoResult plain_result(ssize_t bytes, short awaited);
  IoResult tls_result(int result, std::size_t bytes);
  // Repeats `attempt` until its result is not WouldBlock.
  template <class Attempt>
  IoResult complete(Attempt attempt, Time deadline = kNever);

  Descriptor socket_;
  int stop_fd_;
  Owned<SSL, SSL_free> tls_;
  bool tls_broken_ = false;
  short awaited_ = 0;  // the poll events to wait for after WouldBlock
};

}  // namespace httpretry::faults
