// What transports do with bodies. Delivery brings the body of a call to its sink, over all attempts
// of the call; wait_for_more waits for a request's body that pauses.
#pragma once

#include "lib/core/body/body_version.hpp"

#include "lib/core/http/checked_reader.hpp"

#include <httpretry/body/awaited_body.hpp>

#include <functional>

namespace httpretry {

// How a message about an exchange begins: "GET https://host/path: ", without secrets.
std::string about(const Request& request, const Url& url);

// The error of an exchange whose response was received, but whose sink failed with `error`.
Error sink_failed(const Request& request, const Response& response, Error error);

// The error of a 206 with a part of the body, where the whole body was asked for. Empty if the
// response is none, or if the user has set Range. `permanent`: another attempt would not help.
HTTPRETRY_API std::optional<Error> unasked_part(const Request& request, const Response& head,
                                                bool permanent);

// For Wish::Stop.
HTTPRETRY_API Error reader_stopped();

// Waits until the reader, which has paused, has more; then continues on the scheduler of the call.
// What the reader throws is an error. An error is permanent.
HTTPRETRY_API Task<Result<void>> wait_for_more(CheckedReader& reader, Call& call);

class HTTPRETRY_API Delivery {
 public:
  // Rules of the policy that read the bodies of successful responses, before the sink gets them.
  struct HoldBack {
    std::function<bool(int status, const Headers& headers)> which;  // whose body must be read
    std::size_t enough;                                             // bytes that the rules read
    std::function<bool(const Response& begun)> is_good;             // with that many bytes
  };

  // The delivery of this call, opened at its first attempt; nullptr if the request has no sink.
  static Result<Delivery*> of(const Request& request, Call& call);
  // The same if it is open, else nullptr.
  static Delivery* begun(const Call& call);

  void hold_back(HoldBack rules) { hold_back_ = std::move(rules); }
  // Whether a retry is possible: the writer can restart, or the next attempt can ask for the rest.
  [[nodiscard]] bool can_retry() const;
  // Whether the writer has part of the body.
  [[nodiscard]] bool has_bytes() const { return have_ > 0; }
  // Whether the writer has the headers of a response.
  [[nodiscard]] bool has_begun() const { return !url_.empty(); }

  // For each exchange, in this order.

  // The header lines that ask for the rest of the body, if the writer has its beginning.
  struct Rest {
    std::string range;     // empty: the whole body is wanted
    std::string if_range;  // may be empty
  };
  [[nodiscard]] const Rest& ask(const Request& request);
  // The final headers were received. True if the body is for the sink.
  Result<bool> begin(const Request& request, const Response& head);
  // Then: where in the whole body the bytes that come begin.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  Result<BodyWriter::Wish> write(std::string_view bytes);
  Task<Result<BodyWriter::Wish>> drain(Call& call) { return writer_->drain(call); }
  // Whether enough of a body that is held back was received to judge it. Then `release` does, once:
  // true if it is for the sink, beginning with the body of `begun`.
  [[nodiscard]] bool can_judge(std::size_t have) const {
    return held_ && hold_back_ && have >= hold_back_->enough;
  }
  Result<bool> release(const Request& request, const Response& begun);
  // The body is complete.
  Result<void> finish(Response& response);

  // Delivers a body that is in memory. The first is for a transport without streams; the rules of
  // the policy may hold the body back. The second is for a body that they have judged.
  static Task<Outcome> deliver(Request request, Call& call, Outcome outcome);
  static Task<Outcome> deliver_judged(Request request, Call& call, Outcome outcome);
  // At the end of a call, for what a middleware or a transport of the user left in `body`. An error
  // if the sink cannot get it.
  static Task<Outcome> deliver_rest(Request request, Call& call, Outcome outcome);
  // Whether the last response was held back.
  [[nodiscard]] bool held() const { return held_; }

 private:
  Delivery(std::shared_ptr<Sink> sink, std::unique_ptr<BodyWriter> writer);
  Task<Outcome> put(Request request, Call& call, Outcome outcome);
  void reset_exchange();
  Result<bool> end_with(const Response& head);
  Result<bool> continue_with(const Response& head);
  Result<bool> restart_with(const Response& head);
  [[nodiscard]] bool can_restart() const;
  Error cannot_continue(const std::string& why);

  std::shared_ptr<Sink> sink_;
  std::unique_ptr<BodyWriter> writer_;
  std::optional<HoldBack> hold_back_;
  bool held_ = false;

  std::uint64_t have_ = 0;            // bytes of the body that the writer has
  std::uint64_t skip_ = 0;            // bytes that will be received again
  std::uint64_t offset_ = 0;          // of the first byte that this exchange brings
  std::optional<std::uint64_t> end_;  // where bytes that continue others end
  BodyVersion version_;               // of the bytes in `have_`
  std::string url_;  // of the bytes in `have_`; empty: they are from an earlier call
  Rest rest_;
  bool guaranteed_ = false;  // by the user: the rest is asked for without a validator
  bool asked_ = false;       // this exchange asks for the rest
  bool complete_ = false;    // the server has no more bytes
  bool finished_ = false;    // the writer got a whole body
};

}  // namespace httpretry
