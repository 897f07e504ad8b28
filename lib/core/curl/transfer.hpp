#pragma once

#include "loop.hpp"
#include "response_reader.hpp"
#include "send_tracker.hpp"
#include "upload.hpp"

#include <netinet/in.h>

#include <span>

namespace httpretry {

// Transfer is one exchange with a server on a libcurl handle. It connects the handle with the
// sender of the request's body (Upload), the reader of the response (ResponseReader) and the
// counter of sends (SendTracker), enforces the limits of time, and makes the Outcome.
// Loop::exchange makes one, starts it and awaits it until the end, on the thread that drives the
// loop:
//
//   if (auto started = transfer.start(addresses, Pooling::Allowed); !started) ... its error ...
//   for (;;) {
//     const auto wants = co_await transfer;
//     if (wants == Transfer::Wants::End) break;  // the exchange is over
//     if (wants == Transfer::Wants::Drain) ... drain the sink, on_drained(result) ...
//     if (wants == Transfer::Wants::Body) ... detach_reader, await more of it, reattach_reader ...
//   }
//   Outcome outcome = transfer.outcome();
class Transfer final : public CancelableWait {
 public:
  // Why the coroutine that awaits the transfer was resumed:
  // * Nothing: the reason has passed in the meantime. Await the transfer again.
  // * Drain: the sink can take no more for now. Its writer must be drained.
  // * Body: the reader of the request's body has no more for now. It must be awaited.
  // * End: the exchange is over.
  enum class Wants : std::uint8_t { Nothing, Drain, Body, End };

  // The arguments must outlive the transfer. `delivery` receives the body; nullptr keeps it in
  // memory.
  Transfer(Loop& loop, const Request& request, const Call& call, Delivery* delivery);
  ~Transfer() override;

  // Begins the exchange. `addresses` is the entry for CURLOPT_RESOLVE with the addresses of the
  // host, "+HOST:PORT:ADDRESS,...", which must outlive the transfer, or nullptr if libcurl knows
  // them. If the request cannot be sent, returns the error, which is the outcome of the exchange;
  // nothing else may then be called. All later failures, even that the call was canceled before the
  // start, are no error here: await the transfer, and `outcome` returns the error.
  Result<void> start(const std::string* addresses, Pooling pool);
  [[nodiscard]] bool await_ready() const { return reader_.paused || upload_waits() || !running_; }
  void await_suspend(std::coroutine_handle<> awaiter) { awaiter_ = awaiter; }
  [[nodiscard]] Wants await_resume() const {
    if (reader_.paused && abort_.why() != Abort::Canceled) return Wants::Drain;
    if (!running_) return Wants::End;
    return upload_waits() ? Wants::Body : Wants::Nothing;
  }
  // Called after Wants::Drain, with the result of BodyWriter::drain.
  void on_drained(Result<BodyWriter::Wish> drained);
  // Called after Wants::Body. Moves the reader of the request's body to the caller, who awaits more
  // of the body and then moves the reader back. The transfer stops `exchange_over` if it ends
  // before that.
  CheckedReader detach_reader(const std::stop_source& exchange_over);
  // `ready` is the result of that wait.
  void reattach_reader(CheckedReader body, Result<void> ready);
  // Called once, at the end.
  Outcome outcome();
  // At the end: returns whether the server refused the expectation (417). The request can then be
  // sent again without Expect.
  [[nodiscard]] bool expect_refused() const { return abort_.why() == Abort::ExpectRefused; }

  // At the end: returns whether nothing was sent, because the pooled connection had data to read
  // before the request. The request can then be sent on a new connection.
  [[nodiscard]] bool had_unread() const { return abort_.why() == Abort::Unread && connecting(); }

  // Called by the loop when libcurl has finished the transfer.
  void on_finished(CURLcode code);
  // Called by the loop each time after libcurl was driven, while this transfer is in
  // Shard::unconfirmed: libcurl reported success, but perhaps only because a bad frame broke the
  // HTTP/2 connection. Ends the exchange once the transfer that `probe_connection` made read has
  // run, which shows the truth.
  void confirm_end();
  // Called by the loop in each turn while received bytes are still to be decoded.
  void decode_rest() noexcept;
  [[nodiscard]] bool waits_for_sink() const { return reader_.paused; }
  // Called by the loop when the multi handle, and this transfer with it, has failed with `code`.
  void on_multi_failed(CURLMcode code);

  // libcurl's callbacks. They must not throw, and may call only getinfo and setopt of libcurl.
  curl_socket_t open_socket(const curl_sockaddr& address) noexcept;
  // `local_port` is the port of our end of the connection. Returns false to abort.
  bool about_to_send(int local_port) noexcept;
  bool header_line(std::string_view line) noexcept;  // false aborts
  std::size_t body_bytes(std::string_view bytes) noexcept;
  std::size_t send_bytes(std::span<char> into) noexcept;
  bool rewind_body() noexcept;
  // Reports the progress to the user's callback; `sent` bytes of the body are sent, as libcurl
  // counts them. Called only if progress is observed. Returns false to abort.
  bool report_progress(std::uint64_t sent = 0) noexcept;
  // Receives libcurl's log text. Called only if the connection may speak HTTP/2 or `on_connection`
  // is set.
  void on_log_text(std::string_view text) noexcept;

  // Since when this transfer has waited for more of its response, on a connection that others may
  // share. kNever if it does not wait for more.
  [[nodiscard]] Time waits_for_rest_since() const {
    const bool waits = connection_ != nullptr && sends_.answered && !curl_paused_;
    return waits ? last_byte_ : kNever;
  }
  // Pauses an upload that does not advance although libcurl is called, on a connection that may
  // spin. Returns whether it is paused now.
  bool hold_upload();
  void release_upload() {
    if (upload_held_) unpause();
  }
  [[nodiscard]] bool is_upload_held() const { return upload_held_; }

  // Returns whether nothing has been sent yet.
  [[nodiscard]] bool connecting() const { return sends_.sends == 0; }

  [[nodiscard]] CURL* handle() const { return easy_->handle(); }
  Shard* shard = nullptr;  // the shard it runs on; set by the loop

 private:
  // Values of last_stream_ above every stream number:
  static constexpr std::uint32_t kNoLastStream = UINT32_MAX;     // the connection is not closing
  static constexpr auto kUnknownLastStream = kNoLastStream - 1;  // closing, without a known number

  // CancelableWait
  void on_cancel() override { end(Abort::Canceled); }
  void due() override;

  Result<void> prepare(const std::string* addresses, Pooling pool);
  bool begin_send(int local_port) noexcept;
  [[nodiscard]] bool has_unread(int local_port) noexcept;
  [[nodiscard]] Abort flood_reason() const;
  [[nodiscard]] bool is_flooded() const { return connection_ && connection_->closed; }
  void on_connection_closing(std::uint32_t last_stream);
  template <class Function>
  void each_on_connection(const Function& function);
  [[nodiscard]] bool shares_with(const Transfer& other) const;
  [[nodiscard]] bool end_is_unproven() const;
  void reinterpret_failure();
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] std::int64_t announced_length() const {  // of the response body; -1 if unknown
    return info<curl_off_t>(handle(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
  }
  [[nodiscard]] std::uint64_t sent_bytes() const {  // of the request body
    return static_cast<std::uint64_t>(info<curl_off_t>(handle(), CURLINFO_SIZE_UPLOAD_T));
  }
  void check_connection();
  void probe_connection();
  bool end_of_headers();
  bool end_of_final_headers();
  void set_timer();
  [[nodiscard]] Time time_limit() const;
  [[nodiscard]] bool must_poll_upload() const;
  void resume_curl();
  // Returns whether the upload is paused until the reader of the request's body has more.
  [[nodiscard]] bool upload_waits() const { return upload_.paused && running_ && !curl_done_; }
  void unpause();
  void set_curl_paused(bool paused);
  void end(Abort why);
  void conclude_if_done() {
    if (!reader_.has_rest() && !unconfirmed_) conclude();
  }
  void conclude();
  // No coroutine awaits the transfer while the sink is drained: it sees the end afterwards.
  void resume_awaiter() {
    if (awaiter_) queue_.ready(std::exchange(awaiter_, nullptr));
  }

  Outcome make_outcome();
  [[nodiscard]] bool only_rest_is_missing() const;
  void verify_success();
  [[nodiscard]] bool leaves_body_out() const;
  void update_origin();
  Error failure();
  Error curl_failure();
  bool explain_socket(Error& error) const;
  void mark_shortage(Error& error) const;
  [[nodiscard]] bool line_too_long() const;
  // If a bad frame breaks an HTTP/2 connection, libcurl 7.88 ends its streams as if they were
  // complete, and only a Content-Length shows that they are not. Without one, the only sign is that
  // libcurl closed the connection although the server had not announced it.
  [[nodiscard]] bool was_cut_off() const { return broken_ && end_is_unproven(); }
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
  Time check_rest_at_ = kNever;    // when to check whether the rest of a failure is needed
  Time last_byte_{};               // of the request's body, then of the response
  std::uint64_t polled_sent_ = 0;  // bytes of a body in memory that were sent at the last poll

  CURLcode code_ = CURLE_OK;
  bool running_ = false;
  bool curl_done_ = false;          // libcurl is done, but some bytes are not decoded yet
  bool curl_paused_ = false;        // libcurl is paused for the sink or for decoding
  bool upload_held_ = false;        // libcurl is paused because the server gives no window
  std::uint64_t held_sent_ = 0;     // bytes of the body that were sent at the last hold_upload
  bool awaits_stream_end_ = false;  // the whole response has arrived, but libcurl waits for more
  // The socket that libcurl last asked for:
  int socket_error_ = 0;           // why it could not be opened (errno), or 0
  sockaddr_in6 socket_address_{};  // IPv6 or IPv4; zero for other families
  // The connection:
  // HTTP/2: streams above this number are not processed, and libcurl will close the connection,
  // although no frame broke it. Set by a GOAWAY or a refused stream.
  std::uint32_t last_stream_ = kNoLastStream;
  bool closed_ = false;        // libcurl has closed it
  bool broken_ = false;        // a bad frame broke it
  bool unconfirmed_ = false;   // libcurl is done, but the connection may be broken
  Transfer* probe_ = nullptr;  // the transfer on the same connection that was made to read; may
                               // dangle, so it is only compared
  bool awaits_probe_ = false;  // libcurl has not run `probe_` yet

  std::uint32_t stream_ = 0;  // the HTTP/2 stream of the request; 0 if unknown
  bool refused_ = false;      // the server refused the stream
  std::string tls_;           // for ConnectionInfo

  std::shared_ptr<Heartbeat::Watched> connection_;  // nullptr if the watchdog does not watch it

  AbortReason abort_;
  SendTracker sends_;
  ResponseReader reader_;
  Upload upload_;
  std::optional<Progress> progress_;              // as last reported
  std::stop_source body_over_{std::nostopstate};  // stops the wait for more of the body
};

}  // namespace httpretry
