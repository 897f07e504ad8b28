#include "bodies.hpp"

#include "path_below.hpp"

#include <httpretry/http/url.hpp>

#include <sys/statvfs.h>

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
  Result<Wish> write(std::string_view bytes) override {
    auto& kept = *content_;
    kept.too_long = kept.too_long || bytes.size() > most_ - kept.bytes.size();
    if (kept.too_long) {
      kept.bytes.clear();
    } else {
      kept.bytes += bytes;
    }
    return Wish::More;
  }

 private:
  std::shared_ptr<MemoryBody::Content> content_;
  std::size_t most_;
};

bool disk_is_full(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  struct ::statvfs about {};
  if (::statvfs(folder.empty() ? "." : folder.c_str(), &about) != 0) return false;
  return about.f_bavail == 0 || (about.f_files > 0 && about.f_favail == 0);
}

// Passes everything on to the writer of a file, and notes the last error.
class FileWatcher final : public BodyWriter {
 public:
  FileWatcher(std::unique_ptr<BodyWriter> file, std::shared_ptr<std::string> failure)
      : file_(std::move(file)), failure_(std::move(failure)) {}

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
  template <class T>
  Result<T> watched(Result<T> done) {
    if (!done) *failure_ = done.error().message;
    return done;
  }
  std::unique_ptr<BodyWriter> file_;
  std::shared_ptr<std::string> failure_;
};

}  // namespace

Result<std::unique_ptr<BodyWriter>> MemoryBody::open(const Request& /*request*/) {
  return std::unique_ptr<BodyWriter>(std::make_unique<MemoryWriter>(content_, most_));
}

FileBody::FileBody(std::string root, std::string relative)
    : root_(std::move(root)),
      relative_(std::move(relative)),
      path_(root_.empty() ? relative_ : root_ + "/" + relative_) {}

Result<std::unique_ptr<BodyWriter>> FileBody::open(const Request& request) {
  std::error_code failed;
  if (!root_.empty()) std::filesystem::create_directories(root_, failed);
  const auto path = path_below(root_, relative_);
  if (!path) return path.error();
  std::filesystem::create_directories(std::filesystem::path(*path).parent_path(), failed);
  FileOptions options;
  options.keep_partial = true;  // the next run continues behind it
  options.owner_only = true;
  auto file = save_to(*path, options)->open(request);
  if (!file) {
    // A full disk ends the run. Other errors concern only this file, for example its permissions.
    if (disk_is_full(path_)) *failure_ = file.error().message;
    return std::move(file).error();
  }
  return std::unique_ptr<BodyWriter>(std::make_unique<FileWatcher>(*std::move(file), failure_));
}

std::string file_name_of(std::string_view id) {
  auto name = percent_encode(id);
  if (name.front() == '.') name.replace(0, 1, "%2E");
  return name;
}

}  // namespace httpretry::batch
