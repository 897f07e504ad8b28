// SendWriter: the base of observers that write a line or an entry for each send, once the send was
// judged.
#pragma once

#include <httpretry/chain/call.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::telemetry {

// The facts about a send.
struct SendRecord {
  explicit SendRecord(Request sent) : request(std::move(sent)) {}

  const void* owner = nullptr;  // the observer
  int number = 0;               // of the exchange
  int attempt = 0;
  bool ended = false;
  WallTime at{};
  Request request;
  int status = 0;
  std::string reason;
  std::string http_version;
  std::optional<Errc> error;
  std::string message;
  Exchange exchange;
  Headers headers;                  // of the response
  std::optional<std::string> body;  // of the response, if the writer keeps it
};

// The sends of a call that were not written yet.
struct SendRecords {
  std::vector<std::unique_ptr<SendRecord>> open;
};

// Calls `on_send_ended` for each exchange: when the retry middleware has judged it, or when it ends
// if there is no such middleware. If memory runs out, the record is dropped.
class SendWriter : public Observer {
 public:
  void exchange_started(const Call& call, const Request& request, int number) noexcept final;
  void exchange_ended(const Call& call, const Request& request, int number,
                      const Outcome& outcome) noexcept final;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept final;
  void call_ended(const Call& call, const Outcome& outcome) noexcept final;

 protected:
  // `attempt` is nullptr if the send was not judged. This function and the two below may throw
  // std::bad_alloc.
  virtual void on_send_ended(const Call& call, const SendRecord& send, const Attempt* attempt) = 0;
  // Called for an attempt that ended before an exchange began.
  virtual void on_not_sent(const Call& /*call*/, const Request& /*request*/,
                           const Attempt& /*attempt*/) {}
  // Returns the size up to which the bodies of responses are kept.
  [[nodiscard]] virtual std::uint64_t max_body() const { return 0; }
  virtual void on_call_ended(const Call& /*call*/, const Outcome& /*outcome*/) {}

 private:
  void begin(const Call& call, const Request& request, int number);
  static void add_wait(SendRecord& record, const Attempt& attempt);
  void finish(const Call& call, std::size_t index, const Attempt* attempt);
};

}  // namespace httpretry::telemetry
