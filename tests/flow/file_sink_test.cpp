#include "tests/wire/files.hpp"

#include <httpretry/body/sink.hpp>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

using namespace httpretry;

namespace {

using std::filesystem::perms;

constexpr auto kOwner = perms::owner_read | perms::owner_write;
constexpr auto kOwnerAndGroup = kOwner | perms::group_read;

perms mode_of(const std::string& path) { return std::filesystem::status(path).permissions(); }

std::unique_ptr<BodyWriter> begin(const std::string& path, const FileOptions& options) {
  auto writer = save_to(path, options)->open(Request::get("http://a/f")).value();
  REQUIRE(writer->begin(Response(200), 0));
  REQUIRE(writer->write("secret"));
  return writer;
}

// Without a umask for its lifetime.
class NoUmask {
 public:
  NoUmask() : before_(::umask(0)) {}
  ~NoUmask() { ::umask(before_); }
  NoUmask(const NoUmask&) = delete;
  NoUmask& operator=(const NoUmask&) = delete;

 private:
  mode_t before_;
};

}  // namespace

TEST_CASE("what is known of a part stays as the first response told it") {
  const TemporaryDirectory directory;
  FileOptions options;
  options.keep_partial = true;
  const auto sink = save_to(directory.file("f"), options);
  const auto request = Request::get("http://a/f");
  const auto writer = sink->open(request).value();
  Response whole(200);
  whole.headers = {{"ETag", "\"v1\""}, {"Content-Length", "10"}};
  REQUIRE(writer->begin(whole, 0));
  REQUIRE(writer->write("01234"));
  const auto told = read_file(directory.file("f.part.info"));
  CHECK(told.ends_with("\n\"v1\"\n10\n"));

  Response rest(206);
  rest.headers = {{"ETag", "\"v1\""}, {"Content-Range", "bytes 5-9/*"}};
  REQUIRE(writer->begin(rest, 5));
  CHECK(read_file(directory.file("f.part.info")) == told);
}

TEST_CASE("only a whole body or the rest of one is described for a later call") {
  struct Row {
    int status;
    std::uint64_t offset;
    bool is_described;
  };
  for (const auto& row :
       {Row{200, 0, true}, Row{203, 0, false}, Row{206, 0, false}, Row{206, 5, true}}) {
    CAPTURE(row.status);
    CAPTURE(row.offset);
    const TemporaryDirectory directory;
    const auto path = directory.file("f");
    write_file(path, "01234");
    FileOptions options;
    options.keep_partial = true;
    options.continue_existing = true;
    const auto writer = save_to(path, options)->open(Request::get("http://a/f")).value();
    Response head(row.status);
    head.headers = {{"ETag", "\"v1\""}};
    REQUIRE(writer->begin(head, row.offset));
    CHECK(exists(path + ".part.info") == row.is_described);
    REQUIRE(writer->write("56"));
    CHECK(read_file(path + ".part") == (row.offset == 5 ? "0123456" : "56"));
  }
}

TEST_CASE("a call does not fail because the description of a part cannot be written") {
  const TemporaryDirectory directory;
  const auto path = directory.file(std::string(248, 'f'));  // with ".part.info", it is too long
  FileOptions options;
  options.keep_partial = true;
  const auto writer = save_to(path, options)->open(Request::get("http://a/f")).value();
  Response whole(200);
  whole.headers = {{"ETag", "\"v1\""}};
  REQUIRE(writer->begin(whole, 0));
  REQUIRE(writer->write("01234"));
  REQUIRE(writer->finish());
  CHECK(read_file(path) == "01234");
}

TEST_CASE("a name with a NUL byte is refused, because the system would cut it there") {
  const TemporaryDirectory directory;
  const auto sink = save_to(directory.file("f") + std::string("\0.txt", 5));
  const auto writer = sink->open(Request::get("http://a/f"));
  const auto problem = writer ? (*writer)->begin(Response(200), 0) : Result<void>(writer.error());
  REQUIRE_FALSE(problem);
  CHECK(problem.error().code == Errc::InvalidRequest);
  CHECK(problem.error().message == "the name of the file to write to has a NUL byte");
  CHECK_FALSE(std::filesystem::exists(directory.file("f")));
}

TEST_CASE("a part without a byte is not kept") {
  const TemporaryDirectory directory;
  FileOptions options;
  options.keep_partial = true;
  for (const auto* const bytes : {"", "0"}) {
    CAPTURE(bytes);
    auto writer = save_to(directory.file("f"), options)->open(Request::get("http://a/f")).value();
    Response head(200);
    head.headers = {{"ETag", "\"v1\""}};
    REQUIRE(writer->begin(head, 0));
    REQUIRE(writer->write(bytes));
    writer.reset();
    const bool is_kept = *bytes != '\0';
    CHECK(std::filesystem::exists(directory.file("f.part")) == is_kept);
    CHECK(std::filesystem::exists(directory.file("f.part.info")) == is_kept);
  }
}

TEST_CASE("a file has the mode of the one that it replaces, also while it is a part of it") {
  const NoUmask none;
  const TemporaryDirectory directory;
  const auto path = directory.file("f");
  for (const auto mode : {kOwner, kOwnerAndGroup}) {
    for (const bool part_exists : {false, true}) {
      FileOptions options;
      options.keep_partial = true;
      options.continue_existing = true;
      write_file(path, "beginning of a ");
      std::filesystem::permissions(path, mode);
      if (part_exists) write_file(path + ".part", "");
      const auto writer = begin(path, options);
      CHECK(mode_of(path + ".part") == mode);
      REQUIRE(writer->finish());
      CHECK(mode_of(path) == mode);
    }
  }
}

TEST_CASE("a file for its owner alone is never readable by others, and an old one keeps its mode") {
  const NoUmask none;
  const TemporaryDirectory directory;
  const auto path = directory.file("f");
  for (const bool keep_partial : {false, true}) {
    FileOptions options;
    options.owner_only = true;
    options.keep_partial = keep_partial;
    auto writer = begin(path, options);
    if (keep_partial) CHECK(mode_of(path + ".part") == kOwner);
    REQUIRE(writer->finish());
    CHECK(mode_of(path) == kOwner);
    std::filesystem::permissions(path, kOwnerAndGroup);
    writer = begin(path, options);
    REQUIRE(writer->finish());
    CHECK(mode_of(path) == kOwnerAndGroup);
    std::filesystem::remove(path);
  }
}

TEST_CASE("a file that may not be written to is not replaced, not even by a part") {
  const TemporaryDirectory directory;
  const auto path = directory.file("f");
  write_file(path, "old");
  std::filesystem::permissions(path, perms::owner_read | perms::others_read);
  std::filesystem::permissions(directory.file("."), perms::all);
  for (const bool keep_partial : {false, true}) {
    FileOptions options;
    options.keep_partial = keep_partial;
    std::string error = "none";
    std::thread([&] {
      constexpr long kNobody = 65534;
      // Root may write everywhere, so this thread (alone) becomes another user.
      ::syscall(SYS_setresuid, kNobody, -1L, -1L);
      const auto writer = save_to(path, options)->open(Request::get("http://a/f"));
      if (!writer) error = writer.error().message;
    }).join();
    CHECK(error == "cannot write " + path + ": Permission denied");
  }
  CHECK(read_file(path) == "old");
  CHECK(directory.count() == 1);
}

TEST_CASE("the umask limits a file for its owner, too") {
  const NoUmask none;
  const TemporaryDirectory directory;
  ::umask(0277);
  FileOptions options;
  options.owner_only = true;
  const auto writer = begin(directory.file("f"), options);
  REQUIRE(writer->finish());
  CHECK(mode_of(directory.file("f")) == perms::owner_read);
}
