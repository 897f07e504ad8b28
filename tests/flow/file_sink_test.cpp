#include "tests/wire/files.hpp"

#include <httpretry/flow/sink.hpp>

#include <string>

using namespace httpretry;

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
