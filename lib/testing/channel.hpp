// Channel: the bytes of one connection, with or without TLS, and the two ways to end it.
//
// The socket never blocks; waiting is done in one place, which also watches for the end of the
// server. Whoever is told "no" by a channel has nothing left to do but to let go of it.
#pragma once

#include <httpretry/http/time.hpp>
#include <lib/testing/descriptor.hpp>

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace httpretry::faults {

// What an attempt to move bytes without waiting came to.
enum class Io {
  Moved,
  Again,  // nothing to be done now
  End,    // the other side has finished sending
  Lost,   // the connection is broken
};

struct Progress {
  Io io;
  std::size_t bytes = 0;
};

class Channel {
 public:
  // Makes the socket non-blocking. `stop_fd` is readable once the server stops.
  Channel(Descriptor socket, int stop_fd);
  // Finishes.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The server's side of a TLS handshake.
  [[nodiscard]] bool handshake(SSL_CTX& context);

  [[nodiscard]] Progress try_read(std::span<char> into);
  [[nodiscard]] Progress try_write(std::string_view bytes);
  // 0: nothing more will come, or the server stops.
  [[nodiscard]] std::size_t read(std::span<char> into);
  [[nodiscard]] bool write(std::string_view bytes);

  // Waits until there is something to read, and reads nothing. False: the connection ended, the
  // deadline passed, or the server stops.
  [[nodiscard]] bool wait_for_bytes(Time deadline = kNever);
  // Waits until the other side ends the connection, or the server stops; reads nothing.
  void hold();
  // False: the server stops.
  [[nodiscard]] bool pause(Duration time);

  // FIN. What has arrived and was not read would turn it into an RST: see `linger`.
  void finish();
  // FIN, then reads on and throws away for up to a second: a client that is still sending gets to
  // read our answer.
  void linger();
  // FIN in our direction only.
  void end_writing();
  // RST.
  void reset();

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] int stop_fd() const { return stop_fd_; }

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  // False: the deadline passed, or the server stops.
  bool wait(short events, Time deadline);
  Progress tls_progress(int result, std::size_t bytes);

  Descriptor socket_;
  int stop_fd_;
  std::unique_ptr<SSL, FreeSsl> tls_;
  bool tls_broken_ = false;
  short awaited_ = 0;  // the poll events that the last Again was about
};

}  // namespace httpretry::faults
