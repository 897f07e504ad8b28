#include "lib/core/body/detail/delivery.hpp"

#include "lib/core/flow/resume_on.hpp"

#include "lib/core/base/text.hpp"

namespace httpretry {
namespace {

// A body of the pieces that a user's coroutine returns. An empty piece ends the body.
class PieceReader final : public PausingReader {
 public:
  PieceReader(NextPiece next, std::optional<std::uint64_t> size)
      : next_(std::move(next)), size_(size) {}

  Result<std::size_t> read(std::span<char> into) override {
    if (ended_) return std::size_t{0};
    if (position_ == piece_.size()) return kPause;
    const auto count = piece_.copy(into.data(), into.size(), position_);
    position_ += count;
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return size_; }

  Task<Result<void>> wait(Call& call) override {
    const auto task = next_(call);
    auto next = co_await task;
    if (!next) co_return std::move(next).error();
    piece_ = *std::move(next);
    position_ = 0;
    ended_ = piece_.empty();
    co_return Result<void>();
  }

 private:
  NextPiece next_;
  std::optional<std::uint64_t> size_;
  std::string piece_;
  std::size_t position_ = 0;  // of the next byte in `piece_`
  bool ended_ = false;
};

Error permanent_error(std::string message) {
  Error error(Errc::InvalidRequest, std::move(message));
  error.permanent = true;
  return error;
}

}  // namespace

Body awaited_body(std::function<NextPiece()> start, std::optional<std::uint64_t> size) {
  return Body::reopened([start = std::move(start), size]() -> Result<std::unique_ptr<BodyReader>> {
    return std::unique_ptr<BodyReader>(std::make_unique<PieceReader>(start(), size));
  });
}

Body awaited_body_once(NextPiece next, std::optional<std::uint64_t> size) {
  return Body::once(std::make_unique<PieceReader>(std::move(next), size));
}

// Waits until a request body that has paused can be read further: runs the user's coroutine
// `PausingReader::wait`, and then continues on the call's event loop. Returns an error if that
// coroutine fails or throws. The error is permanent, so that no retry follows.
Task<Result<void>> detail::wait_for_more(CheckedReader& reader, Call& call) {
  auto* pausing = reader.pausing();
  if (pausing == nullptr)
    co_return permanent_error("the body reader pauses, but is not a PausingReader");
  Result<void> ready;
  std::string thrown;  // returned only after the `catch`, which must not contain a co_await
  try {
    const auto task = pausing->wait(call);
    ready = co_await task;
  } catch (...) {
    thrown = "reading the body threw: " + text_of(std::current_exception());
  }
  // The user's coroutine may have continued on another thread.
  const ReturnTo calls_loop(call.scheduler());
  co_await calls_loop;
  if (!thrown.empty()) co_return permanent_error(std::move(thrown));
  if (!ready) co_return permanent_error(ready.error().message);
  co_return ready;
}

std::string about(const Request& request, const Url& url) {
  return request.method() + " " + printable(url.without_secrets()) + ": ";
}

Error sink_failed(const Request& request, const Response& response, Error error) {
  const auto& url = request.parsed_url();
  if (url) error.message = about(request, *url) + error.message;
  error.exchange = response.exchange;
  error.status = response.status;
  if (error.curl_code == 0) error.curl_code = 23;  // CURLE_WRITE_ERROR
  return error;
}

Error reader_stopped() {
  Error error(Errc::Canceled, "stopped by the reader of the body");
  error.permanent = true;
  return error;
}

}  // namespace httpretry
