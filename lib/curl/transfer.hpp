// Transfer: one exchange with a server. It is the referee of what goes on the wire: libcurl by
// itself sends a request again when a pooled connection turns out to be dead, or an HTTP/2 server
// refuses a stream, for every method. Here one exchange is one send, but for the rounds of
// authentication.
#pragma once

#include "easy.hpp"
#include "errors.hpp"
#include "gunzip.hpp"
#include "loop.hpp"

#include "lib/flow/delivery.hpp"

namespace httpretry {

// How a message about an exchange begins: "GET https://host/path: ", without secrets.
std::string about(const Request& request, const Url& url);

class Transfer final : public Waiter, private Timer, private EasyListener {
 public:
  // Everything must outlive it. `addresses`: of the host, where libcurl shall take them up;
  // `delivery` is where the body goes, if to a sink.
  Transfer(Loop& loop, const Request& request, const Url& url, const Call& call,
           const std::string* addresses, Delivery* delivery = nullptr);
  ~Transfer() override;

  [[nodiscard]] bool await_ready();
  void await_suspend(std::coroutine_handle<> awaiter);
  Outcome await_resume();

  // Where there is a sink: starts; then awaits the next moment at which either the sink must be
  // drained, or it is over. `go_on` takes what came of the draining.
  class Leg {
   public:
    explicit Leg(Transfer& transfer) : transfer_(transfer) {}
    [[nodiscard]] bool await_ready() const { return transfer_.paused_ || !transfer_.running_; }
    void await_suspend(std::coroutine_handle<> awaiter) { transfer_.awaiter_ = awaiter; }
    // Whether to drain; who called it off wants to hear no more.
    [[nodiscard]] bool await_resume() const {
      return transfer_.paused_ && transfer_.abort_ != Abort::Canceled;
    }

   private:
    Transfer& transfer_;
  };
  void start();
  void go_on(Result<BodyWriter::Wish> drained);
  [[nodiscard]] bool delivers() const { return to_sink_; }
  // What the sink made of a body that had come in full.
  [[nodiscard]] Error unfinished(Error error, const Exchange& exchange) const;

  // From the loop: libcurl is done with it.
  void finished(CURLcode code);

  [[nodiscard]] CURL* handle() const { return easy_->handle(); }
  Shard* shard = nullptr;  // where it runs; the loop's to set
  std::size_t place = 0;   // in that shard's list

 private:
  // Why we ended it, where it was not libcurl.
  enum class Abort {
    None,
    Canceled,
    Timeout,
    Resend,
    BodyTooLarge,
    HeadersTooLarge,
    Corrupt,
    Coding,
    BodyUnreadable,
    Sink,
    NoMemory
  };

  void called_off() override;
  void due() override;
  bool about_to_send(int local_port) noexcept override;
  void share_connection() const;
  bool header_line(std::string_view line) noexcept override;
  Taken body_bytes(std::string_view bytes) noexcept override;
  std::size_t read_body(std::span<char> into) noexcept override;
  bool rewind_body() noexcept override;

  bool prepare();
  [[nodiscard]] Result<void> keep_to_size(std::size_t count);
  bool check_private();
  [[nodiscard]] bool uses_cookies() const;
  [[nodiscard]] long idle_limit() const;
  void arm();
  [[nodiscard]] Time limit() const;
  bool fail(Abort why);
  void end(Abort why);
  void begin_block(std::string_view line);
  bool end_block();
  void resume_awaiter();
  [[nodiscard]] Response head() const;
  bool begin_delivery();
  bool release();
  bool deliver(std::string_view bytes);
  bool refused_by_sink(Error error);
  bool thrown() noexcept;
  bool sink_threw(const char* what) noexcept;
  bool take_encoded(std::string_view bytes);
  bool start_body();
  bool take_body(std::string_view bytes);
  [[nodiscard]] bool has_credentials() const;
  // Set up with what stays on a handle and is not for another request.
  [[nodiscard]] bool is_private() const;
  [[nodiscard]] std::uint64_t max_body() const;

  // The system gave us no socket. libcurl would say that it could not connect.
  [[nodiscard]] bool lacks_socket() const;
  [[nodiscard]] bool refused_by_proxy() const {
    return abort_ == Abort::None && wire_sends_ == 0 && proxy_status_ >= 300;
  }
  void learn();
  [[nodiscard]] Exchange facts() const;
  Outcome conclude();
  Outcome answer();
  struct Ending {
    CurlFailure kind;
    int curl_code;
  };
  [[nodiscard]] Ending ending() const;
  Error failure();
  [[nodiscard]] std::string message(Errc code) const;
  [[nodiscard]] std::string cause(Errc code) const;

  Loop& loop_;
  const Request& request_;
  const RequestOptions& options_;  // of the request
  const Url& url_;
  const std::string* addresses_;
  const Call& call_;
  Delivery* delivery_;
  std::coroutine_handle<> awaiter_;
  std::unique_ptr<Easy> easy_;
  std::unique_ptr<BodyReader> reader_;
  std::optional<Error> refused_;  // what kept it from being started, or what the sink said
  std::string body_error_;
  std::optional<std::uint64_t> body_left_;  // of a streamed body that has told its size
  Time started_{};
  Time deadline_;
  Time last_byte_{};

  CURLcode code_ = CURLE_OK;
  Abort abort_ = Abort::None;
  bool running_ = false;
  bool own_origin_ = false;  // looked up only where a secret of the client depends on it
  bool to_sink_ = false;     // the body of this answer
  bool paused_ = false;      // the sink must be drained
  bool stopped_ = false;     // libcurl was told to wait for it

  // The referee's account.
  int wire_sends_ = 0;
  bool reused_ = false;      // the first send went out on a pooled connection
  bool shared_ = false;      // others went out on the connection that was made for this one
  int local_port_ = 0;       // of the connection of the first send
  bool answered_ = false;    // a final status came since the last send
  int status_ = 0;           // of the last block
  bool in_headers_ = false;  // between a status line and the empty line after it
  std::size_t header_bytes_ = 0;

  std::string_view version_ = "1.1";
  std::string reason_;
  Headers headers_;
  Headers proxy_headers_;
  int proxy_status_ = 0;
  std::string body_;
  bool body_begun_ = false;
  std::unique_ptr<Gunzip> gunzip_;
};

}  // namespace httpretry
