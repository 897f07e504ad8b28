// Transfer: one exchange with a server. It is the referee of what goes on the wire: libcurl by
// itself sends a request again when a pooled connection turns out to be dead, or an HTTP/2 server
// refuses a stream, for every method. Here one exchange is one send, but for the rounds of
// authentication.
#pragma once

#include "easy.hpp"
#include "gunzip.hpp"
#include "loop.hpp"

namespace httpretry {

class Transfer final : public Waiter, private Timer, private EasyListener {
 public:
  // `addresses`: of the host, where libcurl shall take them up.
  Transfer(Loop& loop, const Request& request, const Url& url, const Call& call,
           const std::string* addresses = nullptr);
  ~Transfer() override;

  [[nodiscard]] bool await_ready();
  void await_suspend(std::coroutine_handle<> awaiter);
  Outcome await_resume();

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
    BodyUnreadable,
    NoMemory
  };

  void called_off() override;
  void due() override;
  bool about_to_send() noexcept override;
  bool header_line(std::string_view line) noexcept override;
  bool body_bytes(std::string_view bytes) noexcept override;
  std::size_t read_body(std::span<char> into) noexcept override;
  bool rewind_body() noexcept override;

  bool prepare();
  [[nodiscard]] long idle_limit() const;
  void arm();
  [[nodiscard]] Time limit() const;
  bool fail(Abort why);
  void end(Abort why);
  void begin_block(std::string_view status_line);
  bool end_block();
  bool start_body();
  bool take_body(std::string_view bytes);
  [[nodiscard]] bool has_credentials() const;
  [[nodiscard]] std::uint64_t max_body() const;

  // The system gave us no socket. libcurl would say that it could not connect.
  [[nodiscard]] bool lacks_socket() const;
  [[nodiscard]] bool refused_by_proxy() const {
    return abort_ == Abort::None && wire_sends_ == 0 && proxy_status_ >= 300;
  }
  void learn();
  [[nodiscard]] Exchange facts() const;
  Outcome answer();
  Error failure();
  [[nodiscard]] std::string message(Errc code) const;
  [[nodiscard]] std::string cause(Errc code) const;

  Loop& loop_;
  const Request& request_;
  const RequestOptions& options_;  // of the request
  const Url& url_;
  const std::string* addresses_;
  std::coroutine_handle<> awaiter_;
  std::unique_ptr<Easy> easy_;
  std::unique_ptr<BodyReader> reader_;
  std::optional<Error> refused_;  // what kept it from being started
  std::string body_error_;
  Time started_{};
  Time deadline_;
  Time last_byte_{};

  CURLcode code_ = CURLE_OK;
  Abort abort_ = Abort::None;
  bool running_ = false;

  // The referee's account.
  int wire_sends_ = 0;
  bool reused_ = false;      // the first send went out on a pooled connection
  bool answered_ = false;    // a final status came since the last send
  int status_ = 0;           // of the last block
  bool in_headers_ = false;  // between a status line and the empty line after it
  std::size_t header_bytes_ = 0;

  std::string_view version_ = "1.1";
  Headers headers_;
  Headers proxy_headers_;
  int proxy_status_ = 0;
  std::string body_;
  bool body_begun_ = false;
  std::unique_ptr<Gunzip> gunzip_;
};

}  // namespace httpretry
