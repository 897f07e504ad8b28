// Download: where the body of a good answer arrives, piece by piece: in a file, or in a spool until
// it may be shown. It shows how far it is, holds the speed down and minds the size.
#pragma once

#include "send/spool.hpp"

#include <httpretry/flow/sink.hpp>

#include <cstdint>
#include <optional>

namespace httpretry::cli {

struct DownloadOptions {
  SinkPtr file;                // left out: into the spool
  bool show_progress = false;  // a bar, on a terminal
  std::optional<std::uint64_t> bytes_per_second;
  std::uint64_t offset =
      0;  // so many bytes of it are not wanted: the rest goes behind the old file
  std::optional<std::uint64_t> max_size;
};

// One for each URL; on one thread at a time.
class Download final : public Sink {
 public:
  explicit Download(DownloadOptions options) : options_(std::move(options)) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override;

  [[nodiscard]] const DownloadOptions& options() const { return options_; }
  // Whether the body is here, and whole. Else it is where it would be without a sink.
  bool whole = false;
  std::uint64_t received = 0;  // bytes of it that this call brought
  Spool spool;

 private:
  DownloadOptions options_;
};

}  // namespace httpretry::cli
