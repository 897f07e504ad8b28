// Download: receives the body of a successful response, into a file or into a BodyBuffer. Shows the
// progress bar and enforces --limit-rate and --max-filesize.
#pragma once

#include "send/body_buffer.hpp"

#include <httpretry/flow/sink.hpp>

#include <cstdint>
#include <optional>

namespace httpretry::cli {

struct DownloadOptions {
  SinkPtr file;  // null: into the buffer
  bool show_progress = false;
  std::optional<std::uint64_t> bytes_per_second;
  std::uint64_t offset = 0;  // skip these bytes, and append the rest to the old file
  std::optional<std::uint64_t> max_size;
};

// One for each URL. Used by one thread at a time.
class Download final : public Sink {
 public:
  explicit Download(DownloadOptions options) : options_(std::move(options)) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override;

  [[nodiscard]] const DownloadOptions& options() const { return options_; }
  // Whether the whole body was received here. If not, it is in the Response.
  bool complete = false;
  std::uint64_t received = 0;  // bytes received by this call
  BodyBuffer buffer;

 private:
  DownloadOptions options_;
};

}  // namespace httpretry::cli
