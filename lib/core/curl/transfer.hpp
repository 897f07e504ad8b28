// Transfer: one exchange with a server. It ties an easy handle to what sends the body (Upload),
// what reads the response (ResponseReader) and what counts the sends (SendTracker), keeps the
// limits of time, and makes the Outcome.
#pragma once

#include "loop.hpp"
#include "response_reader.hpp"
#include "send_tracker.hpp"
#include "upload.hpp"

#include <netinet/in.h>

#include <span>

namespace httpretry {

// In a coroutine on the loop:
//
//   ... transfer.start(addresses, false) ...
//   for (;;) {
//     const auto wants = co_await transfer;
//     if (wants == Transfer::Wants::End) break;  // the exchange is over
//     if (wants == Transfer::Wants::Drain) ... drain the sink, transfer.go_on(result) ...
//     if (wants == Transfer::Wants::Body) ... transfer.lend_body(), await more of it, take_body ...
//   }
//   Outcome outcome = transfer.outcome();
class Transfer final : public CancelableWait {
 public:
  enum class Wants : std::uint8_t { Nothing, Drain, Body, End };

  // Everything must outlive it. `delivery`: where the body goes, if to a sink.
  Transfer(Loop& loop, const Request& request, const Call& call, Delivery* delivery);
  ~Transfer() override;

  // `addresses`: of the host, where libcurl does not know them yet; `fresh`: on a new connection.
  // If it returns an error, that is the outcome.
  Result<void> start(const std::string* addresses, bool fresh);
  [[nodiscard]] bool await_ready() const { return reader_.paused || wants_body() || !running_; }
  void await_suspend(std::coroutine_handle<> awaiter) { awaiter_ = awaiter; }
  [[nodiscard]] Wants await_resume() const {
    if (reader_.paused && abort_.why() != Abort::Canceled) return Wants::Drain;
    if (!running_) return Wants::End;
    return wants_body() ? Wants::Body : Wants::Nothing;
  }
  void go_on(Result<BodyWriter::Wish> drained);
  // The body of the request, to await more of it. `over` is stopped when the exchange is over.
  CheckedReader lend_body(const std::stop_source& over);
  void take_body(CheckedReader body, Result<void> ready);
  // At the end, once.
  Outcome outcome();
  // At the end: the server did not want to be asked, and the request can be sent without Expect.
  [[nodiscard]] bool expect_refused() const { return abort_.why() == Abort::ExpectRefused; }

  // At the end: nothing was sent, because the connection from the pool had something to read. The
  // request can be sent on a new one.
  [[nodiscard]] bool had_unread() const {
    return abort_.why() == Abort::Unread && sends_.sends == 0;
  }

  // From the loop: libcurl is done with it.
  void finished(CURLcode code);
  // From the loop, each time after libcurl was driven, where `ask_other` asked. Ends the exchange
  // if the transfer that was asked has had its turn.
  void settle();
  // From the loop, in each turn as long as bytes are left that were received but not decoded.
  void decode_rest() noexcept;
  [[nodiscard]] bool waits_for_sink() const { return reader_.paused; }
  // From the loop: the multi handle is lost with it, for this reason.
  void lost(CURLMcode code);

  // The callbacks of libcurl. They must not throw, nor call libcurl except getinfo and setopt.
  curl_socket_t open_socket(const curl_sockaddr& address) noexcept;
  bool about_to_send(int local_port) noexcept;       // our end of the connection's; false aborts
  bool header_line(std::string_view line) noexcept;  // false aborts
  std::size_t body_bytes(std::string_view bytes) noexcept;
  std::size_t send_bytes(std::span<char> into) noexcept;
  bool rewind_body() noexcept;
  // How many bytes libcurl has sent of the body; false aborts. Only where somebody wants to know.
  bool progressed(std::uint64_t sent) noexcept;
  // What libcurl says about the connection, only where it may speak HTTP/2, or `on_connection` is
  // set.
  void heard(std::string_view text) noexcept;

  // It has received no more of a response since then, on a connection that others may share. kNever
  // if it does not wait for more.
  [[nodiscard]] Time waits_for_rest_since() const {
    const bool waits = connection_ != nullptr && sends_.answered && !curl_paused_;
    return waits ? last_byte_ : kNever;
  }
  // It has not sent yet.
  [[nodiscard]] bool connecting() const { return sends_.sends == 0; }

  [[nodiscard]] CURL* handle() const { return easy_->handle(); }
  Shard* shard = nullptr;  // where it runs; set by the loop

 private:
  static constexpr std::uint32_t kStays = UINT32_MAX;  // larger than the number of any stream

  // CancelableWait
  void on_cancel() override { end(Abort::Canceled); }
  void due() override;

  Result<void> prepare(const std::string* addresses, bool fresh);
  [[nodiscard]] bool has_unread(int local_port) noexcept;
  [[nodiscard]] Abort flood_reason() const;
  [[nodiscard]] bool flooded() const { return connection_ && connection_->closed; }
  void will_close(std::uint32_t last_stream);
  template <class Function>
  void each_on_connection(const Function& function);
  [[nodiscard]] bool shares_with(const Transfer& other) const;
  [[nodiscard]] bool may_be_cut_short() const;
  void judge_failure();
  [[nodiscard]] bool complete() const;
  [[nodiscard]] std::int64_t announced_length() const {  // of the response's body; -1: unknown
    return info<curl_off_t>(handle(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
  }
  [[nodiscard]] std::uint64_t sent_bytes() const {  // of the request's body
    return static_cast<std::uint64_t>(info<curl_off_t>(handle(), CURLINFO_SIZE_UPLOAD_T));
  }
  void look_at_connection();
  void ask_other();
  bool end_of_headers();
  void set_timer();
  [[nodiscard]] Time limit() const;
  [[nodiscard]] bool sends_from_memory() const;
  void resume_curl();
  [[nodiscard]] bool wants_body() const { return upload_.paused && running_ && !curl_done_; }
  void unpause();
  void set_curl_paused(bool paused);
  void end(Abort why);
  void conclude_if_done() {
    if (!reader_.has_rest() && !doubtful_) conclude();
  }
  void conclude();
  // While the sink is drained nobody awaits the transfer: the coroutine sees afterwards that it
  // ended.
  void resume_awaiter() {
    if (awaiter_) queue_.ready(std::exchange(awaiter_, nullptr));
  }

  Outcome ended();
  void check_end();
  [[nodiscard]] bool leaves_body_out() const;
  void learn_of_origin();
  Error failure();
  Error curl_failure();
  bool explain_socket(Error& error) const;
  void find_shortage(Error& error) const;
  [[nodiscard]] bool line_too_long() const;
  // Where an HTTP/2 connection breaks because of a frame, libcurl 7.88 ends its streams as if they
  // were complete; only a length shows that they are not. Without one the sign is that libcurl has
  // closed the connection, though the server did not announce it.
  [[nodiscard]] bool broke_off() const { return broken_ && may_be_cut_short(); }
  [[nodiscard]] Exchange exchange() const;

  Loop& loop_;
  const Request& request_;
  const Url& url_;
  const Call& call_;
  Delivery* delivery_;
  const RequestOptions& options_;  // of the request
  const ExchangeLimits limits_;
  std::coroutine_handle<> awaiter_;
  SendPlan plan_;
  std::unique_ptr<Easy> easy_;
  Time started_{};
  Time last_byte_{};             // of the request's body, then of the response
  std::uint64_t seen_sent_ = 0;  // bytes of a body from memory, when we last looked

  CURLcode code_ = CURLE_OK;
  bool running_ = false;
  bool curl_done_ = false;       // libcurl is done, but not all is decoded
  bool curl_paused_ = false;     // libcurl is paused, for the sink or for the decoding
  bool stream_may_end_ = false;  // the whole response has come, but not the end of its stream
  // The socket that libcurl last asked for:
  int socket_error_ = 0;           // why there is none (errno), or 0
  sockaddr_in6 socket_address_{};  // of IPv6 or IPv4; neither for others
  // Of the connection:
  // libcurl will close it though no frame broke it (HTTP/2): the server goes away, and processes no
  // stream above this, or it refused one.
  std::uint32_t last_stream_ = kStays;
  bool closed_ = false;         // libcurl has closed it
  bool broken_ = false;         // a frame broke it
  bool doubtful_ = false;       // libcurl is done, but the connection may be broken
  Transfer* asked_ = nullptr;   // then: another one on it, which may be gone
  bool awaits_answer_ = false;  // since libcurl was last driven

  std::uint32_t stream_ = 0;  // on it; 0: not known
  bool refused_ = false;      // by the server
  std::string tls_;           // for ConnectionInfo

  std::shared_ptr<Heartbeat::Watched> connection_;  // nullptr where the watchdog does not watch it

  AbortReason abort_;
  SendTracker sends_;
  ResponseReader reader_;
  Upload upload_;
  std::optional<Progress> progress_;              // as last reported
  std::stop_source body_over_{std::nostopstate};  // of the wait for more of the body
};

}  // namespace httpretry
