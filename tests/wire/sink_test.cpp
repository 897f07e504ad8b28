// Where the body of a response goes, and what a retry means there.
#include "files.hpp"
#include "nginx.hpp"
#include "raw_server.hpp"
#include "sinks.hpp"
#include "tests/waiting.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const std::string kBody = "0123456789abcdefghij";

Step with_headers(Step step, Headers headers) {
  step.headers = std::move(headers);
  return step;
}

// Breaks off in the middle: the first ten bytes arrive.
Step broken(Headers headers) {
  Step step(200, kBody);
  step.fault = Fault::Truncate;
  return with_headers(std::move(step), std::move(headers));
}

Step rest(std::size_t from, const std::string& etag) {
  const auto size = std::to_string(kBody.size());
  return Step(
      206,
      Headers{{"Content-Range", "bytes " + std::to_string(from) + "-19/" + size}, {"ETag", etag}},
      kBody.substr(from));
}

}  // namespace

TEST_CASE("a body goes into a file, and not into memory") {
  const TemporaryDirectory directory;
  const auto path = directory.file("big");
  FaultServer server(Scenario{{200, std::string(3 << 20, 'x')}});
  auto request = Request::get(server.url());
  request.edit_options().sink = save_to(path);
  request.edit_options().max_body = 1000;  // a limit for memory

  const auto outcome = Client::bare().send(request);

  REQUIRE(outcome);
  CHECK(outcome->body.empty());
  CHECK(outcome->delivered == 3U << 20U);
  CHECK(read_file(path) == std::string(3 << 20, 'x'));
  CHECK(directory.count() == 1);
}

TEST_CASE("one request with a sink may be sent again and again") {
  const TemporaryDirectory directory;
  FaultServer server(Scenario{{200, "one"}, {200, "two"}});
  auto request = Request::get(server.url());
  request.edit_options().sink = save_to(directory.file("f"));
  auto client = Client::bare();

  REQUIRE(client.send(request));
  CHECK(read_file(directory.file("f")) == "one");
  REQUIRE(client.send(request));
  CHECK(read_file(directory.file("f")) == "two");
}

TEST_CASE("the body of a failed attempt never reaches the sink") {
  std::string text;
  FaultServer server(Scenario{{503, "busy"}, {302, {{"Location", "/b"}}, "moved"}, {200, "good"}});

  const auto outcome = get_into(server, append_to(text));

  REQUIRE(outcome);
  CHECK(text == "good");
}

TEST_CASE("the body of a bad response that is final is in the response, and the file stays") {
  const TemporaryDirectory directory;
  write_file(directory.file("f"), "old");
  FaultServer server(Scenario{{404, "no such thing"}});

  const auto outcome = get_into(server, save_to(directory.file("f")));

  REQUIRE(outcome);
  CHECK(outcome->body == "no such thing");
  CHECK(outcome->delivered == 0);
  CHECK(read_file(directory.file("f")) == "old");
  CHECK(directory.count() == 1);
}

TEST_CASE("the old file survives every failure, and nothing is left beside it") {
  const TemporaryDirectory directory;
  write_file(directory.file("f"), "old");
  for (const auto fault : {Fault::Truncate, Fault::ResetDuring, Fault::Close, Fault::BadChunk}) {
    FaultServer server(Scenario{fault});
    const auto outcome = get_into(server, save_to(directory.file("f")));
    CHECK_FALSE(outcome);
    CHECK(read_file(directory.file("f")) == "old");
    CHECK(directory.count() == 1);
  }
}

TEST_CASE("an empty answer makes an empty file, and a HEAD none") {
  const TemporaryDirectory directory;
  FaultServer server(Scenario{{200}});
  REQUIRE(get_into(server, save_to(directory.file("f"))));
  CHECK(exists(directory.file("f")));
  CHECK(read_file(directory.file("f")).empty());

  auto head = Request::head(server.url());
  head.edit_options().sink = save_to(directory.file("g"));
  REQUIRE(Client::bare().send(head));
  CHECK_FALSE(exists(directory.file("g")));
}

TEST_CASE("a file keeps its mode, a link leads to its file, and a device is written to") {
  const TemporaryDirectory directory;
  FaultServer server(Scenario{{200, "new"}});
  write_file(directory.file("f"), "old");
  REQUIRE(::chmod(directory.file("f").c_str(), 0640) == 0);
  REQUIRE(::symlink("f", directory.file("link").c_str()) == 0);

  REQUIRE(get_into(server, save_to(directory.file("link"))));

  CHECK(read_file(directory.file("f")) == "new");
  CHECK(std::filesystem::is_symlink(directory.file("link")));
  struct ::stat about {};
  REQUIRE(::stat(directory.file("f").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777U) == 0640);
  REQUIRE(get_into(server, save_to("/dev/null")));
  REQUIRE(::stat("/dev/null", &about) == 0);
  CHECK(S_ISCHR(about.st_mode));
}

TEST_CASE("a file that cannot be written ends the call before anything is sent") {
  FaultServer server;
  const auto outcome = get_into(server, save_to("/nowhere/f"));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 23);
  CHECK(outcome.error().message.find("/nowhere/f: No such file or directory") != std::string::npos);
  CHECK(server.requests() == 0);
}

TEST_CASE("a full disk ends the call with what it said") {
  FaultServer server(Scenario{{200, "data"}});
  const auto outcome = get_into(server, save_to("/dev/full"));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 23);
  CHECK(outcome.error().message.find("No space left on device") != std::string::npos);
  CHECK(outcome.error().history.attempts.size() == 1);
}

TEST_CASE("a broken stream goes on where it broke off, for a reader that cannot go back") {
  std::string text;
  FaultServer server(Scenario{broken({{"ETag", "\"v1\""}}), rest(10, "\"v1\"")});

  const auto outcome = get_into(server, append_to(text));

  REQUIRE(outcome);
  CHECK(outcome->status == 206);
  CHECK(outcome->delivered == kBody.size());
  CHECK(text == kBody);
  const auto seen = server.seen();
  REQUIRE(seen.size() == 2);
  CHECK_FALSE(seen[0].headers.contains("Range"));
  CHECK(seen[1].headers.get("Range") == "bytes=10-");
  CHECK(seen[1].headers.get("If-Range") == "\"v1\"");
}

TEST_CASE("a Last-Modified that is strong will do for a validator, and a weak one will not") {
  const Headers strong{{"Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"},
                       {"Date", "Sun, 06 Nov 1994 08:49:39 GMT"}};
  const Headers weak{{"Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"},
                     {"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}};
  std::string text;
  FaultServer server(Scenario{broken(strong), rest(10, "\"v1\"")});
  REQUIRE(get_into(server, append_to(text)));
  CHECK(text == kBody);
  CHECK(server.seen()[1].headers.get("If-Range") == "Sun, 06 Nov 1994 08:49:37 GMT");

  FaultServer other(Scenario{broken(weak)});
  CHECK_FALSE(get_into(other, append_to(text)));
  CHECK(other.requests() == 1);
}

TEST_CASE("without a validator a reader that cannot go back gets no retry") {
  for (const auto& headers : {Headers{}, Headers{{"ETag", "W/\"v1\""}},
                              Headers{{"ETag", "\"v1\""}, {"Accept-Ranges", "none"}}}) {
    std::string text;
    FaultServer server(Scenario{broken(headers), {200, kBody}});
    const auto outcome = get_into(server, append_to(text));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().partial);
    CHECK(outcome.error().history.stop_reason == Reason::NotReplayable);
    CHECK(text == kBody.substr(0, 10));
    CHECK(server.requests() == 1);
  }
}

TEST_CASE("a file begins anew where nothing says that the rest belongs to it") {
  const TemporaryDirectory directory;
  FaultServer server(Scenario{broken({}), {200, "another"}});
  REQUIRE(get_into(server, save_to(directory.file("f"))));
  CHECK(read_file(directory.file("f")) == "another");
  CHECK_FALSE(server.seen()[1].headers.contains("Range"));
}

TEST_CASE("where the response has changed a file begins anew, and a reader that cannot is told") {
  const TemporaryDirectory directory;
  const Scenario changed{broken({{"ETag", "\"v1\""}}), {200, {{"ETag", "\"v2\""}}, "another"}};
  FaultServer server(changed);
  REQUIRE(get_into(server, save_to(directory.file("f"))));
  CHECK(read_file(directory.file("f")) == "another");

  std::string text;
  FaultServer again(changed);
  const auto outcome = get_into(again, append_to(text));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Protocol);
  CHECK(outcome.error().message.find("has changed") != std::string::npos);
  CHECK(text == kBody.substr(0, 10));
}

TEST_CASE("a server without ranges sends all again, and what is known is skipped") {
  std::string text;
  FaultServer server(Scenario{broken({{"ETag", "\"v1\""}}), {200, {{"ETag", "\"v1\""}}, kBody}});
  const auto outcome = get_into(server, append_to(text));
  REQUIRE(outcome);
  CHECK(text == kBody);
  CHECK(outcome->delivered == kBody.size());
}

TEST_CASE("bytes that were not asked for are no continuation") {
  std::string text;
  FaultServer server(Scenario{broken({{"ETag", "\"v1\""}}), rest(5, "\"v1\"")});
  const auto outcome = get_into(server, append_to(text));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Protocol);
  CHECK(text == kBody.substr(0, 10));

  std::string other;
  FaultServer mixed(Scenario{broken({{"ETag", "\"v1\""}}), rest(10, "\"v2\"")});
  CHECK_FALSE(get_into(mixed, append_to(other)));
  CHECK(other == kBody.substr(0, 10));
}

TEST_CASE("a continuation that is shorter than the whole is not the whole") {
  const TemporaryDirectory directory;
  const Step short_rest(206, Headers{{"Content-Range", "bytes 10-14/20"}, {"ETag", "\"v1\""}},
                        "abcde");
  const Step end(206, Headers{{"Content-Range", "bytes 15-19/20"}, {"ETag", "\"v1\""}}, "fghij");
  FaultServer server(Scenario{broken({{"ETag", "\"v1\""}}), short_rest, end});
  const auto outcome = get_into(server, save_to(directory.file("f")));
  REQUIRE(outcome);
  CHECK(read_file(directory.file("f")) == kBody);
  REQUIRE(outcome->history.attempts.size() == 3);
  const auto& short_attempt = outcome->history.attempts[1];
  CHECK(short_attempt.error == Errc::Receive);
  CHECK(short_attempt.curl_code == 18);
  CHECK(short_attempt.rule == "transport: partial");
  CHECK(short_attempt.error_message.find("the body of the response ends early: 15 bytes of 20") !=
        std::string::npos);
}

TEST_CASE("only a GET is continued, and none that asked for a range by itself") {
  std::string text;
  FaultServer server(Scenario{broken({{"ETag", "\"v1\""}})});
  auto request = Request::get(server.url()).set_header("Range", "bytes=0-99");
  request.edit_options().sink = append_to(text);
  CHECK_FALSE(Client({retry(hasty())}).send(request));
  CHECK(server.requests() == 1);
}

TEST_CASE("a gzip body reaches the sink decoded, and one that ends early is not the whole") {
  const TemporaryDirectory directory;
  Step good(200, std::string(100'000, 'z'));
  good.gzip = true;
  Step bad = good;
  bad.fault = Fault::GzipCutShort;
  FaultServer server(Scenario{bad, good});
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  request.edit_options().sink = save_to(directory.file("f"));
  REQUIRE(Client({retry(hasty())}).send(request));
  CHECK(read_file(directory.file("f")) == std::string(100'000, 'z'));
  CHECK(server.requests() == 2);
}

TEST_CASE("a function that wants no more, or throws, ends the call") {
  FaultServer server(Scenario{{200, std::string(1 << 20, 'x')}});
  const auto enough = get_into(server, pass_to([](std::string_view) { return false; }));
  REQUIRE_FALSE(enough);
  CHECK(enough.error().code == Errc::Canceled);
  const auto thrown = get_into(
      server, pass_to([](std::string_view) -> bool { throw std::runtime_error("no room"); }));
  REQUIRE_FALSE(thrown);
  CHECK(thrown.error().code == Errc::Internal);
  CHECK(thrown.error().message.find("no room") != std::string::npos);
  CHECK(server.requests() == 2);
}

namespace {

// Can start again, and fails where a test says.
struct FailingWriter final : BodyWriter {
  explicit FailingWriter(std::string where) : fails_in(std::move(where)) {}
  Result<void> result_of(const char* function) const {
    return fails_in == function ? Result<void>(Error(Errc::Timeout, "no room")) : Result<void>();
  }
  bool restartable() const override { return true; }
  Result<void> begin(const Response&, std::uint64_t) override { return result_of("begin"); }
  Result<Wish> write(std::string_view) override {
    auto result = result_of("write");
    if (!result) return std::move(result).error();
    return Wish::Pause;
  }
  Task<Result<Wish>> drain(Call&) override {
    auto result = result_of("drain");
    if (!result) co_return std::move(result).error();
    co_return Wish::More;
  }
  Result<void> finish() override { return result_of("finish"); }

  std::string fails_in;
};

struct FailingSink final : Sink {
  explicit FailingSink(std::string where) : fails_in(std::move(where)) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request&) override {
    return std::unique_ptr<BodyWriter>(std::make_unique<FailingWriter>(fails_in));
  }
  std::string fails_in;
};

}  // namespace

TEST_CASE("an error of a writer ends the call, whatever its code, even if the writer can restart") {
  FaultServer server(Scenario{{200, "text"}});
  int calls = 0;
  for (const std::string where : {"begin", "write", "drain", "finish"}) {
    CAPTURE(where);
    const auto outcome = get_into(server, std::make_shared<FailingSink>(where));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Timeout);
    CHECK(outcome.error().message.ends_with("/: no room"));
    CHECK(server.requests() == ++calls);
  }
  const auto none = get_into(server, std::make_shared<FailingSink>("nowhere"));
  CHECK(none);
}

TEST_CASE("a function or a coroutine that gets the body may return an error") {
  FaultServer server(Scenario{{200, std::string(1 << 20, 'x')}});
  const Error no_room(Errc::InvalidRequest, "no room for the body");
  const auto function =
      get_into(server, pass_to([&](std::string_view) -> Result<bool> { return no_room; }));
  const auto coroutine = get_into(
      server, pass_to([&](std::string, Call&) -> Task<Result<bool>> { co_return no_room; }));
  for (const auto* outcome : {&function, &coroutine}) {
    REQUIRE_FALSE(*outcome);
    CHECK(outcome->error().code == Errc::InvalidRequest);
    CHECK(outcome->error().message.ends_with("/: no room for the body"));
  }
  CHECK(server.requests() == 2);
}

namespace {

// Takes a piece, waits for a moment on the loop, and counts.
struct SlowReader {
  std::size_t taken = 0;
  std::size_t pieces = 0;
  std::size_t most = 0;

  SinkPtr sink() {
    return pass_to([this](std::string bytes, Call& call) { return take(std::move(bytes), call); });
  }
  Task<bool> take(std::string bytes, Call& call) {
    const auto until = later(call.scheduler().now(), 2ms);
    const bool waited = co_await call.scheduler().sleep_until(until, call.stop());
    taken += bytes.size();
    most = std::max(most, bytes.size());
    ++pieces;
    co_return waited;
  }
};

}  // namespace

TEST_CASE("a slow coroutine slows the server down, and little is in memory") {
  // The server counts what it could write: far less than all of it while the reader is slow.
  constexpr std::size_t kSize = 64U << 20U;
  std::atomic<std::size_t> written = 0;
  RawServer server([&](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kSize) + "\r\n\r\n");
    const std::string piece(65536, 'p');
    for (std::size_t i = 0; i < kSize / piece.size(); ++i) {
      if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) <= 0) break;
      written += piece.size();
    }
    ::close(fd);
  });
  SlowReader reader;
  auto request = Request::get(server.url());
  request.edit_options().sink = reader.sink();
  CallOptions options;
  options.timeout = 500ms;

  const auto outcome = Client::bare().send(request, options);

  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  CHECK(reader.pieces > 1);
  CHECK(reader.most <= 2 * 65536);
  // What is under way stands in the buffers of the two sockets.
  CHECK(written < reader.taken + (16U << 20U));
  CHECK(written < kSize);
}

TEST_CASE("a coroutine gets every byte, in order, whichever function sends") {
  std::string content;
  for (int i = 0; i < 200'000; ++i) content.append(std::to_string(i)).append("\n");
  FaultServer server(Scenario{{200, content}});
  std::string text;
  auto request = Request::get(server.url());
  request.edit_options().sink = pass_to([&text](std::string bytes, Call& call) -> Task<bool> {
    const bool waited = co_await call.scheduler().sleep_until(call.scheduler().now(), call.stop());
    text.append(bytes);
    co_return waited;
  });
  auto client = Client::bare();

  REQUIRE(client.send(request));
  CHECK(text == content);
  text.clear();
  REQUIRE(client.send_async(request).get());
  CHECK(text == content);
  text.clear();
  REQUIRE(sync_wait(client.co_send(request)));
  CHECK(text == content);
}

TEST_CASE("a coroutine may come back on another thread") {
  FaultServer server(Scenario{{200, std::string(300'000, 'x')}});
  auto other = Client::bare();
  std::size_t size = 0;
  auto request = Request::get(server.url());
  request.edit_options().sink = pass_to([&](std::string bytes, Call&) -> Task<bool> {
    const Outcome stored = co_await other.co_send(Request::post(server.url("/store"), bytes));
    size += bytes.size();
    co_return stored.has_value();
  });
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  CHECK(size == 300'000);
}

TEST_CASE("a call that is canceled while its reader waits ends at once") {
  FaultServer server(Scenario{{200, std::string(8 << 20, 'x')}});
  std::stop_source stop;
  std::atomic<bool> reading = false;
  auto request = Request::get(server.url());
  request.edit_options().sink = pass_to([&](std::string, Call& call) -> Task<bool> {
    reading = true;
    const bool waited = co_await call.scheduler().sleep_until(kNever, call.stop());
    co_return waited;
  });
  CallOptions options;
  options.stop = stop.get_token();
  auto client = Client::bare();
  auto outcome = client.send_async(request, options);
  wait_until([&] { return reading.load(); });
  stop.request_stop();
  REQUIRE(outcome.wait_for(2s) == std::future_status::ready);
  CHECK(outcome.get().error().code == Errc::Canceled);
}

TEST_CASE("server-sent events arrive as they are sent, line by line") {
  std::promise<void> first_was_read;
  RawServer server([&](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: o");
    write_all(fd, "ne\n\n");
    // The second comes only when the first was read: nothing waits for the end of the stream.
    first_was_read.get_future().wait();
    write_all(fd, "data: two\n\ndata: three\n\n");
    ::close(fd);
  });
  std::vector<std::string> events;
  std::string line;
  auto request = Request::get(server.url());
  request.edit_options().sink = pass_to([&](std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\n') {
        line.push_back(c);
      } else if (auto whole = std::exchange(line, ""); whole.starts_with("data: ")) {
        events.push_back(whole.substr(6));
        if (events.size() == 1) first_was_read.set_value();
      }
    }
    return true;
  });
  REQUIRE(Client::bare().send(request));
  CHECK(events == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("a download that failed is gone on with by the next call, against nginx") {
  const TemporaryDirectory directory;
  std::string content;
  for (int i = 0; i < 60'000; ++i) content += std::to_string(i) + " ";
  const Nginx nginx("limit_rate 250k;", {{"data", content}});
  const auto path = directory.file("f");
  FileOptions keep;
  keep.keep_partial = true;
  auto request = Request::get(nginx.url("/data"));
  request.edit_options().sink = save_to(path, keep);
  CallOptions hurried;
  hurried.timeout = 700ms;
  auto client = Client::bare();

  // A machine that is busy may need some goes before anything comes.
  for (int i = 0; i < 20 && !exists(path + ".part"); ++i) {
    CHECK_FALSE(client.send(request, hurried));
  }
  CHECK_FALSE(exists(path));
  const auto part = read_file(path + ".part");
  REQUIRE(part.size() > 0);
  REQUIRE(part.size() < content.size());

  SUBCASE("from where it broke off") {
    const auto outcome = client.send(request);
    REQUIRE(outcome);
    CHECK(outcome->status == 206);
  }
  SUBCASE("from the beginning where it has changed") {
    content = "another " + content;
    nginx.replace("data", content);
    const auto outcome = client.send(request);
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
  }
  SUBCASE("from the beginning where nobody knows what it is of") {
    REQUIRE(::unlink((path + ".part.info").c_str()) == 0);
    const auto outcome = client.send(request);
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
  }
  CHECK(read_file(path) == content);
  CHECK(directory.count() == 1);
}

TEST_CASE("a part of one byte is continued") {
  const TemporaryDirectory directory;
  Step broken(200, Headers{{"ETag", "\"v1\""}}, "ab");
  broken.fault = Fault::Truncate;  // after half of the body
  FaultServer server(
      {broken, {206, Headers{{"ETag", "\"v1\""}, {"Content-Range", "bytes 1-1/2"}}, "b"}});
  FileOptions keep;
  keep.keep_partial = true;
  auto request = Request::get(server.url());
  request.edit_options().retry = false;
  request.edit_options().sink = save_to(directory.file("f"), keep);
  auto client = Client::bare();
  CHECK_FALSE(client.send(request));
  CHECK(read_file(directory.file("f.part")) == "a");
  CHECK(client.send(request));
  CHECK(server.seen().back().headers.get("Range") == "bytes=1-");
  CHECK(read_file(directory.file("f")) == "ab");
}

TEST_CASE("a short body takes little memory") {
  FaultServer server({{200, "short"}});
  auto client = Client::bare();
  const auto outcome = client.get(server.url());
  REQUIRE(outcome);
  CHECK(outcome->body.capacity() < 1000);
}

TEST_CASE("a file that exists is continued on the user's word") {
  const TemporaryDirectory directory;
  const auto path = directory.file("f");
  FileOptions go_on;
  go_on.continue_existing = true;
  const Nginx nginx("", {{"data", kBody}});
  auto request = Request::get(nginx.url("/data"));
  request.edit_options().sink = save_to(path, go_on);
  auto client = Client::bare();

  write_file(path, kBody.substr(0, 7));
  CHECK(client.send(request)->status == 206);
  CHECK(read_file(path) == kBody);
  // It is all there: nothing is fetched, and that is no failure.
  CHECK(client.send(request)->status == 206);
  CHECK(read_file(path) == kBody);
  CHECK(directory.count() == 1);
}

TEST_CASE("one part has one writer") {
  const TemporaryDirectory directory;
  FileOptions keep;
  keep.keep_partial = true;
  const auto sink = save_to(directory.file("f"), keep);
  const auto first = sink->open(Request::get("http://a/"));
  REQUIRE(first);
  const auto second = sink->open(Request::get("http://a/"));
  REQUIRE_FALSE(second);
  CHECK(second.error().message.find("another process") != std::string::npos);
}

namespace {

// Breaks its word not to throw.
class Throwing final : public Sink {
 public:
  Result<std::unique_ptr<BodyWriter>> open(const Request& /*request*/) override {
    return std::unique_ptr<BodyWriter>(std::make_unique<Writer>());
  }

 private:
  struct Writer final : BodyWriter {
    Result<void> begin(const Response& /*head*/, std::uint64_t /*offset*/) override { return {}; }
    Result<Wish> write(std::string_view /*bytes*/) override {
      throw std::runtime_error("the cupboard is full");
    }
    Result<void> finish() override { return {}; }
  };
};

}  // namespace

TEST_CASE("what a sink throws is in the message") {
  FaultServer server(Scenario{{200, kBody}});
  const auto outcome = get_into(server, std::make_shared<Throwing>());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Internal);
  CHECK(outcome.error().message.find("the cupboard is full") != std::string::npos);
  CHECK(server.requests() == 1);
}

TEST_CASE("a device has no beginning to go on with") {
  const TemporaryDirectory directory;
  FaultServer server(Scenario{{200, Headers{{"ETag", "\"v1\""}}, kBody}});
  FileOptions keep;
  keep.keep_partial = true;
  CHECK(get_into(server, save_to("/dev/null", keep)));
  CHECK(::access("/dev/null.info", F_OK) != 0);
  FileOptions go_on;
  go_on.continue_existing = true;
  CHECK(get_into(server, save_to("/dev/zero", go_on)));
}

TEST_CASE("what goes nowhere can begin anew") {
  FaultServer server(Scenario{broken({}), {200, kBody}});
  const auto outcome = get_into(server, save_to("/dev/null"));
  REQUIRE(outcome);
  CHECK(outcome->history.attempts.size() == 2);
  CHECK(outcome->delivered == kBody.size());
}

TEST_CASE("a file may have the longest name that there is") {
  const TemporaryDirectory directory;
  const auto path = directory.file(std::string(255, 'n'));
  FaultServer server(Scenario{{200, kBody}});
  REQUIRE(get_into(server, save_to(path)));
  CHECK(read_file(path) == kBody);
}

TEST_CASE("a link to what is not there yet stays, and leads to the file") {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("beside", directory.file("first"));
  std::filesystem::create_symlink("first", directory.file("link"));
  FaultServer server(Scenario{{200, kBody}});
  REQUIRE(get_into(server, save_to(directory.file("link"))));
  CHECK(std::filesystem::is_symlink(directory.file("link")));
  CHECK(read_file(directory.file("beside")) == kBody);
}
