// Where the bodies of good responses go: the beginning of them into the results, or into files.
#pragma once

#include <httpretry/body/sink.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace httpretry::batch {

// Keeps a body of up to `most` bytes in memory; of a longer one nothing.
class KeptBody final : public Sink {
 public:
  explicit KeptBody(std::size_t most) : most_(most) {}
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

// save_to(path), which tells afterwards whether the disk failed: then it is not for the response to
// be judged. The directories of the path are made. No symbolic link is followed out of `root`.
class FiledBody final : public Sink {
 public:
  // The path below `root`; empty: below the current directory.
  FiledBody(std::string root, std::string relative);
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override;

  [[nodiscard]] const std::string& path() const { return path_; }
  // What could not be written; empty: nothing failed.
  [[nodiscard]] const std::string& failure() const { return *failure_; }

 private:
  std::string root_;
  std::string relative_;
  std::string path_;
  std::shared_ptr<std::string> failure_ = std::make_shared<std::string>();
};

// The name of a file for the response to the job with this id.
std::string file_name_of(std::string_view id);

}  // namespace httpretry::batch
