#include "lib/core/base/regular_file.hpp"
#include "lib/core/base/shortage.hpp"

#include <httpretry/http/body.hpp>
#include <httpretry/http/url.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace httpretry;

namespace {

std::string read_all(const Body& body) {
  std::string text;
  auto reader = body.open();
  REQUIRE(reader);
  std::array<char, 3> buffer{};  // small, so that it takes several reads
  for (;;) {
    const auto count = (*reader)->read(buffer);
    REQUIRE(count);
    if (*count == 0) return text;
    text.append(buffer.data(), *count);
  }
}

// A file of its own, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    const int fd = ::mkstemp(path_.data());
    REQUIRE(fd >= 0);
    std::FILE* file = ::fdopen(fd, "wb");
    REQUIRE(std::fwrite(content.data(), 1, content.size(), file) == content.size());
    std::fclose(file);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/httpretry-body-XXXXXX";
};

Body counting_once(int& asked) {
  return Body::once(
      [&asked](std::span<char> into) -> std::size_t {
        if (asked++ > 0) return 0;
        into[0] = 'x';
        return 1;
      },
      1);
}

}  // namespace

TEST_CASE("no body is not the same as an empty body") {
  CHECK_FALSE(Body().present());
  CHECK(Body("").present());
  CHECK(Body("").bytes()->empty());
  CHECK_FALSE(Body().open());
}

TEST_CASE("bytes and files can be read again and again, with their size") {
  const TemporaryFile file("hello, file");
  for (const auto& body : {Body("hello, file"), Body::file(file.path())}) {
    CHECK(body.replayable());
    CHECK((*body.open())->size() == 11);
    CHECK(read_all(body) == "hello, file");
    CHECK(read_all(body) == "hello, file");
    CHECK(body.replayable());
  }
}

TEST_CASE("a file can be read from an offset on, again and again") {
  const TemporaryFile file("hello, file");
  const auto body = Body::file(file.path(), 7);
  CHECK((*body.open())->size() == 4);
  CHECK(read_all(body) == "file");
  CHECK(read_all(body) == "file");
  CHECK(read_all(Body::file(file.path(), 100)).empty());
}

TEST_CASE("a file that is not there, or is a directory, is an error that names it") {
  const auto gone = Body::file("/no/such/file").open();
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == Errc::InvalidRequest);
  CHECK(gone.error().curl_code == 26);
  CHECK(gone.error().message == "cannot read body file /no/such/file: No such file or directory");
  CHECK(Body::file("/tmp").open().error().message == "cannot read body file /tmp: Is a directory");
  CHECK(Body::file("/dev/null").open());
  const auto endless = Body::file("/dev/zero").open();
  REQUIRE_FALSE(endless);
  CHECK(endless.error().message ==
        "cannot read body file /dev/zero: it is not a regular file, and reading it could block "
        "forever");
  CHECK(Body::file(std::string("/dev/null\0.txt", 14)).open().error().message ==
        "cannot read body file /dev/null\\x00.txt: its name has a NUL byte");
}

TEST_CASE("only a file that is neither regular nor a directory nor /dev/null could block") {
  const TemporaryFile file("hello");
  for (const std::string& path :
       {file.path(), std::string("/tmp"), std::string("/dev/null"), std::string("/no/such/file")}) {
    CAPTURE(path);
    CHECK_FALSE(could_block(path));
  }
  CHECK(could_block("/dev/zero"));
}

TEST_CASE("a shortage is one of descriptors or memory") {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) CHECK(is_shortage(error));
  for (const int error : {0, EACCES, ENOENT, EINTR, ECONNREFUSED}) CHECK_FALSE(is_shortage(error));
  CHECK(kOutOfMemory == 27);
}

TEST_CASE("a file that shrinks while it is sent is an error, not a short body") {
  const TemporaryFile file("hello, file");
  auto reader = *Body::file(file.path()).open();
  REQUIRE(::truncate(file.path().c_str(), 4) == 0);
  std::array<char, 64> buffer{};
  CHECK_FALSE(reader->read(buffer));
}

TEST_CASE("a body that can be read once may be opened until it is read") {
  int asked = 0;
  const auto body = counting_once(asked);
  auto first = body.open();
  auto second = body.open();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(body.replayable());

  std::array<char, 8> buffer{};
  CHECK(*(*first)->read(buffer) == 1);
  CHECK_FALSE(body.replayable());
  CHECK_FALSE((*second)->read(buffer));  // not the rest as if it were the whole
  CHECK_FALSE(body.open());
  CHECK(*(*first)->read(buffer) == 0);
}

TEST_CASE("a reader can be the body that is read once") {
  struct Word final : BodyReader {
    Result<std::size_t> read(std::span<char> into) override { return rest.copy(into.data(), 2); }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return rest.size(); }
    std::string rest = "ab";
  };
  const auto body = Body::once(std::make_unique<Word>());
  auto reader = body.open();
  REQUIRE(reader);
  CHECK((*reader)->size() == 2);
  CHECK((*reader)->pausing() == nullptr);
  CHECK(body.replayable());
  std::array<char, 8> buffer{};
  CHECK(*(*reader)->read(buffer) == 2);
  CHECK_FALSE(body.replayable());
  CHECK_FALSE(body.open());
}

TEST_CASE("a body without a reader cannot be opened") {
  const Body bodies[] = {
      Body::reopened(
          []() -> Result<std::unique_ptr<BodyReader>> { return std::unique_ptr<BodyReader>(); }),
      Body::once(std::unique_ptr<BodyReader>()),
  };
  for (const auto& body : bodies) {
    const auto reader = body.open();
    REQUIRE_FALSE(reader);
    CHECK(reader.error().code == Errc::InvalidRequest);
    CHECK(reader.error().message == "the body has no reader");
  }
}

TEST_CASE("a form takes a name and a value that are parts of its own text") {
  UrlEncoded form;
  form.add("a", std::string(40, 'b'));
  const auto before = form.text();
  form.add(form.text(), form.text());
  const auto encoded = percent_encode(before);
  CHECK(form.text() == before + "&" + encoded + "=" + encoded);
}
