#include "bodies.hpp"

#include "path_below.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/http/url.hpp>

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace httpretry::batch {
namespace {

class MemoryWriter final : public BodyWriter {
 public:
  MemoryWriter(std::shared_ptr<MemoryBody::Content> content, std::size_t most)
      : content_(std::move(content)), most_(most) {}

  [[nodiscard]] bool restartable() const override { return true; }
  Result<void> begin(const Response& /*head*/, std::uint64_t offset) override {
    if (offset == 0) *content_ = MemoryBody::Content();
    return {};
  }
  // Accepts all bytes, but drops the whole body once it is too long.
  Result<Wish> write(std::string_view bytes) override {
    auto& content = *content_;
    content.too_long = content.too_long || bytes.size() > most_ - content.bytes.size();
    if (content.too_long) {
      content.bytes.clear();
    } else {
      content.bytes += bytes;
    }
    return Wish::More;
  }

 private:
  std::shared_ptr<MemoryBody::Content> content_;
  std::size_t most_;
};

// Returns whether the file system of a path has no free block, or no free inode for another file.
bool disk_is_full(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  struct ::statvfs usage {};
  if (::statvfs(folder.empty() ? "." : folder.c_str(), &usage) != 0) return false;
  // Some file systems do not limit inodes, and report 0 of them.
  return usage.f_bavail == 0 || (usage.f_files > 0 && usage.f_favail == 0);
}

// Passes everything on to the writer of the file `path`, and notes the last error.
class FileWatcher final : public BodyWriter {
 public:
  FileWatcher(std::unique_ptr<BodyWriter> file, std::string path,
              std::shared_ptr<std::string> failure)
      : file_(std::move(file)), path_(std::move(path)), failure_(std::move(failure)) {}

  [[nodiscard]] std::optional<BodyStart> had() const override { return file_->had(); }
  [[nodiscard]] bool restartable() const override { return file_->restartable(); }
  Result<void> begin(const Response& head, std::uint64_t offset) override {
    return watched(file_->begin(head, offset));
  }
  void forget() override { file_->forget(); }
  Result<Wish> write(std::string_view bytes) override { return watched(file_->write(bytes)); }
  Task<Result<Wish>> drain(Call& call) override { return file_->drain(call); }
  Result<void> finish() override { return watched(file_->finish()); }

 private:
  // Returns its argument, and notes the message if that is an error that other jobs would meet.
  template <class T>
  Result<T> watched(Result<T> result) {
    if (result) return result;
    // A directory in the place of the file concerns only this job.
    std::error_code ignored;
    if (!std::filesystem::is_directory(path_, ignored)) *failure_ = result.error().message;
    return result;
  }
  std::unique_ptr<BodyWriter> file_;
  std::string path_;
  std::shared_ptr<std::string> failure_;
};

// Passes everything on to another writer, and sleeps after each piece of the body to keep the
// average speed below a limit.
class LimitedWriter final : public BodyWriter {
 public:
  LimitedWriter(std::unique_ptr<BodyWriter> writer, std::uint64_t bytes_per_second)
      : writer_(std::move(writer)), bytes_per_second_(bytes_per_second) {}

  [[nodiscard]] std::optional<BodyStart> had() const override { return writer_->had(); }
  [[nodiscard]] bool restartable() const override { return writer_->restartable(); }
  Result<void> begin(const Response& head, std::uint64_t offset) override {
    began_ = std::chrono::steady_clock::now();
    bytes_ = 0;
    return writer_->begin(head, offset);
  }
  void forget() override { writer_->forget(); }
  Result<Wish> write(std::string_view bytes) override {
    bytes_ += bytes.size();
    auto wish = writer_->write(bytes);
    if (wish && *wish == Wish::More) return Wish::Pause;  // for `drain`
    return wish;
  }
  Task<Result<Wish>> drain(Call& call) override {
    const std::chrono::duration<double> needed(static_cast<double>(bytes_) /
                                               static_cast<double>(bytes_per_second_));
    const auto due = later(began_, Duration(needed));
    co_await call.scheduler().sleep_until(std::min(due, call.deadline()), call.stop());
    const auto drained = writer_->drain(call);
    Result<Wish> wish = co_await drained;
    co_return wish;
  }
  Result<void> finish() override { return writer_->finish(); }

 private:
  std::unique_ptr<BodyWriter> writer_;
  std::uint64_t bytes_per_second_;
  Time began_{};
  std::uint64_t bytes_ = 0;  // of this response
};

class LimitedSink final : public Sink {
 public:
  LimitedSink(SinkPtr sink, std::uint64_t bytes_per_second)
      : sink_(std::move(sink)), bytes_per_second_(bytes_per_second) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override {
    auto writer = sink_->open(request);
    if (!writer) return writer;
    return std::unique_ptr<BodyWriter>(
        std::make_unique<LimitedWriter>(*std::move(writer), bytes_per_second_));
  }

 private:
  SinkPtr sink_;
  std::uint64_t bytes_per_second_;
};

}  // namespace

SinkPtr with_rate_limit(SinkPtr sink, std::optional<std::uint64_t> bytes_per_second) {
  if (!bytes_per_second) return sink;
  return std::make_shared<LimitedSink>(std::move(sink), *bytes_per_second);
}

Result<std::unique_ptr<BodyWriter>> MemoryBody::open(const Request& /*request*/) {
  return std::unique_ptr<BodyWriter>(std::make_unique<MemoryWriter>(content_, most_));
}

FileBody::FileBody(std::string root, std::string relative,
                   std::shared_ptr<const OwnFiles> own_files)
    : root_(std::move(root)),
      relative_(std::move(relative)),
      path_(root_.empty() ? relative_ : root_ + "/" + relative_),
      own_files_(std::move(own_files)) {}

// Creates the file for a response body, `relative_` in the directory `root_`, and its parent
// directories. Returns the writer for the body, or an error, which fails the job. Also sets
// `failure_` after an error that would fail every job; throw_if_failed() then ends the run.
Result<std::unique_ptr<BodyWriter>> FileBody::open(const Request& request) {
  std::error_code ignored;  // if a directory is missing, save_to() reports it
  if (!root_.empty()) std::filesystem::create_directories(root_, ignored);
  const auto path = path_below(root_, relative_);  // an error if that leads out of the directory
  if (!path) return path.error();
  // The import refuses the path of one of the run's own files, such as the journal. But a later run
  // may have another directory or other files.
  if (const auto own = own_files_->find(*path); own != own_files_->end()) {
    Error error(Errc::InvalidRequest, "the response would replace " + printable(relative_) +
                                          ", which is the file of the " + own->second);
    error.permanent = true;  // a retry would be refused in the same way
    return error;
  }
  std::filesystem::create_directories(std::filesystem::path(*path).parent_path(), ignored);
  FileOptions options;
  options.keep_partial = true;  // if the run is interrupted, the next one requests only the rest
  options.owner_only = true;
  auto writer = save_to(*path, options)->open(request);
  if (!writer) {
    // A full disk ends the run. Other errors concern only this file, for example its permissions.
    if (disk_is_full(*path)) *failure_ = writer.error().message;
    return std::move(writer).error();
  }
  return std::unique_ptr<BodyWriter>(
      std::make_unique<FileWatcher>(*std::move(writer), *path, failure_));
}

void FileBody::throw_if_failed() const {
  if (failure_->empty()) return;
  const auto* const hint =
      disk_is_full(path_) ? "; free some space and run the same command again" : "";
  throw StoreError(*failure_ + hint);
}

void detail::check_directory(const std::string& directory) {
  if (directory.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (!failed && !std::filesystem::is_directory(directory, failed)) {
    failed = std::make_error_code(std::errc::not_a_directory);
  }
  if (!failed && ::access(directory.c_str(), W_OK | X_OK) != 0) {
    failed = std::error_code(errno, std::generic_category());
  }
  if (!failed) return;
  throw StoreError("cannot write bodies into the directory " + printable(directory) + ": " +
                   failed.message());
}

std::string file_name_of(std::string_view id) {
  auto name = percent_encode(id);
  if (name.front() == '.') name.replace(0, 1, "%2E");
  return name;
}

}  // namespace httpretry::batch
