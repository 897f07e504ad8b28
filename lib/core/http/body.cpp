#include <httpretry/http/body.hpp>

#include "lib/core/base/owned.hpp"
#include "lib/core/base/regular_file.hpp"
#include "lib/core/base/shortage.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace httpretry {

namespace {

using Reader = std::unique_ptr<BodyReader>;

class BytesReader final : public BodyReader {
 public:
  explicit BytesReader(std::shared_ptr<const std::string> bytes)
      : bytes_(std::move(bytes)), rest_(*bytes_) {}
  Result<std::size_t> read(std::span<char> into) override {
    const auto count = rest_.copy(into.data(), into.size());
    rest_.remove_prefix(count);
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return rest_.size(); }

 private:
  std::shared_ptr<const std::string> bytes_;
  std::string_view rest_;
};

using FilePtr = Owned<std::FILE, std::fclose>;

class FileReader final : public BodyReader {
 public:
  FileReader(FilePtr file, std::string path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), left_(size) {}

  Result<std::size_t> read(std::span<char> into) override {
    const auto wanted = std::min<std::uint64_t>(into.size(), left_);
    const auto count = std::fread(into.data(), 1, wanted, file_.get());
    if (std::ferror(file_.get()) != 0)
      return Error(Errc::InvalidRequest, "reading body file " + path_ + " failed");
    // The server would wait for the rest of a body that is shorter than announced.
    if (count < wanted) {
      return Error(Errc::InvalidRequest,
                   "body file " + path_ + " became shorter while it was being sent");
    }
    left_ -= count;
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return left_; }

 private:
  FilePtr file_;
  std::string path_;
  std::uint64_t left_;
};

// Returns the error of a file that cannot be opened, with the system's error text or error number.
Error cannot_open(const std::string& path, const std::string& why) {
  Error error(Errc::InvalidRequest, "cannot read body file " + printable(path) + ": " + why);
  error.curl_code = 26;  // CURLE_READ_ERROR
  return error;
}
Error cannot_open(const std::string& path, int error_number) {
  auto error = cannot_open(path, std::generic_category().message(error_number));
  if (is_shortage(error_number)) error.code = Errc::LocalShortage;
  return error;
}

// Opens a regular file for reading from `offset` on. The reader has no bytes if the file is
// shorter.
Result<Reader> open_file(const std::string& path, std::uint64_t offset) {
  if (const auto why = read_problem(path); !why.empty()) return cannot_open(path, why);
  FilePtr file(std::fopen(path.c_str(), "rbe"));
  struct ::stat about {};
  if (file == nullptr || ::fstat(::fileno(file.get()), &about) != 0) {
    return cannot_open(path, errno);
  }
  const auto file_size = static_cast<std::uint64_t>(about.st_size);
  if (::fseeko(file.get(), static_cast<::off_t>(offset), SEEK_SET) != 0) {
    return cannot_open(path, errno);
  }
  const auto size = file_size - std::min(file_size, offset);
  return Reader(std::make_unique<FileReader>(std::move(file), path, size));
}

// Reads the output of a function.
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

// The reader of a body that can be read only once, and whether any of it was read.
struct Once {
  explicit Once(Reader body) : reader(std::move(body)) {}
  Reader reader;
  std::atomic<bool> touched = false;
};

// The first of these readers that reads owns the body. The others must not get the rest of it.
class OnceReader final : public BodyReader {
 public:
  explicit OnceReader(std::shared_ptr<Once> once) : once_(std::move(once)) {}
  Result<std::size_t> read(std::span<char> into) override {
    if (!mine_ && once_->touched.exchange(true)) return already_read();
    mine_ = true;
    return once_->reader->read(into);
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return once_->reader->size(); }
  PausingReader* pausing() override { return once_->reader->pausing(); }

 private:
  std::shared_ptr<Once> once_;
  bool mine_ = false;
};

}  // namespace

// Bytes in memory, or a function that opens a reader.
struct Body::Source {
  std::optional<std::string> bytes;
  Opener open;
  std::function<bool()> replayable;  // empty: always
  bool in_file = false;
};

BodyReader::~BodyReader() = default;
std::optional<std::uint64_t> BodyReader::size() const { return std::nullopt; }
PausingReader* BodyReader::pausing() { return nullptr; }

Body::Body(std::string bytes) : source_(std::make_shared<Source>()) {
  source_->bytes = std::move(bytes);
}
Body::Body(Opener open, std::function<bool()> replayable) : source_(std::make_shared<Source>()) {
  source_->open = std::move(open);
  source_->replayable = std::move(replayable);
}
Body::Body(const char* bytes) : Body(std::string(bytes)) {}
Body Body::file(std::string path, std::uint64_t offset) {
  auto body = reopened([path = std::move(path), offset] { return open_file(path, offset); });
  body.source_->in_file = true;
  return body;
}
Body Body::reopened(Opener open) { return {std::move(open), nullptr}; }
Body Body::generated(std::function<Generator()> start, std::optional<std::uint64_t> size) {
  return reopened([start = std::move(start), size] {
    return Result(Reader(std::make_unique<GeneratorReader>(start(), size)));
  });
}
Body Body::once(Generator generate, std::optional<std::uint64_t> size) {
  return once(std::make_unique<GeneratorReader>(std::move(generate), size));
}
Body Body::once(Reader reader) {
  const auto once = std::make_shared<Once>(std::move(reader));
  const auto open = [once]() -> Result<Reader> {
    if (once->touched) return already_read();
    if (once->reader == nullptr) return Reader();
    return Reader(std::make_unique<OnceReader>(once));
  };
  return {open, [once] { return !once->touched; }};
}

bool Body::replayable() const {
  return source_ == nullptr || !source_->replayable || source_->replayable();
}
bool Body::shareable() const { return source_ == nullptr || source_->bytes || source_->in_file; }
const std::string* Body::bytes() const {
  return source_ != nullptr && source_->bytes ? &*source_->bytes : nullptr;
}
Result<Reader> Body::open() const {
  if (source_ == nullptr) return Error(Errc::InvalidRequest, "the request has no body");
  if (const auto* in_memory = bytes()) {
    return Reader(
        std::make_unique<BytesReader>(std::shared_ptr<const std::string>(source_, in_memory)));
  }
  auto reader = source_->open();
  if (reader && *reader == nullptr) return Error(Errc::InvalidRequest, "the body has no reader");
  return reader;
}

}  // namespace httpretry
