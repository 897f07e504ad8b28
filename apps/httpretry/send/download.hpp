// Download receives the body of a successful response. A body for a file is written to it; one for
// standard output or a pipe stays in a BodyBuffer until it is complete. With -N it is shown while
// it is received. A body that a retry can continue is shown as soon as it exceeds 8 MiB. Enforces
// --limit-rate and --max-filesize.
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
  SinkPtr file;                        // null: the body goes to the buffer or to `output`
  std::shared_ptr<NamedFile> named;    // chooses another file when the response begins
  std::shared_ptr<BodyOutput> output;  // null: the body is not shown before it is complete
  bool at_once = false;                // shown from the first byte
  bool include = false;                // with its headers
  std::optional<std::uint64_t> bytes_per_second;
  std::uint64_t offset = 0;  // skip these bytes, and append the rest to the old file
  std::optional<std::uint64_t> max_size;
};

// There is one for each URL. One thread at a time may use it.
class Download final : public Sink {
 public:
  explicit Download(DownloadOptions options) : options_(std::move(options)) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override;

  [[nodiscard]] const DownloadOptions& options() const { return options_; }
  // Whether this object received the whole body. If not, the body of the outcome is in the
  // Response.
  bool complete = false;
  std::uint64_t received = 0;  // bytes received by this call
  BodyBuffer buffer;
  std::string chosen_file;  // by DownloadOptions::named
  // Returns how many bytes of the body were shown.
  [[nodiscard]] std::uint64_t shown() const {
    return options_.output ? options_.output->written() : 0;
  }
  // Returns whether the caller must show the body, which is in `buffer`.
  [[nodiscard]] bool in_buffer() const { return complete && !options_.file && !is_shown; }
  bool is_shown = false;  // the body is shown while it is received

 private:
  DownloadOptions options_;
};

}  // namespace httpretry::cli
