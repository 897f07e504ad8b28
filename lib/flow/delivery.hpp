// Delivery: how the body of a call comes to its sink, over all attempts and whoever makes them.
#pragma once

#include <httpretry/flow/sink.hpp>

#include <functional>

namespace httpretry {

// A reader has said Wish::Stop.
HTTPRETRY_API Error wants_no_more();

class HTTPRETRY_API Delivery {
 public:
  // Which good answers must be looked at before the sink sees them; how much of a body is looked
  // at; and whether an answer is good still where that much of it has come.
  struct HoldBack {
    std::function<bool(int status, const Headers& headers)> which;
    std::size_t enough;
    std::function<bool(const Response& begun)> is_good;
  };

  // The one of this call, opened at its first attempt; nullptr where the request has no sink.
  static Result<Delivery*> of(const Request& request, Call& call);
  // The one that was opened, if any.
  static Delivery* begun(const Call& call);

  void hold_back(HoldBack rules) { hold_back_ = std::move(rules); }
  // Whether another attempt may be made.
  [[nodiscard]] bool can_go_on() const;

  // --- one exchange ---

  // The header lines that ask for the rest of the body, where there is a beginning.
  struct Rest {
    std::string range;     // empty: for all of it
    std::string if_range;  // may be empty
  };
  [[nodiscard]] const Rest& ask(const Request& request);
  // An answer's final headers are there: true where its body is for the sink.
  Result<bool> begin(const Request& request, const Response& head);
  Result<BodyWriter::Wish> write(std::string_view bytes);
  Task<Result<BodyWriter::Wish>> drain(Call& call) { return writer_->drain(call); }
  // Whether so much is there of an answer that is held back that it can be judged; and then, once:
  // true where it is for the sink after all, beginning with the body of `begun`.
  [[nodiscard]] bool can_judge(std::size_t have) const {
    return held_ && hold_back_ && have >= hold_back_->enough;
  }
  Result<bool> release(const Request& request, const Response& begun);
  // The body is whole; `outcome` has the head.
  Result<void> finish(Response& response);

  // An outcome that holds its body in memory (it was held back, or comes from a transport that
  // knows no sinks), given to the sink where it is for it.
  static Task<Outcome> hand_over(Request request, Call& call, Outcome outcome);
  // The last answer was held back.
  [[nodiscard]] bool held() const { return held_; }

 private:
  Delivery(std::shared_ptr<Sink> sink, std::unique_ptr<BodyWriter> writer);
  Result<bool> go_on_with(const Response& head);
  Result<bool> start_anew(const Response& head);
  [[nodiscard]] bool is_same(const Response& head) const;
  [[nodiscard]] bool is_all_there(const Response& head) const;

  std::shared_ptr<Sink> sink_;
  std::unique_ptr<BodyWriter> writer_;
  std::optional<HoldBack> hold_back_;
  bool held_ = false;

  std::uint64_t have_ = 0;  // bytes of the body that are with the writer
  std::uint64_t skip_ = 0;  // of what comes next: the writer has them
  std::optional<std::uint64_t> total_;
  std::string validator_;
  std::string url_;  // which `have_` is of; empty: the writer had it from an earlier call
  Rest rest_;
  bool vouched_ = false;   // for the beginning, by the user: asked for without a validator
  bool asked_ = false;     // for the rest, in this exchange
  bool complete_ = false;  // the server has no more than we have
};

}  // namespace httpretry
