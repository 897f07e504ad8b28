#include "lib/http/new_file.hpp"
#include "lib/http/text.hpp"

#include <httpretry/flow/sink.hpp>

#include <unistd.h>

#include <array>
#include <fstream>

namespace httpretry {
namespace {

using Wish = BodyWriter::Wish;

// Identifies a URL without storing it: it may contain secrets. FNV-1a, with its constants for 64
// bits.
std::string fingerprint(std::string_view url) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : url) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return std::to_string(hash);
}

// PATH.part.info says which body PATH.part is the beginning of. Two lines: the fingerprint of the
// URL, and the validator.
class PartInfo {
 public:
  PartInfo(std::string path, std::string_view url)
      : path_(std::move(path)), url_(fingerprint(url)) {}

  // The validator; empty if there is none, or the file is for another URL.
  [[nodiscard]] std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    std::string url;
    std::string validator;
    if (!std::getline(file, url) || !std::getline(file, validator) || url != url_) return {};
    return valid_header_value(validator) ? validator : std::string();
  }
  [[nodiscard]] Result<void> write(const std::string& validator) const {
    auto file = NewFile::beside(path_, 0600);
    if (!file) return std::move(file).error();
    if (auto written = file->write(url_ + "\n" + validator + "\n"); !written) return written;
    return file->commit();
  }
  void remove() const { ::unlink(path_.c_str()); }

 private:
  std::string path_;
  std::string url_;
};

class FileWriter final : public BodyWriter {
 public:
  FileWriter(NewFile file, std::optional<PartInfo> info, std::optional<BodyStart> had)
      : file_(std::move(file)), info_(std::move(info)), had_(std::move(had)) {}

  [[nodiscard]] std::optional<BodyStart> had() const override { return had_; }
  [[nodiscard]] bool restartable() const override { return file_.restartable(); }

  Result<void> begin(const Response& head, std::uint64_t offset) override {
    if (offset == 0) {
      if (info_) info_->remove();  // first, so that it never describes other bytes
      if (auto emptied = file_.restart(); !emptied) return emptied;
    }
    const auto etag = head.headers.get("ETag");
    if (!info_ || !etag || !etag->starts_with('"')) return {};
    return info_->write(std::string(*etag));
  }
  Result<Wish> write(std::string_view bytes) override {
    if (auto written = file_.write(bytes); !written) return std::move(written).error();
    return Wish::More;
  }
  Result<void> finish() override {
    if (auto done = file_.commit(); !done) return done;
    if (info_) info_->remove();
    return {};
  }

 private:
  NewFile file_;
  std::optional<PartInfo> info_;
  std::optional<BodyStart> had_;
};

Result<void> copy_into(NewFile& file, const std::string& from) {
  std::ifstream old(from, std::ios::binary);
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

  Result<std::unique_ptr<BodyWriter>> open(const Request& request) override {
    auto file = options_.keep_partial ? NewFile::part(path_) : NewFile::beside(path_, 0666);
    if (!file) return std::move(file).error();
    const bool keeps = !file->direct();
    std::optional<PartInfo> info;
    if (options_.keep_partial && keeps) info.emplace(file->path() + ".info", request.url());
    std::optional<BodyStart> had;
    if (file->size() > 0 && info) {
      had.emplace();
      had->validator = info->read();
      if (had->validator.empty()) had.reset();
    }
    if (!had && options_.continue_existing && keeps) {
      if (auto emptied = file->restart(); !emptied) return std::move(emptied).error();
      if (auto copied = copy_into(*file, path_); !copied) return std::move(copied).error();
      if (file->size() > 0) had.emplace();
    }
    if (had) had->size = file->size();
    return std::unique_ptr<BodyWriter>(
        std::make_unique<FileWriter>(*std::move(file), std::move(info), std::move(had)));
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
