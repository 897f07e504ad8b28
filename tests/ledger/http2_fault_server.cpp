#include "http2_fault_server.hpp"

#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <vector>

namespace httpretry::ledger {
namespace {

constexpr std::size_t kBody = 1000;

int choose_h2(SSL* /*tls*/, const unsigned char** out, unsigned char* size,
              const unsigned char* /*in*/, unsigned int /*in_size*/, void* /*user*/) {
  static const std::array<unsigned char, 2> name{'h', '2'};
  *out = name.data();
  *size = 2;
  return SSL_TLSEXT_ERR_OK;
}

int take_any(int /*verified*/, X509_STORE_CTX* /*store*/) { return 1; }

struct Stream {
  std::string method, target, id, key, authorization, body;
  std::size_t left = 0;  // of the response's body
  bool cut_short = false;
  bool told = false;
};

// One connection, on a thread of its own.
class Talk {
 public:
  Talk(Http2FaultServer& server, int socket)
      : server_(server), socket_(socket), tls_(SSL_new(&server.context())) {
    SSL_set_fd(tls_, socket_);
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &on_close);
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
  }
  ~Talk() {
    nghttp2_session_del(session_);
    SSL_free(tls_);
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  void run() {
    const timeval patience{10, 0};  // a client that does not read, or stops in a record, is let go
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!handshake()) return;
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
    while (!cut_off_ && flush() && read_some()) {
    }
  }

 private:
  // Readable, or told to stop.
  bool wait_for_bytes() {
    if (SSL_pending(tls_) > 0) return true;
    std::array<pollfd, 2> waited{{{server_.stop_fd(), POLLIN, 0}, {socket_, POLLIN, 0}}};
    while (::poll(waited.data(), waited.size(), -1) < 0) {
    }
    return waited[0].revents == 0;
  }
  // Without blocking, for the server may be told to stop in the middle of it.
  bool handshake() {
    ::fcntl(socket_, F_SETFL, O_NONBLOCK);
    for (;;) {
      const int result = SSL_accept(tls_);
      if (result == 1) break;
      if (SSL_get_error(tls_, result) != SSL_ERROR_WANT_READ || !wait_for_bytes()) return false;
    }
    ::fcntl(socket_, F_SETFL, 0);
    return true;
  }
  bool read_some() {
    if (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0) {
      return false;
    }
    if (!wait_for_bytes()) return false;
    std::array<unsigned char, 16384> bytes{};
    const int count = SSL_read(tls_, bytes.data(), static_cast<int>(bytes.size()));
    if (count <= 0) return false;
    return nghttp2_session_mem_recv(session_, bytes.data(), static_cast<std::size_t>(count)) >= 0;
  }
  bool flush() {
    for (;;) {
      const std::uint8_t* bytes = nullptr;
      const auto count = nghttp2_session_mem_send(session_, &bytes);
      if (count <= 0) return count == 0;
      if (SSL_write(tls_, bytes, static_cast<int>(count)) <= 0) return false;
    }
  }

  void tell(Stream& stream, bool whole, bool refused) {
    if (std::exchange(stream.told, true) || (stream.id.empty() && !whole)) return;
    server_.saw({stream.id, stream.key, hash(stream.body), whole, refused, stream.target,
                 stream.authorization, shows_certificate()});
  }

  [[nodiscard]] bool shows_certificate() const {
    const Owned<X509, X509_free> certificate(SSL_get1_peer_certificate(tls_));
    return certificate != nullptr;
  }

  void answer(std::int32_t id, Stream& stream) {
    const auto mischief = server_.draw();
    const bool refused = mischief == Mischief::TryLater || mischief == Mischief::Throttle ||
                         mischief == Mischief::Refuse;
    tell(stream, true, refused);
    switch (mischief) {
      case Mischief::Unavailable: return respond(id, stream, "503", false, kBody);
      case Mischief::TryLater: return respond(id, stream, "503", true, kBody);
      case Mischief::Throttle: return respond(id, stream, "429", true, kBody);
      case Mischief::Refuse: return reset(id, NGHTTP2_REFUSED_STREAM);
      case Mischief::Reset: return reset(id, NGHTTP2_INTERNAL_ERROR);
      case Mischief::Silence: return;
      case Mischief::Disconnect: cut_off_ = true; return;
      case Mischief::GoAway:
        nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                              nullptr, 0);
        return respond(id, stream, "200", false, kBody);
      case Mischief::Truncate: stream.cut_short = true; break;
      case Mischief::None: break;
    }
    respond(id, stream, "200", false, kBody);
  }
  void reset(std::int32_t id, std::uint32_t code) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
  }
  void respond(std::int32_t id, Stream& stream, std::string status, bool later, std::size_t size) {
    const auto field = [](const char* name, const std::string& value) {
      const auto bytes = [](const char* text) {
        return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text));
      };
      return nghttp2_nv{bytes(name), bytes(value.c_str()), std::char_traits<char>::length(name),
                        value.size(), NGHTTP2_NV_FLAG_NONE};
    };
    const auto length = std::to_string(size);
    const std::string zero = "0";
    std::vector<nghttp2_nv> fields{field(":status", status), field("content-length", length),
                                   field("x-call", stream.id)};
    if (later) fields.push_back(field("retry-after", zero));
    stream.left = stream.cut_short ? size / 2 : size;
    nghttp2_data_provider body{};
    body.source.ptr = &stream;
    body.read_callback = &read_body;
    const bool bodyless = stream.method == "HEAD";
    nghttp2_submit_response(session_, id, fields.data(), fields.size(), bodyless ? nullptr : &body);
  }

  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                           std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                           void* /*self*/) {
    auto& stream = *static_cast<Stream*>(source->ptr);
    const auto count = std::min(size, stream.left);
    std::fill_n(into, count, std::uint8_t{'b'});
    stream.left -= count;
    if (stream.left > 0) return static_cast<ssize_t>(count);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream.cut_short) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
    }
    return static_cast<ssize_t>(count);
  }
  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                       std::size_t value_size, std::uint8_t /*flags*/, void* self) {
    auto& stream = static_cast<Talk*>(self)->streams_[frame->hd.stream_id];
    const std::string_view field(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (field == ":method") stream.method = text;
    if (field == ":path") stream.target = text;
    if (field == "x-call") stream.id = text;
    if (field == "authorization") stream.authorization = text;
    if (field == "idempotency-key") stream.key = text;
    return 0;
  }
  static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id,
                     const std::uint8_t* bytes, std::size_t size, void* self) {
    static_cast<Talk*>(self)->streams_[id].body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* self) {
    const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!carries || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    auto& talk = *static_cast<Talk*>(self);
    const auto stream = talk.streams_.find(frame->hd.stream_id);
    if (stream != talk.streams_.end()) talk.answer(stream->first, stream->second);
    return 0;
  }
  static int on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t /*code*/,
                      void* self) {
    auto& talk = *static_cast<Talk*>(self);
    const auto stream = talk.streams_.find(id);
    if (stream == talk.streams_.end()) return 0;
    talk.tell(stream->second, false, false);  // it broke off before its end
    talk.streams_.erase(stream);
    return 0;
  }

  Http2FaultServer& server_;
  int socket_;
  SSL* tls_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;  // nodes: nghttp2 keeps their addresses
  bool cut_off_ = false;
};

void block_signals() {  // SIGPIPE: OpenSSL writes without MSG_NOSIGNAL
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Http2FaultServer::Http2FaultServer(std::uint64_t seed, std::function<void(const Sight&)> saw)
    : reservation_(faults::bind_to("127.0.0.1", 0)), saw_(std::move(saw)), random_(seed) {
  SSL_CTX_set_alpn_select_cb(&context(), &choose_h2, nullptr);
  SSL_CTX_set_verify(&context(), SSL_VERIFY_PEER, &take_any);
  // Without it OpenSSL refuses to resume the session of a client with a certificate.
  constexpr std::array<unsigned char, 6> kName{'l', 'e', 'd', 'g', 'e', 'r'};
  SSL_CTX_set_session_id_context(&context(), kName.data(), kName.size());
  listen();
}

Http2FaultServer::~Http2FaultServer() { stop(); }

std::string Http2FaultServer::url(std::string_view path) const {
  return ("https://127.0.0.1:" + std::to_string(faults::port_of(reservation_))).append(path);
}

// A fifth of the requests fail. Those that take others with them are fewer, for each is many.
Mischief Http2FaultServer::draw() {
  const std::lock_guard lock(mutex_);
  const auto dice = random_() % 1000;
  if (dice < 40) return Mischief::Unavailable;
  if (dice < 70) return Mischief::TryLater;
  if (dice < 100) return Mischief::Throttle;
  if (dice < 130) return Mischief::Refuse;
  if (dice < 150) return Mischief::Reset;
  if (dice < 170) return Mischief::Truncate;
  if (dice < 185) return Mischief::Silence;
  if (dice < 195) return Mischief::GoAway;
  if (dice < 200) return Mischief::Disconnect;
  return Mischief::None;
}

void Http2FaultServer::restart() {
  stop();
  stop_.clear();
  listen();
}

void Http2FaultServer::listen() {
  auto listener = faults::bind_to("127.0.0.1", faults::port_of(reservation_));
  if (::listen(listener.get(), SOMAXCONN) != 0) faults::throw_errno("listen");
  thread_ = std::thread([this, owned = std::move(listener)] {
    block_signals();
    accept_all(owned.get());
  });
}

void Http2FaultServer::stop() {
  stop_.signal();
  thread_.join();
}

void Http2FaultServer::accept_all(int listener) {
  struct Served {
    explicit Served(int fd) : socket(fd) {}
    Descriptor socket;
    std::thread thread;
    std::atomic<bool> done = false;
  };
  std::list<Served> talks;
  for (;;) {
    std::array<pollfd, 2> waited{{{stop_.fd(), POLLIN, 0}, {listener, POLLIN, 0}}};
    if (::poll(waited.data(), waited.size(), -1) < 0) continue;
    if (waited[0].revents != 0) break;
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    talks.remove_if([](Served& served) {
      if (!served.done) return false;
      served.thread.join();
      return true;
    });
    auto& served = talks.emplace_back(socket);
    served.thread = std::thread([this, &served] {
      Talk(*this, served.socket.get()).run();
      ::shutdown(served.socket.get(), SHUT_RDWR);
      served.done = true;
    });
  }
  for (auto& served : talks) ::shutdown(served.socket.get(), SHUT_RDWR);  // whatever it waits for
  for (auto& served : talks) served.thread.join();
}

}  // namespace httpretry::ledger
