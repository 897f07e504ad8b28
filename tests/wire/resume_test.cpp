// A body that is received in parts is whole, or it is received again from its beginning.
#include "files.hpp"
#include "sinks.hpp"

#include "lib/core/base/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const std::string kBody = "0123456789abcdefghij";
const std::string kOther = "another body";
const char* const kMonday = "Mon, 07 Nov 1994 08:49:37 GMT";
const char* const kTuesday = "Tue, 08 Nov 1994 08:49:37 GMT";

// Ten of the twenty bytes arrive.
Step broken(Headers headers) {
  Step step(200, std::move(headers), kBody);
  step.fault = Fault::Truncate;
  return step;
}

Step tagged() { return broken({{"ETag", "\"v1\""}}); }

Step dated() {
  return broken({{"Last-Modified", kMonday}, {"Date", "Sat, 12 Nov 1994 08:49:37 GMT"}});
}

Step part(const char* range, std::string body = kBody.substr(10)) {
  return {206, Headers{{"Content-Range", range}, {"ETag", "\"v1\""}}, std::move(body)};
}

struct Row {
  std::string what;
  Step first;
  Step second;  // does not fit the first
};

std::vector<Row> rows() {
  const auto with = [](const char* name, const char* value) {
    return Step(206, Headers{{"Content-Range", "bytes 10-19/20"}, {name, value}}, kBody.substr(10));
  };
  Step two_tags = part("bytes 10-19/20");
  two_tags.headers.add("ETag", "\"v2\"");
  Step two_ranges = part("bytes 10-19/20");
  two_ranges.headers.add("Content-Range", "bytes 0-9/20");
  return {
      {"another ETag", tagged(), with("ETag", "\"v2\"")},
      {"a weak ETag", tagged(), with("ETag", "W/\"v1\"")},
      {"two ETags", tagged(), two_tags},
      {"two ranges", tagged(), two_ranges},
      {"another Last-Modified", dated(), with("Last-Modified", kTuesday)},
      {"a larger total", tagged(), part("bytes 10-19/2000")},
      {"a smaller total", tagged(), part("bytes 10-14/15", "abcde")},
      {"bytes from elsewhere", tagged(), part("bytes 5-14/20")},
      {"more bytes than the range says", tagged(), part("bytes 10-14/20")},
      {"no range", tagged(), Step(206, Headers{{"ETag", "\"v1\""}}, kBody.substr(10))},
      {"a 304", tagged(), Step(304, Headers{{"ETag", "\"v1\""}})},
      {"a 416 that calls the part whole", tagged(),
       Step(416, Headers{{"Content-Range", "bytes */10"}})},
      {"a 416 of a shorter file", tagged(), Step(416, Headers{{"Content-Range", "bytes */5"}})},
      {"a 416 that says nothing", tagged(), Step(416)},
  };
}

FileOptions keep_partial() {
  FileOptions options;
  options.keep_partial = true;
  return options;
}

Outcome send_once(Request request, SinkPtr sink) {
  request.edit_options().sink = std::move(sink);
  auto policy = hasty();
  policy.max_attempts = 1;
  return Client({retry(policy)}).send(request);
}

Outcome get_once(const FaultServer& server, SinkPtr sink) {
  return send_once(Request::get(server.url()), std::move(sink));
}

}  // namespace

TEST_CASE("what does not fit the first part of a file is not put after it") {
  for (const auto& row : rows()) {
    CAPTURE(row.what);
    const TemporaryDirectory directory;
    FaultServer server(Scenario{row.first, row.second, {200, kOther}});

    const auto outcome = get_into(server, save_to(directory.file("f")));

    REQUIRE(outcome);
    CHECK(read_file(directory.file("f")) == kOther);
    const auto seen = server.seen();
    REQUIRE(seen.size() == 3);
    CHECK(seen[1].headers.get("Range") == "bytes=10-");
    CHECK_FALSE(seen[2].headers.contains("Range"));
  }
}

TEST_CASE("a reader that cannot begin anew is told that the rest does not fit") {
  for (const auto& row : rows()) {
    CAPTURE(row.what);
    std::string text;
    FaultServer server(Scenario{row.first, row.second, {200, kBody}});

    const auto outcome = get_into(server, append_to(text));

    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Protocol);
    CHECK(outcome.error().curl_code == 33);
    const auto& message = outcome.error().message;
    CHECK(message.find("cannot continue after the first 10 bytes: ") != std::string::npos);
    CHECK(message.find("receive the body again from its beginning") != std::string::npos);
    CHECK(text == kBody.substr(0, 10));
  }
}

TEST_CASE("what does not fit the part that an earlier call has left is not put after it") {
  for (const auto& row : rows()) {
    CAPTURE(row.what);
    const TemporaryDirectory directory;
    const auto sink = save_to(directory.file("f"), keep_partial());
    FaultServer server(Scenario{row.first, row.second, {200, kOther}});
    REQUIRE_FALSE(get_once(server, sink));
    CHECK(read_file(directory.file("f.part")) == kBody.substr(0, 10));

    REQUIRE(get_into(server, sink));

    CHECK(read_file(directory.file("f")) == kOther);
    CHECK(server.seen()[1].headers.get("Range") == "bytes=10-");
    CHECK(directory.count() == 1);
  }
}

TEST_CASE("a call that cannot continue a part leaves none that a later call would continue") {
  for (const auto& row : rows()) {
    CAPTURE(row.what);
    const TemporaryDirectory directory;
    const auto sink = save_to(directory.file("f"), keep_partial());
    FaultServer server(Scenario{row.first, row.second, {200, kOther}});
    REQUIRE_FALSE(get_once(server, sink));

    const auto outcome = get_once(server, sink);

    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().curl_code == 33);
    CHECK_FALSE(exists(directory.file("f")));
    REQUIRE(get_once(server, sink));
    CHECK(read_file(directory.file("f")) == kOther);
  }
}

namespace {

// Responds with the bytes that are asked for, of 400 KiB, but sends only half of them.
Step half_of_the_rest(Headers headers) {
  Step step;
  step.respond = [headers = std::move(headers)](const SeenRequest& request) {
    constexpr std::size_t kSize = std::size_t{400} * 1024;
    const auto range = request.headers.get("Range").value_or("bytes=0-");
    const auto first = std::stoul(std::string(range.substr(range.find('=') + 1)));
    Step half(first == 0 ? 200 : 206, headers, std::string(kSize - first, 'x'));
    const auto last_and_total = std::to_string(kSize - 1) + "/" + std::to_string(kSize);
    if (first > 0) {
      half.headers.add("Content-Range", "bytes " + std::to_string(first) + "-" + last_and_total);
    }
    half.fault = Fault::Truncate;
    return half;
  };
  return step;
}

std::size_t attempts_of_two(const FaultServer& server, SinkPtr sink) {
  auto request = Request::get(server.url());
  request.edit_options().sink = std::move(sink);
  auto policy = hasty();
  policy.max_attempts = 2;
  const auto outcome = Client({retry(policy)}).send(request);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().history.stop_reason == Reason::AttemptsExhausted);
  return outcome.error().history.attempts.size();
}

}  // namespace

TEST_CASE("only attempts that bring a download less than 64 KiB further count") {
  const TemporaryDirectory directory;
  // 200, 100, 50 and 25 KiB. The last two count.
  const FaultServer resumable(Scenario{half_of_the_rest({{"ETag", "\"v1\""}})});
  CHECK(attempts_of_two(resumable, save_to(directory.file("f"))) == 4);
  std::string text;
  CHECK(attempts_of_two(resumable, append_to(text)) == 4);
  CHECK(text.size() == std::size_t{375} * 1024);
  // 200 KiB, and the same ones again: only the first attempt brings something new.
  const FaultServer from_the_beginning(Scenario{half_of_the_rest({})});
  CHECK(attempts_of_two(from_the_beginning, save_to(directory.file("f"))) == 3);
  // In memory, each attempt begins anew.
  CHECK(attempts_of_two(resumable, nullptr) == 2);
}

TEST_CASE("a part that is shorter than the rest is followed by the rest of it") {
  const TemporaryDirectory directory;
  FaultServer server(
      Scenario{tagged(), part("bytes 10-14/*", "abcde"), part("Bytes 15-19/*", "fghij")});
  REQUIRE(get_into(server, save_to(directory.file("f"))));
  CHECK(read_file(directory.file("f")) == kBody);
  CHECK(server.seen()[2].headers.get("Range") == "bytes=15-");
}

TEST_CASE("a 416 ends a body whose last byte has come") {
  const TemporaryDirectory directory;
  FaultServer server(Scenario{tagged(), Step(416, Headers{{"Content-Range", "bytes */20"}})});
  const auto sink = save_to(directory.file("f"), keep_partial());
  REQUIRE_FALSE(get_once(server, sink));
  write_file(directory.file("f.part"),
             kBody);  // as if all bytes had come before the connection broke
  REQUIRE(get_once(server, sink));
  CHECK(read_file(directory.file("f")) == kBody);
}

TEST_CASE("a whole body that has not the announced size is not taken for the rest") {
  const Headers chunked{{"ETag", "\"v1\""}, {"Transfer-Encoding", "chunked"}};
  for (const auto& body : {kBody.substr(0, 15), kBody + "k"}) {
    std::string text;
    FaultServer server(Scenario{tagged(), Step(200, chunked, body), Fault::Close});
    const auto outcome = get_into(server, append_to(text));
    REQUIRE_FALSE(outcome);
    CHECK(text.size() <= kBody.size());
  }
}

TEST_CASE("a part that nobody has asked for is not the file") {
  const TemporaryDirectory directory;
  write_file(directory.file("f"), "old");
  FaultServer server(Scenario{part("bytes 0-9/20", kBody.substr(0, 10))});

  const auto outcome = get_into(server, save_to(directory.file("f")));

  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 33);
  CHECK(outcome.error().message.find("the server sent a part of the body (bytes 0-9 of 20)") !=
        std::string::npos);
  CHECK(read_file(directory.file("f")) == "old");

  const auto ranged = Request::get(server.url()).set_header("Range", "bytes=0-9");
  REQUIRE(send_once(ranged, save_to(directory.file("f"), keep_partial())));
  CHECK(read_file(directory.file("f")) == kBody.substr(0, 10));
}

TEST_CASE("a part that nobody has asked for is no whole body in memory") {
  FaultServer server(Scenario{part("Bytes 0-9/20", kBody.substr(0, 10))});
  Client client({retry(hasty())});

  const auto outcome = client.get(server.url());

  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Protocol);
  CHECK(outcome.error().curl_code == 33);
  CHECK(outcome.error().status == 206);
  CHECK(outcome.error().message.find("the server sent a part of the body (bytes 0-9 of 20)") !=
        std::string::npos);

  CHECK(client.send(Request("HEAD", server.url())));

  const auto ranged = [&](const char* range) {
    return client.send(Request::get(server.url()).set_header("Range", range));
  };
  for (const auto* const range :
       {"bytes=0-9", "bytes=0-", "bytes=0-99", "bytes=-10", "bytes=15-30,0-9", "items=5-9"}) {
    CAPTURE(range);
    const auto sent = ranged(range);
    REQUIRE(sent);
    CHECK(sent->body == kBody.substr(0, 10));
  }
  for (const auto* const range : {"bytes=5-9", "bytes=5-", "bytes=0-8"}) {
    CAPTURE(range);
    const auto sent = ranged(range);
    REQUIRE_FALSE(sent);
    CHECK(sent.error().message.find("(bytes 0-9 of 20), although another part was requested") !=
          std::string::npos);
  }
}

TEST_CASE("a part of a list, which is counted in items, is a whole body") {
  std::string text;
  FaultServer server(Scenario{Step(206, Headers{{"Content-Range", "0-9/100"}}, kBody)});
  REQUIRE(get_into(server, append_to(text)));
  CHECK(text == kBody);

  const auto outcome = Client::bare().get(server.url());
  REQUIRE(outcome);
  CHECK(outcome->body == kBody);
}

TEST_CASE("what is left of a part that the user asked for is no beginning of the file") {
  const TemporaryDirectory directory;
  Step step = part("bytes 5-14/20", kBody.substr(5, 10));
  step.fault = Fault::Truncate;
  FaultServer server(Scenario{step, {200, kBody}});
  const auto sink = save_to(directory.file("f"), keep_partial());
  REQUIRE_FALSE(send_once(Request::get(server.url()).set_header("Range", "bytes=5-14"), sink));

  REQUIRE(get_once(server, sink));
  CHECK_FALSE(server.seen().back().headers.contains("Range"));
  CHECK(read_file(directory.file("f")) == kBody);
}

TEST_CASE("a file that the user vouches for is replaced where the server has a shorter one") {
  const TemporaryDirectory directory;
  write_file(directory.file("f"), kBody);
  FileOptions options;
  options.continue_existing = true;
  FaultServer server(Scenario{Step(416, Headers{{"Content-Range", "bytes */12"}}), {200, kOther}});
  REQUIRE(get_into(server, save_to(directory.file("f"), options)));
  CHECK(read_file(directory.file("f")) == kOther);
}

TEST_CASE("a server that does not say where the body ends gives no whole file") {
  const TemporaryDirectory directory;
  write_file(directory.file("f"), kBody.substr(0, 10));
  FileOptions options;
  options.continue_existing = true;
  FaultServer server(Scenario{part("bytes 10-14/*", "abcde"), {200, kOther}});
  REQUIRE(get_into(server, save_to(directory.file("f"), options)));
  CHECK(read_file(directory.file("f")) == kOther);
}

TEST_CASE("a description of the part that is a pipe says nothing, and nobody waits for it") {
  for (const bool has_writer : {false, true}) {
    CAPTURE(has_writer);
    const TemporaryDirectory directory;
    const auto path = directory.file("f");
    const auto info = path + ".part.info";
    FaultServer server(Scenario{tagged(), {200, {{"ETag", "\"v2\""}}, kOther}});
    REQUIRE_FALSE(get_once(server, save_to(path, keep_partial())));
    const auto description = read_file(info);
    REQUIRE(description.find("v1") != std::string::npos);
    std::filesystem::remove(info);
    REQUIRE(::mkfifo(info.c_str(), 0600) == 0);
    const Descriptor pipe(has_writer ? ::open(info.c_str(), O_RDWR | O_CLOEXEC) : -1);
    if (has_writer) {
      REQUIRE(::write(pipe.get(), description.data(), description.size()) ==
              static_cast<ssize_t>(description.size()));
    }
    REQUIRE(get_once(server, save_to(path, keep_partial())));
    CHECK_FALSE(server.seen().back().headers.contains("Range"));
    CHECK(read_file(path) == kOther);
    CHECK(directory.count() == 1);
  }
}
