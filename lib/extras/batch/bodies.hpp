// Sinks for the response bodies of jobs: short bodies go into the results, others into files.
#pragma once

#include "own_files.hpp"

#include <httpretry/batch/store.hpp>
#include <httpretry/body/sink.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace httpretry::batch {

// Holds a body in memory, but nothing of a body that has more than `most` bytes.
class MemoryBody final : public Sink {
 public:
  explicit MemoryBody(std::size_t most) : most_(most) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override;

  struct Content {
    std::string bytes;
    bool too_long = false;
  };
  [[nodiscard]] Content& content() { return *content_; }

 private:
  std::size_t most_;
  std::shared_ptr<Content> content_ = std::make_shared<Content>();
};

// Writes a body to a file as save_to(path) does, and creates the directories of the path. Follows
// no symbolic link out of `root`. Reports whether writing failed, so that a full disk is not blamed
// on the response.
class FileBody final : public Sink {
 public:
  // `relative` is a path below `root`. An empty `root` is the current directory. If the path is one
  // of `own_files`, `open` returns an error.
  FileBody(std::string root, std::string relative, std::shared_ptr<const OwnFiles> own_files);
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Throws StoreError if writing failed.
  void throw_if_failed() const;

 private:
  std::string root_;
  std::string relative_;
  std::string path_;
  std::shared_ptr<const OwnFiles> own_files_;
  // The message of the error if writing failed, otherwise empty.
  std::shared_ptr<std::string> failure_ = std::make_shared<std::string>();
};

// Returns a sink that passes bodies on to `sink`, each at no more than this many bytes per second.
// Returns `sink` itself if the limit is empty.
SinkPtr with_rate_limit(SinkPtr sink, std::optional<std::uint64_t> bytes_per_second);

// Returns a file name for the response of the job with this id.
std::string file_name_of(std::string_view id);

namespace detail {

// Creates the directory for response bodies, unless the name is empty. Throws StoreError if files
// cannot be created there. Without this check, each job would fail when its response arrives.
HTTPRETRY_API void check_directory(const std::string& directory);

}  // namespace detail
using detail::check_directory;

}  // namespace httpretry::batch
