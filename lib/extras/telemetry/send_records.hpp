// For observers that write something of each send once it was judged: a line, an entry.
#pragma once

#include <httpretry/chain/call.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::telemetry {

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
  Headers headers;  // of the response
};

// What is not written yet, of one call.
struct SendRecords {
  std::vector<std::unique_ptr<SendRecord>> open;
};

// Calls `send_over` for each exchange: when `retry` has judged it, or when it ends if there is no
// `retry`. If memory runs out, the record is dropped.
class SendWriter : public Observer {
 public:
  void exchange_started(const Call& call, const Request& request, int number) noexcept final;
  void exchange_ended(const Call& call, const Request& request, int number,
                      const Outcome& outcome) noexcept final;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept final;
  void call_ended(const Call& call, const Outcome& outcome) noexcept final;

 protected:
  // `attempt`: nullptr where it was not judged. May throw std::bad_alloc.
  virtual void send_over(const Call& call, const SendRecord& send, const Attempt* attempt) = 0;
  // An attempt that ended before an exchange began.
  virtual void not_sent(const Call& /*call*/, const Request& /*request*/,
                        const Attempt& /*attempt*/) {}
  virtual void call_over(const Call& /*call*/, const Outcome& /*outcome*/) {}

 private:
  void begin(const Call& call, const Request& request, int number);
  static void add_wait(SendRecord& record, const Attempt& attempt);
  void give(const Call& call, std::size_t index, const Attempt* attempt);
};

}  // namespace httpretry::telemetry
