#include "body_version.hpp"

#include "lib/core/base/text.hpp"
#include "new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace httpretry {
namespace {

using Wish = BodyWriter::Wish;

// Identifies a URL without storing it, because it may contain secrets. FNV-1a with its 64-bit
// constants.
std::string fingerprint(std::string_view url) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : url) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return std::to_string(hash);
}

// Returns the first bytes of a regular file. Returns "" for a pipe or a device, which could block
// us.
std::string read_small_file(const std::string& path) {
  std::array<char, 65536> bytes{};
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct ::stat about {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
  const auto count = ::read(file.get(), bytes.data(), bytes.size());
  return {bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

// PATH.part.info describes the body of which PATH.part is the beginning, in three lines: the
// fingerprint of the URL, the validator, and the size of the whole body (empty if unknown).
class PartInfo {
 public:
  PartInfo(std::string path, std::string_view url)
      : path_(std::move(path)), url_(fingerprint(url)) {}

  // Returns nullopt if the file has no usable description or describes another URL.
  [[nodiscard]] std::optional<BodyStart> read() const {
    const auto bytes = read_small_file(path_);
    std::string_view text = bytes;
    if (take_until(text, '\n') != url_) return std::nullopt;
    BodyStart start;
    start.validator = take_until(text, '\n');
    start.total = to_number<std::uint64_t>(take_until(text, '\n'));
    const bool usable = !start.validator.empty() && valid_header_value(start.validator);
    return usable ? std::optional(std::move(start)) : std::nullopt;
  }
  [[nodiscard]] Result<void> write(const BodyVersion& version) const {
    auto file = NewFile::beside(path_, FileAccess::AlwaysOwner);
    if (!file) return std::move(file).error();
    const auto total = version.total ? std::to_string(*version.total) : std::string();
    const auto text = url_ + "\n" + version.validator + "\n" + total + "\n";
    if (auto written = file->write(text); !written) return written;
    return file->commit();
  }
  void remove() const { ::unlink(path_.c_str()); }

 private:
  std::string path_;
  std::string url_;
};

class FileWriter final : public BodyWriter {
 public:
  // Writes the response to this request. `info` describes the file for later calls, and is empty if
  // a partial body is not kept. `start` is what the file already has of the body.
  FileWriter(const Request& request, NewFile file, std::optional<PartInfo> info,
             std::optional<BodyStart> start)
      : file_(std::move(file)),
        info_(std::move(info)),
        start_(std::move(start)),
        continuable_(can_be_continued(request)),
        described_(start_ && !start_->validator.empty()) {}
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter() override {
    if (described_ && file_.size() == 0) forget();
  }

  [[nodiscard]] std::optional<BodyStart> had() const override { return start_; }
  [[nodiscard]] bool restartable() const override { return file_.restartable(); }

  // Empties the file if the body begins anew, and writes the info file if a later call could
  // continue this body.
  Result<void> begin(const Response& head, std::uint64_t offset) override {
    if (offset == 0) {
      forget();  // first, so that the info never describes other bytes
      if (auto emptied = file_.restart(); !emptied) return emptied;
    }
    const BodyVersion version(head.headers);
    if (described_ || !info_ || !continuable_ || version.validator.empty()) return {};
    if (head.status != 200 && offset == 0) return {};  // neither a whole body nor its rest
    info_->remove();                                   // the path may be a pipe or a link
    // Without the info, a later call merely starts again, which is no reason to fail this one. For
    // example, its name may be too long although that of the file is not.
    described_ = info_->write(version).has_value();
    return {};
  }
  void forget() override {
    described_ = false;
    if (info_) info_->remove();
  }
  Result<Wish> write(std::string_view bytes) override {
    if (auto written = file_.write(bytes); !written) return std::move(written).error();
    return Wish::More;
  }
  Result<void> finish() override {
    if (auto done = file_.commit(); !done) return done;
    forget();
    return {};
  }

 private:
  NewFile file_;
  std::optional<PartInfo> info_;
  std::optional<BodyStart> start_;
  bool continuable_;
  bool described_;  // the info file exists
};

// Appends the contents of an old file; nothing if it cannot be read.
Result<void> copy_into(NewFile& file, const std::string& old_path) {
  std::ifstream old(old_path, std::ios::binary);
  std::array<char, 65536> bytes{};
  while (old) {
    old.read(bytes.data(), bytes.size());
    const auto count = static_cast<std::size_t>(old.gcount());
    if (auto written = file.write({bytes.data(), count}); !written) return written;
  }
  return {};
}

class FileSink final : public Sink {
 public:
  FileSink(std::string path, FileOptions options) : path_(std::move(path)), options_(options) {}

  // Opens the file to write to, which replaces the one at `path_` when it is complete. Returns a
  // writer that knows which beginning of the body the file has (`start`). With `keep_partial`, that
  // is what an earlier call left in PATH.part. Without PATH.part, `continue_existing` copies the
  // file at `path_` to it; the user guarantees that this file is the beginning of the same body.
  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override {
    const auto mode = options_.owner_only ? FileAccess::Owner : FileAccess::All;
    auto file = options_.keep_partial ? NewFile::part(path_, mode) : NewFile::beside(path_, mode);
    if (!file) return std::move(file).error();
    const bool is_device = file->is_device();  // a device is written to directly, and keeps nothing
    std::optional<PartInfo> info;  // PATH.part.info, which identifies the body in PATH.part
    if (options_.keep_partial && !is_device) info.emplace(file->path() + ".info", request.url());
    std::optional<BodyStart> start;
    // nullopt if the part is of another URL or cannot be identified. Then the file is emptied,
    // below or in FileWriter::begin.
    if (file->size() > 0 && info) start = info->read();
    if (!start && options_.continue_existing && !is_device) {
      if (auto emptied = file->restart(); !emptied) return std::move(emptied).error();
      if (auto copied = copy_into(*file, path_); !copied) return std::move(copied).error();
      if (file->size() > 0) start.emplace();  // without a validator: the user guarantees the body
    }
    if (start) start->size = file->size();
    return std::unique_ptr<BodyWriter>(
        std::make_unique<FileWriter>(request, *std::move(file), std::move(info), std::move(start)));
  }

 private:
  std::string path_;
  FileOptions options_;
};

}  // namespace

SinkPtr save_to(std::string path, FileOptions options) {
  return std::make_shared<FileSink>(std::move(path), options);
}

}  // namespace httpretry
