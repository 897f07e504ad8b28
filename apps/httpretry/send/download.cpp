#include "send/download.hpp"

#include "cli/exit_status.hpp"
#include "lib/core/base/text.hpp"
#include "send/write_out.hpp"

#include <chrono>

namespace httpretry::cli {
namespace {

using Wish = BodyWriter::Wish;
using Clock = std::chrono::steady_clock;

std::optional<std::uint64_t> length_of(const Response& head) {
  const auto field = head.headers.get("Content-Length");
  if (!field || head.headers.contains("Content-Encoding")) return std::nullopt;
  return to_number<std::uint64_t>(*field);
}

Error too_large(std::uint64_t most) {
  return permanent_error(Errc::TooLarge,
                         "the response body is larger than " + std::to_string(most) + " bytes",
                         63);  // CURLE_FILESIZE_EXCEEDED
}

// Returns the error for a body that could not be shown, because its reader is gone or too slow for
// -m, or because a signal arrived.
Error not_shown(const BodyOutput& output, const WriteError& cause) {
  if (output.limit().has_expired()) {
    return permanent_error(Errc::Timeout, "the response was not read within the time limit of -m",
                           28);  // CURLE_OPERATION_TIMEDOUT
  }
  const bool stopped = output.limit().signals().received() != 0;
  return permanent_error(stopped ? Errc::Canceled : Errc::Internal, cause.what(),
                         23);  // CURLE_WRITE_ERROR
}

// Returns whether a retry can receive the rest of the body if the connection breaks: with a range
// request and a strong ETag.
bool can_be_continued(const Request& request, const Response& head) {
  const auto& headers = head.headers;
  return request.method() == "GET" && !request.headers().contains("Range") && head.status == 200 &&
         headers.get("ETag").value_or("").starts_with('"') &&
         !headers.contains("Content-Encoding") && headers.get("Accept-Ranges") != "none";
}

// Writer receives the body of one call, and passes it to the file, the buffer or the output of a
// Download.
class Writer final : public BodyWriter {
 public:
  Writer(Download& download, const Request& request, std::unique_ptr<BodyWriter> file)
      : download_(download),
        options_(download.options()),
        request_(request),
        file_(std::move(file)) {}

  // With -C N, claims to have the first N bytes, so that the transfer requests the rest.
  [[nodiscard]] std::optional<BodyStart> had() const override {
    if (options_.offset == 0) return file_ ? file_->had() : std::nullopt;
    BodyStart skipped;
    skipped.size = options_.offset;
    return skipped;
  }
  // Bytes that were shown, or appended to a file with -C N, cannot be taken back.
  [[nodiscard]] bool restartable() const override {
    if (options_.offset > 0 || download_.is_shown) return !has_begun_;
    return !file_ || file_->restartable();
  }

  // Called with the headers of each response whose body will be received, including those after a
  // retry. The body begins at `offset` of the whole body: at 0, unless -C or a retry continues an
  // earlier one. Prepares the place that receives the body: a file or, without one, the buffer or
  // the output, to which write() passes the bytes. Returns an error if the body begins before
  // the offset of -C or is too large, or if its file cannot be created.
  Result<void> begin(const Response& head, std::uint64_t offset) override {
    if (offset < options_.offset) {
      return permanent_error(Errc::Protocol,
                             "the server sent the whole file instead of the part that -C asks for",
                             33);  // CURLE_RANGE_ERROR
    }
    // finish() counts the bytes after this position as received by this call. A retry that begins
    // at 0 counts anew.
    if (!has_begun_ || offset == 0) start_position_ = offset;
    has_begun_ = true;
    position_ = offset;
    const auto length = length_of(head);
    if (length && exceeds_limit(offset + *length)) return too_large(*options_.max_size);
    response_began_ = Clock::now();  // --limit-rate compares new_bytes_ with the time since then
    new_bytes_ = 0;
    if (download_.is_shown) return {};  // the output has received the bytes before `offset`
    if (options_.output) prepare_to_show(head, offset);
    if (auto chosen = choose_file(head.headers); !chosen) return chosen;  // for -J
    if (file_) return file_->begin(head, offset);
    // Keeps the bytes before `offset`. With -C N, the first N bytes of the body are not in the
    // buffer. With an output, the buffer keeps the body until write() shows it.
    download_.buffer.truncate(offset - options_.offset);
    return {};
  }

  void forget() override {
    if (file_) file_->forget();
    if (options_.offset > 0)
      has_begun_ = true;  // the whole body cannot be appended after the offset
  }

  // Passes the bytes to the file, the output or the buffer. With --limit-rate, returns Pause, so
  // that `drain` is called before the next bytes.
  Result<Wish> write(std::string_view bytes) override {
    position_ += bytes.size();
    new_bytes_ += bytes.size();
    if (exceeds_limit(position_)) return too_large(*options_.max_size);
    if (file_) {
      auto written = file_->write(bytes);
      if (!written || *written != Wish::More) return written;
    } else {
      decide_to_show(bytes);
      auto result = download_.is_shown ? show(bytes) : download_.buffer.append(bytes);
      if (!result) return std::move(result).error();
    }
    return options_.bytes_per_second ? Wish::Pause : Wish::More;
  }

  // Sleeps to keep the average speed below the limit.
  Task<Result<Wish>> drain(Call& call) override {
    if (options_.bytes_per_second) {
      const auto due = Duration(static_cast<Duration::rep>(
          1e9 * static_cast<double>(new_bytes_) / static_cast<double>(*options_.bytes_per_second)));
      const auto when = std::min(later(Time(response_began_), due), call.deadline());
      co_await call.scheduler().sleep_until(when, call.stop());
    }
    co_return Wish::More;
  }

  // Called at the end of a whole body.
  Result<void> finish() override {
    if (download_.is_shown) {
      if (auto ended = to_output([&] { options_.output->finish(); }); !ended) return ended;
    }
    if (file_) {
      if (auto finished = file_->finish(); !finished) return finished;
    }
    if (options_.named) options_.named->keep();
    download_.complete = true;
    download_.received = position_ - start_position_;
    return {};
  }

 private:
  [[nodiscard]] bool exceeds_limit(std::uint64_t size) const {
    return options_.max_size && size > *options_.max_size;
  }

  void prepare_to_show(const Response& head, std::uint64_t offset) {
    if (options_.at_once) download_.is_shown = true;
    if (offset > 0) return;  // the first response decided this
    continuable_ = options_.offset == 0 && can_be_continued(request_, head);
    if (options_.include) options_.output->set_head(head_of(head));
  }

  // Decides whether the body is shown from now on: only if a retry can continue it, and `bytes` do
  // not fit into memory. Output cannot be taken back, so any other body stays in the buffer until
  // it is complete.
  void decide_to_show(std::string_view bytes) {
    if (continuable_ && !download_.buffer.fits_in_memory(bytes.size())) download_.is_shown = true;
  }

  // Shows the bytes in the buffer, and then `bytes`.
  Result<void> show(std::string_view bytes) {
    return to_output([&] {
      if (download_.buffer.size() > 0) {
        download_.buffer.read([&](std::string_view kept) { options_.output->write(kept); });
        download_.buffer.clear();
      }
      options_.output->write(bytes);
    });
  }

  // Converts WriteError to a result, because no exception may pass through libcurl, which calls
  // this.
  template <class Write>
  Result<void> to_output(Write write) {
    try {
      write();
      return {};
    } catch (const WriteError& error) {
      return not_shown(*options_.output, error);
    }
  }

  // Opens the file that the server names (-J). The first response chooses it for all attempts.
  Result<void> choose_file(const Headers& head) {
    if (!options_.named || file_is_chosen_) return {};
    file_is_chosen_ = true;
    auto name = options_.named->choose(head);
    if (!name) return std::move(name).error();
    if (name->empty()) return {};
    auto file = save_to(*name)->open(request_);
    if (!file) return std::move(file).error();
    file_ = *std::move(file);
    download_.chosen_file = *std::move(name);
    return {};
  }

  Download& download_;
  const DownloadOptions& options_;
  Request request_;
  std::unique_ptr<BodyWriter> file_;
  bool has_begun_ = false;
  bool file_is_chosen_ = false;
  bool continuable_ = false;
  std::uint64_t position_ = 0;        // in the whole body
  std::uint64_t start_position_ = 0;  // the position at which this call started
  std::uint64_t new_bytes_ = 0;       // of this response
  Clock::time_point response_began_;
};

}  // namespace

Result<std::unique_ptr<BodyWriter>> Download::open(const Request& request) {
  complete = false;
  is_shown = false;
  received = 0;
  buffer.clear();
  std::unique_ptr<BodyWriter> file;
  if (options_.file) {
    auto opened = options_.file->open(request);
    if (!opened) return std::move(opened).error();
    file = *std::move(opened);
  }
  return std::unique_ptr<BodyWriter>(std::make_unique<Writer>(*this, request, std::move(file)));
}

}  // namespace httpretry::cli
