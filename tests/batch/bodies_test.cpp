#include "lib/extras/batch/bodies.hpp"
#include "lib/extras/batch/own_files.hpp"
#include "lib/extras/batch/path_below.hpp"
#include "tests/batch/folder.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

using namespace httpretry;         // NOLINT
using namespace httpretry::batch;  // NOLINT
using namespace std::chrono_literals;

TEST_CASE("a directory in the place of a file fails only the job of that file") {
  const Folder folder;
  FileBody body(folder / "", "d", std::make_shared<const OwnFiles>());
  auto writer = body.open(Request::get("http://a/")).value();
  REQUIRE(writer->begin(Response(200), 0));
  REQUIRE(writer->write("x"));
  std::filesystem::create_directories(folder / "d/a");
  CHECK_FALSE(writer->finish());
  CHECK_NOTHROW(body.throw_if_failed());
}

TEST_CASE("a body in memory has as many bytes as its limit, and one that is longer has none") {
  constexpr std::size_t kMost = 4;
  for (const std::size_t first : {0U, 1U, 3U, 4U, 5U}) {
    for (const std::size_t second : {0U, 1U, 3U, 4U, 5U}) {
      CAPTURE(first);
      CAPTURE(second);
      MemoryBody body(kMost);
      const auto writer = body.open(Request::get("http://a/")).value();
      // The bytes of an earlier attempt do not count.
      REQUIRE(writer->begin(Response(200), 0));
      REQUIRE(writer->write("too long"));
      REQUIRE(writer->begin(Response(200), 0));
      REQUIRE(writer->write(std::string(first, 'a')));
      REQUIRE(writer->write(std::string(second, 'b')));
      const bool fits = first + second <= kMost;
      CHECK(body.content().too_long == !fits);
      CHECK(body.content().bytes ==
            (fits ? std::string(first, 'a') + std::string(second, 'b') : ""));
    }
  }
}

TEST_CASE("a file that cannot be opened fails only its own job") {
  const Folder folder;
  folder.write("f", "x");
  FileBody body(folder / "", "f/below", std::make_shared<const OwnFiles>());
  CHECK_FALSE(body.open(Request::get("http://a/")).has_value());
  CHECK_NOTHROW(body.throw_if_failed());
}

TEST_CASE("a body does not replace a file of the run itself") {
  const Folder folder;
  const auto path = std::filesystem::canonical(folder.write("j", "journal")).string();
  const auto own_files = std::make_shared<const OwnFiles>(OwnFiles{{path, "journal"}});
  FileBody body(folder / "", "j", own_files);
  const auto opened = body.open(Request::get("http://a/"));
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message == "the response would replace j, which is the file of the journal");
  CHECK(opened.error().permanent);
  CHECK(FileBody(folder / "", "k", own_files).open(Request::get("http://a/")).has_value());
}

TEST_CASE("a path below a directory has no . and .., and no link leads out of the directory") {
  const Folder folder;
  const Folder outside;
  std::filesystem::create_directories(folder / "d/e");
  std::filesystem::create_directory_symlink(folder / "d", folder / "inside");
  std::filesystem::create_directory_symlink(outside / "", folder / "out");
  std::filesystem::create_symlink("nothing", folder / "gone");
  const auto root = std::filesystem::canonical(folder / "").string();
  for (const auto* const good : {"a", "d/a", "d/e/a", "d/new/a", ".a", "..a", "a.."}) {
    CAPTURE(good);
    const auto path = path_below(folder / "", good);
    REQUIRE(path.has_value());
    CHECK(*path == root + "/" + good);
  }
  const auto inside = path_below(folder / "", "inside/a");
  REQUIRE(inside.has_value());
  CHECK(*inside == root + "/d/a");
  for (const auto* const bad :
       {"", "/a", ".", "..", "./a", "a/.", "a/..", "a/../b", "a//b", "a/"}) {
    CAPTURE(bad);
    const auto path = path_below(folder / "", bad);
    REQUIRE_FALSE(path.has_value());
    CHECK(path.error().message ==
          "the file " + std::string(bad) + ": it is not a relative path without . and ..");
    CHECK(path.error().permanent);
  }
  for (const auto* const bad : {"out/a", "out", "gone"}) {
    CAPTURE(bad);
    const auto path = path_below(folder / "", bad);
    REQUIRE_FALSE(path.has_value());
    CHECK(path.error().message == "the file " + std::string(bad) +
                                      ": a symbolic link leads out of the directory " + root +
                                      ", or to nothing");
  }
  CHECK_FALSE(path_below(folder / "no", "a").has_value());
}

TEST_CASE("a directory for bodies is created, and must be one") {
  const Folder folder;
  check_directory("");
  check_directory(folder / "new/below");
  CHECK(std::filesystem::is_directory(folder / "new/below"));
  check_directory(folder / "new/below");
  const auto file = folder.write("f", "x");
  const auto message = "cannot write bodies into the directory " + file + ": ";
  CHECK_THROWS_WITH_AS(check_directory(file), doctest::Contains(message.c_str()), StoreError);
}

TEST_CASE("the file of a body is named after the id of its job") {
  CHECK(file_name_of("order-17") == "order-17");
  CHECK(file_name_of("a/b") == "a%2Fb");
  CHECK(file_name_of("..") == "%2E.");
  CHECK(file_name_of(".a") == "%2Ea");
  CHECK(file_name_of("a.b") == "a.b");
}

TEST_CASE("a body with a limit ends when its last byte is due") {
  struct Answering final : Transport {
    Task<Outcome> send(Request /*request*/, Call& /*call*/) override {
      co_return Response(200, "abc");
    }
  };
  const auto clock = std::make_shared<ManualScheduler>();
  ClientOptions options;
  options.scheduler = clock;
  options.transport = std::make_shared<Answering>();
  options.middlewares.clear();
  Client client(options);
  const auto body = std::make_shared<MemoryBody>(10);
  auto request = Request::get("http://a.test/");
  request.edit_options().sink = with_rate_limit(body, std::uint64_t{1});
  bool has_ended = false;
  const auto before = std::chrono::steady_clock::now();
  client.send_then(request, [&](Outcome outcome) { has_ended = succeeded(outcome); });
  clock->run();
  const auto after = std::chrono::steady_clock::now();
  CHECK_FALSE(has_ended);
  // Three bytes take three seconds from the beginning of the body.
  CHECK(clock->next() >= before + 3s);
  CHECK(clock->next() <= after + 3s);
  clock->advance(clock->next() - clock->now());
  CHECK(has_ended);
  CHECK(body->content().bytes == "abc");
  CHECK(with_rate_limit(body, std::nullopt) == body);
}

TEST_CASE("a body that cannot be written ends the run with the reason") {
  const Folder folder;
  FileBody body(folder / "", "d/f", std::make_shared<const OwnFiles>());
  auto writer = body.open(Request::get("http://a/")).value();
  REQUIRE(writer->begin(Response(200), 0));
  REQUIRE(writer->write("x"));
  std::filesystem::remove_all(folder / "d");
  const auto finished = writer->finish();
  REQUIRE_FALSE(finished.has_value());
  CHECK_THROWS_WITH_AS(body.throw_if_failed(), finished.error().message.c_str(), StoreError);
}
