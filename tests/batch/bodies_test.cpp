#include "lib/extras/batch/bodies.hpp"
#include "tests/batch/folder.hpp"

#include <httpretry/http/request.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace httpretry;         // NOLINT
using namespace httpretry::batch;  // NOLINT

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
