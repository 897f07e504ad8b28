#include <httpretry/body/sink.hpp>

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/flow/resume_on.hpp"

namespace httpretry {

using Wish = BodyWriter::Wish;

Sink::~Sink() = default;
BodyWriter::~BodyWriter() = default;
std::optional<BodyStart> BodyWriter::had() const { return std::nullopt; }
bool BodyWriter::restartable() const { return false; }
Result<void> BodyWriter::begin(const Response& /*head*/, std::uint64_t /*offset*/) { return {}; }
void BodyWriter::forget() {}
Result<void> BodyWriter::finish() { return {}; }
Task<Result<Wish>> BodyWriter::drain(Call& /*call*/) { co_return Wish::More; }

namespace {

Error sink_threw(const std::exception_ptr& thrown) {
  auto error = detail::internal_error("sink", thrown);
  error.permanent = true;
  return error;
}

using TakeBytes = std::function<Result<bool>(std::string_view)>;
using detail::AwaitBytes;

Result<Wish> wish_of(Result<bool> more) {
  if (!more) return std::move(more).error();
  return *more ? Wish::More : Wish::Stop;
}

// The user's function that receives the body: exactly one of the two is set.
struct Taker {
  TakeBytes function;
  AwaitBytes coroutine;
};

class FunctionWriter final : public BodyWriter {
 public:
  explicit FunctionWriter(std::shared_ptr<const Taker> taker) : taker_(std::move(taker)) {}

  // Passes the bytes to the function, or keeps them for the coroutine, which `drain` awaits.
  Result<Wish> write(std::string_view bytes) override {
    if (taker_->coroutine) {
      undelivered_.append(bytes);
      return Wish::Pause;
    }
    try {
      return wish_of(taker_->function(bytes));
    } catch (...) {
      return sink_threw(std::current_exception());
    }
  }

  // Awaits the user's coroutine with the bytes that `write` has stored for it. The coroutine
  // returns whether it wants more, so this returns More or Stop, or the coroutine's error. A user's
  // function has received its bytes in `write`, so nothing is left for it here.
  Task<Result<Wish>> drain(Call& call) override {
    if (undelivered_.empty()) co_return Wish::More;
    const auto task = taker_->coroutine(std::exchange(undelivered_, std::string()), call);
    Result<bool> wants_more = co_await task;
    co_return wish_of(std::move(wants_more));
  }

 private:
  std::shared_ptr<const Taker> taker_;
  std::string undelivered_;  // bytes for the coroutine
};

class FunctionSink final : public Sink {
 public:
  explicit FunctionSink(Taker taker) : taker_(std::make_shared<const Taker>(std::move(taker))) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request& /*request*/) override {
    return std::unique_ptr<BodyWriter>(std::make_unique<FunctionWriter>(taker_));
  }

 private:
  std::shared_ptr<const Taker> taker_;
};

}  // namespace

// Awaits the writer's `drain`, which may be the user's, and continues on the loop of the call.
// Turns an exception into an error.
Task<Result<Wish>> detail::drain(BodyWriter& writer, Call& call) {
  std::exception_ptr thrown;  // returned only after the `catch`, which must not have a co_await
  Result<Wish> wish = Wish::More;
  try {
    const auto task = writer.drain(call);
    wish = co_await task;
  } catch (...) {
    thrown = std::current_exception();
  }
  // The user's coroutine may have continued on another thread than that of the call.
  const ReturnTo calls_loop(call.scheduler());
  co_await calls_loop;
  if (thrown) co_return sink_threw(thrown);
  co_return wish;
}

SinkPtr pass_to(TakeBytes take) {
  return std::make_shared<FunctionSink>(Taker{.function = std::move(take), .coroutine = {}});
}

SinkPtr detail::pass_to_coroutine(AwaitBytes take) {
  return std::make_shared<FunctionSink>(Taker{.function = {}, .coroutine = std::move(take)});
}

}  // namespace httpretry
