#include "body_source.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace httpretry {

namespace {

class BytesReader final : public BodyReader {
 public:
  explicit BytesReader(std::shared_ptr<Body::Source> owner)
      : owner_(std::move(owner)), rest_(*owner_->bytes()) {}
  Result<std::size_t> read(std::span<char> into) override {
    const auto count = std::min(into.size(), rest_.size());
    std::copy_n(rest_.begin(), count, into.begin());
    rest_.remove_prefix(count);
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return rest_.size(); }

 private:
  std::shared_ptr<Body::Source> owner_;
  std::string_view rest_;
};

class BytesSource final : public Body::Source {
 public:
  explicit BytesSource(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] const std::string* bytes() const override { return &bytes_; }
  Result<std::unique_ptr<BodyReader>> open(const std::shared_ptr<Source>& self) override {
    return std::unique_ptr<BodyReader>(std::make_unique<BytesReader>(self));
  }

 private:
  std::string bytes_;
};

using FilePtr = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

class FileReader final : public BodyReader {
 public:
  FileReader(FilePtr file, std::string path, std::optional<std::uint64_t> size)
      : file_(std::move(file)), path_(std::move(path)), left_(size) {}

  Result<std::size_t> read(std::span<char> into) override {
    const auto wanted = left_ ? std::min<std::uint64_t>(into.size(), *left_) : into.size();
    const auto count = std::fread(into.data(), 1, wanted, file_.get());
    if (std::ferror(file_.get()) != 0)
      return Error(Errc::InvalidRequest, "reading body file " + path_ + " failed");
    // The server would wait for the rest of a body that is shorter than announced.
    if (count < wanted && left_) {
      return Error(Errc::InvalidRequest,
                   "body file " + path_ + " became shorter while it was being sent");
    }
    if (left_) *left_ -= count;
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return left_; }

 private:
  FilePtr file_;
  std::string path_;
  std::optional<std::uint64_t> left_;  // known only for a regular file
};

Error cannot_open(const std::string& path, int cause) {
  Error error(Errc::InvalidRequest,
              "cannot read body file " + path + ": " + std::generic_category().message(cause));
  error.curl_code = 26;  // CURLE_READ_ERROR
  return error;
}

Result<std::unique_ptr<BodyReader>> open_file(const std::string& path, std::uint64_t offset) {
  FilePtr file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  struct ::stat about {};
  if (file == nullptr || ::fstat(::fileno(file.get()), &about) != 0) {
    return cannot_open(path, errno);
  }
  if (S_ISDIR(about.st_mode)) return cannot_open(path, EISDIR);
  std::optional<std::uint64_t> size;
  if (S_ISREG(about.st_mode)) {
    size = static_cast<std::uint64_t>(about.st_size);
    *size -= std::min(*size, offset);
  }
  if (offset > 0 && ::fseeko(file.get(), static_cast<::off_t>(offset), SEEK_SET) != 0) {
    return cannot_open(path, errno);
  }
  return std::unique_ptr<BodyReader>(std::make_unique<FileReader>(std::move(file), path, size));
}

class ReopenedSource final : public Body::Source {
 public:
  explicit ReopenedSource(Body::Opener open) : open_(std::move(open)) {}
  Result<std::unique_ptr<BodyReader>> open(const std::shared_ptr<Source>& /*self*/) override {
    return open_();
  }

 private:
  Body::Opener open_;
};

class GeneratorReader final : public BodyReader {
 public:
  GeneratorReader(Body::Generator generate, std::optional<std::uint64_t> size)
      : generate_(std::move(generate)), size_(size) {}
  Result<std::size_t> read(std::span<char> into) override { return generate_(into); }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return size_; }

 private:
  Body::Generator generate_;
  std::optional<std::uint64_t> size_;
};

Error already_read() {
  return Error(Errc::InvalidRequest, "the body can be read only once, and has been read");
}

class OnceSource final : public Body::Source {
 public:
  OnceSource(Body::Generator generate, std::optional<std::uint64_t> size)
      : generate_(std::move(generate)), size_(size) {}
  [[nodiscard]] bool replayable() const override { return !touched_; }
  Result<std::unique_ptr<BodyReader>> open(const std::shared_ptr<Source>& self) override {
    if (touched_) return already_read();
    return std::unique_ptr<BodyReader>(
        std::make_unique<Reader>(std::static_pointer_cast<OnceSource>(self)));
  }

 private:
  class Reader final : public BodyReader {
   public:
    explicit Reader(std::shared_ptr<OnceSource> source) : source_(std::move(source)) {}
    Result<std::size_t> read(std::span<char> into) override {
      // The first reader that reads owns the body: another one must not get the rest of it.
      if (!mine_ && source_->touched_.exchange(true)) {
        return already_read();
      }
      mine_ = true;
      return source_->generate_(into);
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return source_->size_; }

   private:
    std::shared_ptr<OnceSource> source_;
    bool mine_ = false;
  };

  Body::Generator generate_;
  std::optional<std::uint64_t> size_;
  std::atomic<bool> touched_ = false;
};

}  // namespace

BodyReader::~BodyReader() = default;
std::optional<std::uint64_t> BodyReader::size() const { return std::nullopt; }

Body::Body(std::string bytes) : source_(std::make_shared<BytesSource>(std::move(bytes))) {}
Body::Body(const char* bytes) : Body(std::string(bytes)) {}
Body Body::file(std::string path, std::uint64_t offset) {
  return reopened([path = std::move(path), offset] { return open_file(path, offset); });
}
Body Body::reopened(Opener open) { return Body(std::make_shared<ReopenedSource>(std::move(open))); }
Body Body::generated(std::function<Generator()> start, std::optional<std::uint64_t> size) {
  return reopened([start = std::move(start), size]() -> Result<std::unique_ptr<BodyReader>> {
    return std::unique_ptr<BodyReader>(std::make_unique<GeneratorReader>(start(), size));
  });
}
Body Body::once(Generator generate, std::optional<std::uint64_t> size) {
  return Body(std::make_shared<OnceSource>(std::move(generate), size));
}

bool Body::replayable() const { return source_ == nullptr || source_->replayable(); }
const std::string* Body::bytes() const { return source_ == nullptr ? nullptr : source_->bytes(); }
Result<std::unique_ptr<BodyReader>> Body::open() const {
  if (source_ == nullptr) return Error(Errc::InvalidRequest, "the request has no body");
  return source_->open(source_);
}

}  // namespace httpretry
