// Download: receives the body of a successful response: into a file, or for standard output and
// pipes, into a BodyBuffer until it is complete. With -N it is shown while it is received, and so
// are the bytes after the first 8 MiB of a body that a retry can continue. Enforces --limit-rate
// and --max-filesize.
#pragma once

#include "send/body_buffer.hpp"
#include "send/body_output.hpp"
#include "send/targets.hpp"

#include <httpretry/body/sink.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace httpretry::cli {

struct DownloadOptions {
  SinkPtr file;                        // null: into the buffer, or to `output`
  std::shared_ptr<NamedFile> named;    // chooses another file when the response begins
  std::shared_ptr<BodyOutput> output;  // null: the body is not shown before it is complete
  bool at_once = false;                // shown from the first byte
  bool include = false;                // with its headers
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
  std::string chosen_file;  // by `named`
  [[nodiscard]] std::uint64_t shown() const {
    return options_.output ? options_.output->written() : 0;
  }
  // Whether the body is in `buffer`, for the caller to show.
  [[nodiscard]] bool in_buffer() const { return complete && !options_.file && !shows; }
  bool shows = false;  // the body is shown while it is received

 private:
  DownloadOptions options_;
};

}  // namespace httpretry::cli
