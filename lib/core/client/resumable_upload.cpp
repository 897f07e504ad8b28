#include <httpretry/client/resumable_upload.hpp>

#include "core.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/curl/errors.hpp"
#include "lib/core/http/checked_reader.hpp"
#include "lib/core/middleware/named_url.hpp"
#include "lib/core/middleware/send_again.hpp"

#include <algorithm>

namespace httpretry {
namespace {

constexpr int kIncomplete = 308;         // the server wants more of the content
constexpr int kMostWithoutProgress = 5;  // reports in a row

// Reads the first `size` bytes of a body.
class PartReader final : public BodyReader {
 public:
  PartReader(std::unique_ptr<BodyReader> rest, std::uint64_t size)
      : rest_(std::move(rest)), left_(size) {}
  Result<std::size_t> read(std::span<char> into) override {
    auto count = rest_->read(into.first(std::min<std::uint64_t>(into.size(), left_)));
    if (count && *count != kPause) left_ -= *count;
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return left_; }
  PausingReader* pausing() override { return rest_->pausing(); }

 private:
  std::unique_ptr<BodyReader> rest_;
  std::uint64_t left_;
};

// Returns the bytes of the content from `begin` up to `end`, as a body that can be read again.
Body part_of(const UploadContent& content, std::uint64_t begin, std::uint64_t end) {
  return Body::reopened([content, begin, end]() -> Result<std::unique_ptr<BodyReader>> {
    auto rest = content.from(begin).open();
    if (!rest) return rest;
    return std::unique_ptr<BodyReader>(std::make_unique<PartReader>(*std::move(rest), end - begin));
  });
}

Error protocol_error(const std::string& message) {
  return permanent_error(Errc::Protocol, "resumable upload: " + message);
}

// Returns how many bytes of the content the server has: 42 for "Range: bytes=0-41", and 0 without a
// Range. Returns nullopt for any other value.
std::optional<std::uint64_t> stored_bytes(const Response& response) {
  const auto field = response.headers.get("Range");
  if (!field) return 0;
  constexpr std::string_view kPrefix = "bytes=0-";
  if (!field->starts_with(kPrefix)) return std::nullopt;
  const auto last = to_number<std::uint64_t>(field->substr(kPrefix.size()));
  return last && *last < UINT64_MAX ? std::optional(*last + 1) : std::nullopt;
}

// Returns whether the policy's attempts or its time ran out for a request that could be resent.
bool ran_out_of_retries(const History& history) {
  return history.stop_reason == Reason::AttemptsExhausted ||
         history.stop_reason == Reason::ElapsedExhausted;
}

// The state of one upload: chooses the next request, and interprets its outcome. The call of a part
// shares ownership, because it may outlive the upload.
class Upload : public std::enable_shared_from_this<Upload> {
 public:
  Upload(Request start, UploadContent content, ResumableUploadOptions options)
      : start_(std::move(start)), content_(std::move(content)), options_(std::move(options)) {
    auto& start_options = start_.edit_options();
    if (!start_options.repeatable) start_options.repeatable = true;
    on_progress_ = std::exchange(start_options.on_progress, nullptr);
  }

  // Finds the size of the content. If the options name the session of an earlier upload, prepares
  // the requests to it; otherwise, the first request will be the one that begins a session. Returns
  // nullopt, or an error if nothing can be sent.
  std::optional<Error> begin(const Client& client) {
    if (start_.options().sink) {
      return Error(Errc::InvalidRequest, "the request of a resumable upload must not have a sink");
    }
    // `open` turns an exception into an error. So the user's function, `from`, is called inside it.
    CheckedReader reader;
    const auto open_content = [this] { return content_.from(0).open(); };
    const auto opened = reader.open(Body::reopened(open_content));
    if (!opened) return opened.error();
    const auto size = reader.bytes_left();
    if (!size) {
      return Error(Errc::InvalidRequest,
                   "the content of a resumable upload must have a known size");
    }
    size_ = *size;
    const bool continues_session = !options_.session.empty();
    // `finish` refuses a success that comes before the last byte was sent. In the session of an
    // earlier upload, that upload may have sent it.
    all_sent_ = size_ == 0 || continues_session;
    if (continues_session) {
      open_session(options_.session);
    } else if (const auto added = detail::CoreOf::get(client)->add_base_url(start_); !added) {
      return added.error();
    }
    return std::nullopt;
  }

  // Returns the next request: the one that begins a session, a question how much the server has, or
  // the next part of the content. A retry of a part first asks how much of it the server has.
  Request next() {
    if (step_ == Step::Start) return start_;
    if (step_ == Step::Ask) return question(session_);
    const auto left = size_ - stored_;
    const auto end =
        stored_ + (options_.part_size == 0 ? left : std::min(left, options_.part_size));
    all_sent_ = all_sent_ || end == size_;
    auto request = part(session_, stored_, end);
    SendAgain retry;
    retry.send = [self = shared_from_this(), end](Request attempt, Call& call, Next rest) {
      return self->ask_and_send(std::move(attempt), call, rest, end);
    };
    request.edit_options().context.set(std::move(retry));
    return request;
  }

  [[nodiscard]] CallOptions call() const {
    auto call = options_.call;
    if (call.timeout != kForever)
      call.timeout = std::max<Duration>(call.timeout - used_, Duration::zero());
    return call;
  }

  // Interprets the outcome of the last request, and chooses the next step. Returns the outcome of
  // the upload if it has ended, otherwise nullopt.
  std::optional<Outcome> take(Outcome outcome) {
    used_ += history_of(outcome).elapsed;
    if (step_ == Step::Start) return take_start(std::move(outcome));
    auto failure = std::exchange(failure_, std::nullopt);
    if (outcome && outcome->status == kIncomplete) return resume(*outcome, std::move(failure));
    if (outcome && outcome->is_2xx()) return finish(std::move(outcome));
    if (failure) return failure;  // the question failed, so the failure before it counts
    if (step_ == Step::Ask || !ran_out_of_retries(history_of(outcome))) return outcome;
    failure_ = std::move(outcome);
    step_ = Step::Ask;
    return std::nullopt;
  }

 private:
  enum class Step : std::uint8_t { Start, Part, Ask };

  // Handles the response to the request that begins a session. Its Location is the URL of the
  // session, to which the content is sent. Returns nullopt if the upload continues there, otherwise
  // the outcome of the upload: the failed outcome, or an error if the session cannot be used.
  std::optional<Outcome> take_start(Outcome outcome) {
    if (!outcome || !outcome->is_2xx()) return outcome;
    const auto location = outcome->headers.get("Location");
    if (!location) return protocol_error("the response that begins a session has no Location");
    // After a redirect, a relative Location refers to the URL that responded. The origin that may
    // get secrets is still that of the start.
    const auto& start_url = start_.parsed_url();
    const auto response_url = Url::parse(outcome->url);
    const auto base = response_url ? response_url : start_url;
    const auto url = base ? base->resolve(*location) : base;  // without a base, its error
    if (!url) return protocol_error("the Location of the session is " + url.error().message);
    const auto origin = start_url ? start_url->origin() : base->origin();
    if (url->origin() != origin && !options_.session_at_other_origin) {
      return protocol_error("the session is at another origin, " + std::string(url->origin()) +
                            ", than " + std::string(origin) +
                            "; set session_at_other_origin if you trust it");
    }
    open_session(url->to_string());
    if (options_.on_session) options_.on_session(url->to_string());
    return std::nullopt;
  }

  // Prepares the requests to a session. They get the userinfo of the start, unless the session has
  // its own. The first one sends a part of the content. If the session is not new or the content is
  // empty, it asks how much the server has.
  void open_session(const std::string& url) {
    session_ = Request("PUT", url);
    const auto& from = start_.parsed_url();
    const auto& to = session_.parsed_url();
    if (from && to && from->has_userinfo() && !to->has_userinfo()) {
      session_.set_url(with_userinfo_of(start_.url(), to->to_string()));
    }
    session_.edit_options() = start_.options();
    if (const auto secret = start_.headers().get("Authorization")) {
      session_.set_header("Authorization", *secret);
    }
    for (const auto field : options_.headers) session_.remove_header(field.name);
    for (const auto field : options_.headers) session_.add_header(field.name, field.value);
    const bool is_new = options_.session.empty();
    step_ = is_new && size_ > 0 ? Step::Part : Step::Ask;
  }

  // Continues after a 308, which reports how many bytes of the content the server has. Returns
  // nullopt if the upload continues, and otherwise its outcome. `failure` has a value if sending a
  // part failed and the server was then asked for this report. If the server has no more bytes than
  // before, the upload ends with that failure. Without a failure, it ends after too many reports in
  // a row that show no progress.
  std::optional<Outcome> resume(const Response& response, std::optional<Outcome> failure) {
    const auto stored = stored_bytes(response);  // nullopt if the Range header is malformed
    if (!stored || *stored > size_) {
      return protocol_error("the server reports the Range \"" +
                            printable(response.headers["Range"]) +
                            "\"; expected bytes=0-N, with N less than " + std::to_string(size_));
    }
    // The server may have less than before. That is no progress, but the upload continues there.
    const bool has_progress = *stored > most_stored_;
    if (failure && !has_progress) return failure;
    without_progress_ = has_progress ? 0 : without_progress_ + 1;
    if (without_progress_ > kMostWithoutProgress) {
      return protocol_error("the server stored nothing from the last requests; it has " +
                            std::to_string(*stored) + " of " + std::to_string(size_) + " bytes");
    }
    most_stored_ = std::max(most_stored_, *stored);
    stored_ = *stored;
    // If the server has everything, a 308 means that it has not finished: asks again.
    step_ = stored_ == size_ ? Step::Ask : Step::Part;
    return std::nullopt;
  }

  Outcome finish(Outcome outcome) const {
    if (all_sent_) return outcome;
    return protocol_error("the server ended the upload with the status " +
                          std::to_string(outcome->status) + " before it had all " +
                          std::to_string(size_) + " bytes");
  }

  // Makes an attempt after the first for the part that ends at `end`: asks how much the server has,
  // and sends the rest. Returns the answer if it has all of the part, or does not say.
  Task<Outcome> ask_and_send(Request attempt, Call& call, Next next, std::uint64_t end) const {
    auto asking = next(question(attempt), call);
    Outcome asked = co_await asking;
    const bool incomplete = asked && asked->status == kIncomplete;
    const auto had = incomplete ? stored_bytes(*asked) : std::nullopt;
    if (!had || *had >= end) co_return asked;
    auto sending = next(part(std::move(attempt), *had, end), call);
    Outcome sent = co_await sending;
    exchange_of(sent).wire_sends += asked->exchange.wire_sends;
    if (exchange_of(sent).sent == Sent::Never) exchange_of(sent).sent = asked->exchange.sent;
    co_return sent;
  }

  // Returns a request that asks how many bytes the server has. The server responds with a 308, or
  // with another status if it has all of them.
  [[nodiscard]] Request question(Request request) const {
    request.set_header("Content-Range", "bytes */" + std::to_string(size_)).set_body("");
    request.edit_options().on_progress = nullptr;
    return request;
  }

  // Returns the request that sends the bytes from `begin` up to `end`.
  [[nodiscard]] Request part(Request request, std::uint64_t begin, std::uint64_t end) const {
    request.set_header("Content-Range", "bytes " + std::to_string(begin) + "-" +
                                            std::to_string(end - 1) + "/" + std::to_string(size_));
    request.set_body(part_of(content_, begin, end));
    if (!on_progress_) return request;
    request.edit_options().on_progress = [self = shared_from_this(), begin](Progress now) {
      now.sent += begin;
      now.to_send = self->size_;
      self->on_progress_(now);
    };
    return request;
  }

  Request start_;
  UploadContent content_;
  ResumableUploadOptions options_;
  std::function<void(const Progress&)> on_progress_;
  Request session_ = Request("PUT", "");  // open_session sets the URL
  Step step_ = Step::Start;
  std::uint64_t size_ = 0;
  std::uint64_t stored_ = 0;        // how many bytes the server last reported
  std::uint64_t most_stored_ = 0;   // the maximum of these reports
  int without_progress_ = 0;        // how many reports in a row showed no progress
  bool all_sent_ = false;           // the last byte may have been sent
  std::optional<Outcome> failure_;  // of a part, while the server is asked how much it has
  Duration used_{};                 // the time of all requests so far
};

}  // namespace

UploadContent::UploadContent(std::function<Body(std::uint64_t offset)> from)
    : from_(std::move(from)) {}

UploadContent UploadContent::file(std::string path) {
  return UploadContent(
      [path = std::move(path)](std::uint64_t offset) { return Body::file(path, offset); });
}

// Returns content in memory. All requests share one copy of it. The body for an offset begins there
// each time that it is sent: Body::generated calls its function for each send, and then the
// function that this returns for each piece, until that copies 0 bytes.
UploadContent UploadContent::bytes(std::string content) {
  const auto shared = std::make_shared<const std::string>(std::move(content));
  return UploadContent([shared](std::uint64_t offset) {
    return Body::generated(
        [shared, offset] {
          return [shared, position = offset](std::span<char> into) mutable {
            const auto count = shared->copy(into.data(), into.size(), position);
            position += count;
            return count;
          };
        },
        shared->size() - offset);
  });
}

// Sends requests until the upload has ended. Returns the outcome of the last one, or an error.
Outcome upload_resumable(Client& client, Request start, UploadContent content,
                         ResumableUploadOptions options) {
  const auto upload =
      std::make_shared<Upload>(std::move(start), std::move(content), std::move(options));
  if (auto problem = upload->begin(client)) return *std::move(problem);
  for (;;) {
    auto end = upload->take(client.send(upload->next(), upload->call()));
    if (end) return *std::move(end);
  }
}

// Awaits what upload_resumable() blocks for.
Task<Outcome> co_upload_resumable(Client& client, Request start, UploadContent content,
                                  ResumableUploadOptions options) {
  const auto upload =
      std::make_shared<Upload>(std::move(start), std::move(content), std::move(options));
  auto problem = upload->begin(client);
  if (problem) co_return *std::move(problem);
  for (;;) {
    auto task = client.co_send(upload->next(), upload->call());
    Outcome outcome = co_await task;
    auto end = upload->take(std::move(outcome));
    if (end) co_return *std::move(end);
  }
}

}  // namespace httpretry
