// The handling of bodies by transports: Delivery for response bodies, wait_for_more for requests.
#pragma once

#include "lib/core/body/body_version.hpp"

#include "lib/core/http/checked_reader.hpp"

#include <httpretry/body/awaited_body.hpp>

#include <functional>

namespace httpretry {

// Returns the beginning of a message about an exchange: "GET https://host/path: ", without secrets.
std::string about(const Request& request, const Url& url);

// Returns the error of an exchange whose response was received but whose sink failed with `error`.
Error sink_failed(const Request& request, const Response& response, Error error);

// Returns the result of a BodyWriter. An error of the writer ends the call, so it becomes
// permanent.
template <class T>
Result<T> of_writer(Result<T> result) {
  if (result) return result;
  Error error = std::move(result).error();
  error.permanent = true;
  return error;
}

// Returns the error for a 206 with a part of the body that was not requested, because the request
// has no Range or names other bytes. Another attempt may help. Returns nullopt for any other
// response.
std::optional<Error> unasked_part(const Request& request, const Response& head);

// Returns the error for Wish::Stop.
Error reader_stopped();

namespace detail {

// Awaits BodyWriter::drain, which may be the user's, and continues on the loop of the call. Turns
// an exception into an error.
Task<Result<BodyWriter::Wish>> drain(BodyWriter& writer, Call& call);

// Waits until the paused reader has more, and continues on the call's scheduler. Turns an exception
// of the reader into an error. Errors are permanent.
HTTPRETRY_API Task<Result<void>> wait_for_more(CheckedReader& reader, Call& call);

// Delivery writes the response body of a call to the request's sink, across all attempts: after one
// that broke off, it continues where the sink stopped, or restarts it, so that no byte arrives
// twice. The sink is what the user sets in RequestOptions::sink; its writer (BodyWriter) is what it
// opens for one call. Transports and the `retry` middleware use a Delivery, on the thread that
// drives the call. The call owns it.
class HTTPRETRY_API Delivery {
 public:
  // The rules of a policy that read the bodies of successful responses before the sink gets them,
  // because a body may say that the request has failed.
  struct HoldBack {
    // Returns whether the rules read the body of a response with this status and these headers.
    std::function<bool(int status, const Headers& headers)> must_read;
    std::size_t byte_count;  // how many bytes of the body the rules read
    // Returns whether the rules call the response a success, so that its body may go to the sink.
    // The body of `begun` has at least `byte_count` bytes.
    std::function<bool(const Response& begun)> is_success;
  };

  // Returns the call's delivery to the sink of this request. Opens it at the first attempt, and
  // again if a middleware has set another sink. Returns nullptr if the request has no sink, and the
  // sink's error if it cannot be opened.
  static Result<Delivery*> of(const Request& request, Call& call);
  // Returns the delivery if it is already open, otherwise nullptr.
  static Delivery* if_open(const Call& call);

  void hold_back(HoldBack rules) { body_rules_ = std::move(rules); }
  // Returns whether a retry is possible: the writer can restart, or the next attempt can request
  // the rest.
  [[nodiscard]] bool can_retry() const;
  // Returns whether the writer has part of the body.
  [[nodiscard]] bool has_bytes() const { return position_ > 0; }
  // Returns how many bytes the writer got since the last call of this function that lie after all
  // it ever had. Bytes that a restart repeats are not counted again.
  std::uint64_t take_progress();
  // Returns whether the writer has the headers of a response.
  [[nodiscard]] bool has_begun() const { return !url_.empty(); }

  // A transport calls the functions below once in each exchange, in this order: `request_rest`,
  // `begin`, then `write` for all bytes, with `drain` after each Wish::Pause and after the last
  // bytes, and `finish`. If `begin` has returned false, `release` may take its place later.

  // The header lines, "Range: bytes=N-" and "If-Range: ...", that request only the rest of the
  // body. Both are empty if the whole body must be requested, because the writer has nothing of it
  // or cannot continue.
  struct Rest {
    std::string range;
    std::string if_range;  // also empty if the user guarantees that the body is the same
  };
  // Begins an exchange, and returns the header lines to add to its request.
  [[nodiscard]] const Rest& request_rest(const Request& request);
  // Called when the final headers have arrived. Returns true if the body goes to the sink, and
  // false if it stays in memory.
  Result<bool> begin(const Request& request, const Response& head);
  // After `begin`: returns the position, in the whole body, of the first byte that this exchange
  // receives. It is 0 unless the server sends only the rest.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  // Passes the bytes to the writer, except those that it already has. Returns what the writer
  // wants.
  Result<BodyWriter::Wish> write(std::string_view bytes);
  Task<Result<BodyWriter::Wish>> drain(Call& call) { return detail::drain(*writer_, call); }
  // Returns whether the body is held back and enough of it, `byte_count` bytes, has arrived for the
  // rules. Then call `release` once, with the response so far.
  [[nodiscard]] bool can_judge(std::size_t byte_count) const {
    return held_back_ && body_rules_ && byte_count >= body_rules_->byte_count;
  }
  // Has the rules judge a response whose body was held back. Returns true if the body goes to the
  // sink: the caller then writes the body of `begun` and what follows. Returns false if it stays in
  // memory.
  Result<bool> release(const Request& request, const Response& begun);
  // Called when the body is complete, or breaks off (Response::incomplete).
  Result<void> finish(Response& response);
  // Returns the error for a success whose body breaks off.
  static Error cut_off(const Response& response);

  // Both deliver a body that is in memory. `deliver` is for a transport without streams, and the
  // rules of the policy may hold the body back. `deliver_judged` is for a body that the rules have
  // judged.
  static Task<Outcome> deliver(Request request, Call& call, Outcome outcome);
  static Task<Outcome> deliver_judged(Request request, Call& call, Outcome outcome);
  // Called at the end of a call, for a body in memory that a user's middleware or transport made.
  // Returns an error if the sink cannot get it.
  static Task<Outcome> deliver_rest(Request request, Call& call, Outcome outcome);
  // Returns whether the last response was held back.
  [[nodiscard]] bool holds_back() const { return held_back_; }

 private:
  Delivery(std::shared_ptr<Sink> sink, std::unique_ptr<BodyWriter> writer);
  Task<Outcome> deliver_body(Request request, Call& call, Outcome outcome);
  void reset_exchange();
  Result<bool> end_at_416(const Response& head);
  Result<bool> continue_with(const Response& head);
  Result<bool> restart_with(const Response& head);
  [[nodiscard]] bool can_restart() const;
  Error cannot_resume(const std::string& why);

  std::shared_ptr<Sink> sink_;
  std::unique_ptr<BodyWriter> writer_;
  std::optional<HoldBack> body_rules_;  // nullopt without `retry`, and after they have judged
  bool held_back_ = false;              // the body of this exchange, until the rules have judged it

  std::uint64_t position_ = 0;        // how many bytes of the body the writer has
  std::uint64_t furthest_ = 0;        // the largest position_ at a call of take_progress
  std::uint64_t to_skip_ = 0;         // bytes that will be received again and must be skipped
  std::uint64_t offset_ = 0;          // of the first byte of this exchange
  std::optional<std::uint64_t> end_;  // the end of the bytes that continue earlier ones
  BodyVersion version_;               // of the first `position_` bytes
  std::string url_;  // of the first `position_` bytes; empty if they are from an earlier call
  Rest rest_;
  bool user_vouches_for_body_ = false;  // the rest then needs no validator
  bool rest_requested_ = false;         // by this exchange
  bool ended_by_416_ = false;           // the writer already has the whole body
  bool finished_ = false;               // the writer received a whole body
};

}  // namespace detail
using detail::Delivery;

}  // namespace httpretry
