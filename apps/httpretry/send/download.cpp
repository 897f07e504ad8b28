#include "send/download.hpp"

#include "send/bar.hpp"

#include <charconv>
#include <chrono>

namespace httpretry::cli {
namespace {

using Wish = BodyWriter::Wish;
using Clock = std::chrono::steady_clock;
std::optional<std::uint64_t> length_of(const Response& head) {
  const auto field = head.headers.get("Content-Length");
  std::uint64_t length = 0;
  if (!field || head.headers.contains("Content-Encoding")) return std::nullopt;
  const auto [end, code] = std::from_chars(field->data(), field->data() + field->size(), length);
  if (code != std::errc() || end != field->data() + field->size()) return std::nullopt;
  return length;
}

Error too_large(std::uint64_t most) {
  Error error(Errc::TooLarge,
              "the body of the answer is larger than " + std::to_string(most) + " bytes");
  error.curl_code = 63;  // curl's number for it
  error.permanent = true;
  return error;
}

Error no_ranges() {
  Error error(Errc::Protocol, "the server sends all of it, and not the part that -C asks for");
  error.curl_code = 33;
  error.permanent = true;
  return error;
}

class Writer final : public BodyWriter {
 public:
  Writer(Download& download, std::unique_ptr<BodyWriter> file)
      : download_(download), options_(download.options()), file_(std::move(file)) {}

  [[nodiscard]] std::optional<BodyStart> had() const override {
    if (options_.offset == 0) return file_ ? file_->had() : std::nullopt;
    BodyStart unwanted;
    unwanted.size = options_.offset;
    return unwanted;
  }
  [[nodiscard]] bool restartable() const override {
    if (options_.offset > 0) return !begun_;
    return !file_ || file_->restartable();
  }

  Result<void> begin(const Response& head, std::uint64_t offset) override {
    if (offset < options_.offset) return no_ranges();
    if (!begun_ || offset == 0) first_ = offset;
    begun_ = true;
    had_ = offset;
    total_ = length_of(head);
    if (total_) *total_ += offset;
    if (passes(total_.value_or(0))) return too_large(*options_.max_size);
    began_ = Clock::now();
    new_bytes_ = 0;
    bar_.begin(had_, total_);
    if (file_) return file_->begin(head, offset);
    download_.spool.cut(offset - options_.offset);
    return {};
  }

  Result<Wish> write(std::string_view bytes) override {
    had_ += bytes.size();
    new_bytes_ += bytes.size();
    if (passes(had_)) return too_large(*options_.max_size);
    if (options_.show_progress) bar_.add(bytes.size());
    if (file_) {
      if (auto written = file_->write(bytes); !written || *written != Wish::More) return written;
    } else if (auto kept = download_.spool.append(bytes); !kept) {
      return std::move(kept).error();
    }
    return options_.bytes_per_second ? Wish::Pause : Wish::More;
  }

  // Until so many bytes may have come.
  Task<Result<Wish>> drain(Call& call) override {
    if (options_.bytes_per_second) {
      const auto due = Duration(static_cast<Duration::rep>(
          1e9 * static_cast<double>(new_bytes_) / static_cast<double>(*options_.bytes_per_second)));
      const auto when = std::min(later(Time(began_), due), call.deadline());
      co_await call.scheduler().sleep_until(when, call.stop());
    }
    co_return Wish::More;
  }

  Result<void> finish() override {
    if (options_.show_progress) Bar::end();
    if (file_) {
      if (auto finished = file_->finish(); !finished) return finished;
    }
    download_.whole = true;
    download_.received = had_ - first_;
    return {};
  }

 private:
  [[nodiscard]] bool passes(std::uint64_t size) const {
    return options_.max_size && size > *options_.max_size;
  }

  Download& download_;
  const DownloadOptions& options_;
  std::unique_ptr<BodyWriter> file_;
  bool begun_ = false;
  std::uint64_t had_ = 0;        // of the whole
  std::uint64_t first_ = 0;      // of the whole: where this call began
  std::uint64_t new_bytes_ = 0;  // of this answer
  std::optional<std::uint64_t> total_;
  Clock::time_point began_;
  Bar bar_;
};

}  // namespace

Result<std::unique_ptr<BodyWriter>> Download::open(const Request& request) {
  whole = false;
  received = 0;
  spool.cut(0);
  std::unique_ptr<BodyWriter> file;
  if (options_.file) {
    auto opened = options_.file->open(request);
    if (!opened) return std::move(opened).error();
    file = *std::move(opened);
  }
  return std::unique_ptr<BodyWriter>(std::make_unique<Writer>(*this, std::move(file)));
}

}  // namespace httpretry::cli
