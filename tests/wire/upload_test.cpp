// Bodies on their way out: forms, generators, and asking before sending.
#include "canned_server.hpp"
#include "files.hpp"
#include "raw_server.hpp"
#include "wire.hpp"

#include <httpretry/body/awaited_body.hpp>
#include <httpretry/body/sink.hpp>
#include <httpretry/http/body.hpp>
#include <httpretry/middleware/retry.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <latch>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Gives `size` letters; counts how often it was asked.
Body::Generator letters(std::size_t size, std::shared_ptr<int> asked = nullptr) {
  return [left = size, asked](std::span<char> into) mutable {
    if (asked) ++*asked;
    const auto count = std::min(into.size(), left);
    std::fill_n(into.begin(), count, 'l');
    left -= count;
    return count;
  };
}

// The parts of a multipart body, taken apart by its boundary as a server would.
std::vector<std::string> parts_of(const SeenRequest& seen) {
  const std::string type(seen.headers.get("Content-Type").value_or(""));
  const auto at = type.find("boundary=");
  REQUIRE(at != std::string::npos);
  const auto boundary = "--" + type.substr(at + 9);
  std::vector<std::string> parts;
  auto rest = seen.body;
  REQUIRE(rest.starts_with(boundary + "\r\n"));
  REQUIRE(rest.ends_with("\r\n" + boundary + "--\r\n"));
  for (;;) {
    rest.erase(0, boundary.size() + 2);
    const auto end = rest.find("\r\n" + boundary);
    if (end == std::string::npos) return parts;
    parts.push_back(rest.substr(0, end));
    rest.erase(0, end + 2);
  }
}

}  // namespace

// RFC 9110 §9.3.2. libcurl would wait for the body that the response announces.
TEST_CASE("the response to a HEAD has no body, even if the request has one") {
  FaultServer server(Scenario{{200, std::string(2000, 'x')}});
  auto policy = hasty();
  policy.max_attempts = 1;
  policy.attempt_timeout = 10s;
  Client client({retry(policy)});
  const struct {
    Body body;
    std::string received;
  } rows[] = {{Body(), ""},
              {Body("hello"), "hello"},
              {Body::once(letters(5)), "lllll"},
              {Body::once(letters(5), 5), "lllll"},
              {Body(std::string()), ""}};
  for (const auto& row : rows) {
    CAPTURE(row.received);
    const auto outcome = client.send(Request("HEAD", server.url()).set_body(row.body));
    REQUIRE_MESSAGE(outcome, outcome.error().message);
    CHECK(outcome->headers.get("Content-Length") == "2000");
    CHECK(outcome->body.empty());
    CHECK(outcome->exchange.timings.total < 5s);  // libcurl would wait for attempt_timeout
    CHECK(wire_sends(outcome) == 1);
    CHECK(server.seen().back().body == row.received);
  }
  CHECK(client.get(server.url())->body.size() == 2000);
}

TEST_CASE("a form goes out as its parts, and again for a retry") {
  const TemporaryDirectory directory;
  write_file(directory.file("cat.jpg"), "meow");
  Form form;
  form.add("title", "A \"cat\"").add_file("picture", directory.file("cat.jpg"));
  FormPart json("me\r\nta\"", R"({"a": 1})");
  json.content_type = "application/json";
  json.headers.add("X-Part", "3");
  form.add(json);
  FaultServer server(Scenario{{503}, {200}});
  auto request = Request::post(server.url(), Body()).set_form(form);
  request.edit_options().repeatable = true;

  const auto outcome = Client({retry(hasty())}).send(request);

  REQUIRE(outcome);
  const auto seen = server.seen();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].body == seen[1].body);
  CHECK(seen[1].headers.get("Content-Length") == std::to_string(seen[1].body.size()));
  CHECK(parts_of(seen[1]) ==
        std::vector<std::string>{
            "Content-Disposition: form-data; name=\"title\"\r\n\r\nA \"cat\"",
            "Content-Disposition: form-data; name=\"picture\"; filename=\"cat.jpg\"\r\n"
            "Content-Type: image/jpeg\r\n\r\nmeow",
            "Content-Disposition: form-data; name=\"me%0D%0Ata%22\"\r\n"
            "Content-Type: application/json\r\nX-Part: 3\r\n\r\n{\"a\": 1}"});
}

TEST_CASE("several files in one field are parts within its part") {
  FormPart pictures("pictures", Body());
  for (const char* name : {"a.png", "b"}) {
    FormPart file("", Body(std::string("bytes of ") + name));
    file.file_name = name;
    pictures.files.push_back(file);
  }
  pictures.files.back().headers.add("content-type", "image/x");
  Form form;
  form.add(pictures).add("last", "one");
  FaultServer server;

  REQUIRE(Client::bare().send(Request::post(server.url(), Body()).set_form(form)));

  const auto parts = parts_of(server.seen().front());
  REQUIRE(parts.size() == 2);
  const auto type = form.content_type();
  const auto inner = "files-" + type.substr(type.find("boundary=") + 9);
  CHECK(parts[0] ==
        "Content-Disposition: form-data; name=\"pictures\"\r\n"
        "Content-Type: multipart/mixed; boundary=" +
            inner + "\r\n\r\n--" + inner +
            "\r\nContent-Disposition: attachment; filename=\"a.png\"\r\n"
            "Content-Type: image/png\r\n\r\nbytes of a.png\r\n--" +
            inner +
            "\r\nContent-Disposition: attachment; filename=\"b\"\r\n"
            "content-type: image/x\r\n\r\nbytes of b\r\n--" +
            inner + "--\r\n");
  CHECK(parts[1].ends_with("\r\n\r\none"));
}

TEST_CASE("a body goes out no faster than it may") {
  FaultServer server;
  auto request = Request::post(server.url(), std::string(150'000, 'b'));
  request.edit_options().upload_rate = 100'000;
  auto client = Client::bare();
  const auto slow = client.send(request);
  REQUIRE(slow);
  CHECK(slow->history.elapsed > 300ms);  // what the socket takes at once is not held back
  CHECK(server.seen().front().body_size == 150'000);
  request.edit_options().upload_rate.reset();  // on the same handle, which is free again
  const auto free = client.send(request);
  REQUIRE(free);
  CHECK(free->history.elapsed < slow->history.elapsed);
}

TEST_CASE("two forms have two boundaries, and a form without parts is a whole body too") {
  FaultServer server;
  const Form one;
  const Form other;
  CHECK(one.content_type() != other.content_type());
  REQUIRE(Client::bare().send(Request::post(server.url(), Body()).set_form(one)));
  CHECK(server.seen()[0].body.ends_with("--\r\n"));
}

TEST_CASE("a form whose file is not there is not sent") {
  FaultServer server;
  Form form;
  form.add_file("f", "/nowhere/file");
  const auto outcome = Client::bare().send(Request::post(server.url(), Body()).set_form(form));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message.find("/nowhere/file: No such file") != std::string::npos);
  CHECK(server.requests() == 0);
}

TEST_CASE("a form with a part that can be read only once is sent only once") {
  FaultServer server(Scenario{{503}, {200}});
  Form form;
  form.add("title", "x").add(FormPart("data", Body::once(letters(5000))));
  auto request = Request::post(server.url(), Body()).set_form(form);
  request.edit_options().repeatable = true;
  CHECK(form.body().replayable());

  const auto outcome = Client({retry(hasty())}).send(request);

  REQUIRE(outcome);
  CHECK(outcome->status == 503);
  CHECK(outcome->history.stop_reason == Reason::NotReplayable);
  REQUIRE(server.requests() == 1);
  CHECK(server.seen()[0].headers.get("Transfer-Encoding") == "chunked");
  CHECK_FALSE(request.body().replayable());
}

TEST_CASE("a content type that would break a header is refused") {
  FormPart part("name", "data");
  part.content_type = "a/b\r\nX-Evil: 1";
  Form form;
  CHECK_THROWS_AS(form.add(part), std::invalid_argument);
  CHECK_THROWS_AS(form.add(std::string("a\0b", 3), "x"), std::invalid_argument);
}

TEST_CASE("a generator that can start again does for each attempt") {
  FaultServer server(Scenario{{503}, {200}});
  const auto body = Body::generated([] { return letters(100'000); }, 100'000);
  const auto outcome = Client({retry(hasty())}).put(server.url(), body);
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  for (const auto& seen : server.seen()) {
    CHECK(seen.body == std::string(100'000, 'l'));
    CHECK(seen.headers.get("Content-Length") == "100000");
  }
}

TEST_CASE("a body of another size than it told ends the call, and is no second request") {
  for (const bool http2 : {false, true}) {
    for (const std::size_t announced : {0U, 1U, 100U, 65'536U, 300'000U}) {
      for (const int more : {-1, 1}) {
        if (announced == 0 && more < 0) continue;
        CAPTURE(http2);
        CAPTURE(announced);
        CAPTURE(more);
        Scenario scenario;
        scenario.paths.emplace("/http2", Script({Fault::Http2NoEndStream}));
        FaultServer server(scenario);
        const auto size = announced + static_cast<std::size_t>(more);
        auto request = Request::put(server.url(), Body::once(letters(size), announced));
        if (http2) request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
        const auto outcome = Client::bare().send(request);
        REQUIRE_FALSE(outcome);
        CHECK(outcome.error().code == Errc::InvalidRequest);
        CHECK(outcome.error().message.find("its announced size") != std::string::npos);
        server.stop();  // so that it has seen all
        for (const auto& seen : server.seen()) CHECK_FALSE(seen.body_complete);
      }
    }
  }
}

namespace {

// Gives `content`, of a size that is announced; then it waits for ever, or until `end` is set.
class Unending final : public PausingReader {
 public:
  Unending(std::string content, std::shared_ptr<std::atomic<int>> end)
      : left_(std::move(content)), size_(left_.size()), end_(std::move(end)) {}
  Result<std::size_t> read(std::span<char> into) override {
    if (left_.empty() && *end_ < 0) return kPause;
    if (left_.empty()) left_.assign(static_cast<std::size_t>(end_->exchange(0)), 'm');
    const auto count = left_.copy(into.data(), into.size());
    left_.erase(0, count);
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return size_; }
  Task<Result<void>> wait(Call& call) override {
    co_await call.scheduler().sleep_until(kNever, call.stop());
    co_return Error(Errc::Internal, "it was waited for");
  }

 private:
  std::string left_;
  std::uint64_t size_;
  std::shared_ptr<std::atomic<int>> end_;  // -1: it waits; else so many bytes more
};

}  // namespace

TEST_CASE("a body that does not yet know whether it ends at its announced size is not waited for") {
  for (const std::size_t size : {0U, 5U, 200'000U}) {
    for (const int more : {-1, 0, 1}) {  // before the response comes
      CAPTURE(size);
      CAPTURE(more);
      const auto end = std::make_shared<std::atomic<int>>(-1);
      FaultServerOptions options;
      options.on_request = [&](const SeenRequest&) { *end = more; };
      FaultServer server(Scenario{}, options);
      const auto body = Body::once(std::make_unique<Unending>(std::string(size, 'b'), end));
      const auto outcome = Client({retry(hasty())}).put(server.url(), body);
      CHECK(server.requests() == 1);
      CHECK(server.seen()[0].body == std::string(size, 'b'));
      REQUIRE(outcome.has_value() == (more <= 0));
      if (outcome) continue;
      CHECK(outcome.error().code == Errc::InvalidRequest);
      CHECK(outcome.error().exchange.sent == Sent::Maybe);
      CHECK(outcome.error().message.find("longer than its announced size") != std::string::npos);
    }
  }
}

TEST_CASE("a server that is asked first sees no body where it answers at once") {
  Step no(503);
  no.respond_early = true;
  FaultServer server(Scenario{no, {200}});
  const auto asked = std::make_shared<int>(0);
  auto request = Request::put(server.url(), Body::once(letters(10'000, asked), 10'000));
  request.edit_options().expect_continue_from = 1;
  request.edit_options().expect_timeout = 10s;

  const auto outcome = Client({retry(hasty())}).send(request);

  // The body could be read only once, and was: for the second attempt.
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  CHECK(outcome->history.attempts.size() == 2);
  const auto seen = server.seen();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].headers.get("Expect") == "100-continue");
  CHECK(seen[0].body.empty());
  CHECK(seen[1].body == std::string(10'000, 'l'));
}

TEST_CASE("who does not answer the question gets the body after a while") {
  Step silent(200);
  silent.ignore_expect = true;
  FaultServer server(Scenario{silent});
  auto request = Request::put(server.url(), "data");
  request.edit_options().expect_timeout = 20ms;
  for (const std::uint64_t from : {0U, 4U}) {
    request.edit_options().expect_continue_from = from;
    REQUIRE(Client::bare().send(request));
    CHECK(server.seen().back().headers.contains("Expect"));
    CHECK(server.seen().back().body == "data");
  }
}

TEST_CASE("nobody is asked by default, for small bodies, or without a body") {
  FaultServer server;
  auto client = Client::bare();
  REQUIRE(client.put(server.url(), std::string(2 << 20, 'x')));
  auto small = Request::put(server.url(), "data");
  small.edit_options().expect_continue_from = 5;
  REQUIRE(client.send(small));
  auto none = Request::get(server.url());
  none.edit_options().expect_continue_from = 0;
  REQUIRE(client.send(none));
  for (const auto& seen : server.seen()) CHECK_FALSE(seen.headers.contains("Expect"));
}

TEST_CASE("a server that cannot be asked gets the body at once, and that is no retry") {
  for (const bool by_header : {false, true}) {
    for (const bool once : {false, true}) {
      CAPTURE(by_header);
      CAPTURE(once);
      FaultServer server(Scenario{{417}, {200}});
      auto request = Request::post(server.url(),
                                   once ? Body::once(letters(5000)) : Body(std::string(5000, 'l')));
      if (by_header) request.set_header("expect", "100-Continue");
      if (!by_header) request.edit_options().expect_continue_from = 1;
      request.edit_options().expect_timeout = 10s;
      const auto outcome = Client({retry(hasty())}).send(request);
      REQUIRE(outcome);
      CHECK(outcome->status == 200);
      CHECK(outcome->history.attempts.size() == 1);
      CHECK(outcome->exchange.wire_sends == 2);
      CHECK(outcome->exchange.sent == Sent::Answered);
      CHECK(outcome->exchange.timings.first_byte <= outcome->exchange.timings.total);
      const auto seen = server.seen();
      REQUIRE(seen.size() == 2);
      CHECK(seen[0].headers.contains("Expect"));
      CHECK(seen[0].body.empty());
      CHECK_FALSE(seen[1].headers.contains("Expect"));
      CHECK(seen[1].body == std::string(5000, 'l'));
    }
  }
}

// It may take what comes next for the body that it did not get.
TEST_CASE("after a 417 the connection is not used again") {
  CannedServer server({"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n",
                       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
  auto request = Request::put(server.url(), "data");
  request.edit_options().expect_continue_from = 1;
  request.edit_options().expect_timeout = 10s;
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  CHECK(outcome->body == "ok");
  CHECK(outcome->exchange.wire_sends == 2);
  CHECK(server.requests() == 2);
  CHECK(server.connections() == 2);
}

TEST_CASE("a server that responds 417 to everything gets two sends") {
  for (const char* fields : {"", "Connection: close\r\n"}) {
    CannedServer server({std::string("HTTP/1.1 417 Expectation Failed\r\n") + fields +
                         "Content-Length: 0\r\n\r\n"});
    auto request = Request::put(server.url(), "data").set_header("Expect", "100-continue");
    request.edit_options().expect_timeout = 10s;
    const auto outcome = Client({retry(hasty())}).send(request);
    REQUIRE(outcome);
    CHECK(outcome->status == 417);
    CHECK(outcome->history.attempts.size() == 1);
    CHECK(outcome->exchange.wire_sends == 2);
    CHECK(server.requests() == 2);
  }
}

TEST_CASE("where the second send after a 417 fails, the error counts both") {
  FaultServer server(Scenario{{417}, {Fault::Close}});
  auto request = Request::put(server.url(), "data").set_header("Expect", "100-continue");
  const auto outcome = Client::bare().send(request);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().exchange.wire_sends == 2);
  CHECK(outcome.error().exchange.sent == Sent::Maybe);
}

TEST_CASE("a 417 that nobody asked for, or after a body that is gone, is the response") {
  FaultServer server(Scenario{{417}});
  const auto outcome = Client::bare().put(server.url(), "data");
  REQUIRE(outcome);
  CHECK(outcome->status == 417);
  CHECK(server.requests() == 1);

  RawServer late([](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "llll");
    write_all(fd, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
    read_until(fd, "the end of the connection");
    ::close(fd);
  });
  auto request = Request::put(late.url(), Body::once(letters(8 << 20), 8 << 20));
  request.edit_options().expect_continue_from = 1;
  request.edit_options().expect_timeout = 1ms;
  const auto refused = Client({retry(hasty())}).send(request);
  REQUIRE(refused);
  CHECK(refused->status == 417);
  CHECK(refused->exchange.wire_sends == 1);
}

// The rest of the body can then not be sent.
TEST_CASE("a response that was received stays one if the connection is reset after it") {
  std::latch received(1);
  RawServer server([&](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    received.wait();
    ::close(fd);  // resets the connection, because not all was read
  });
  auto request = Request::put(server.url(), std::string(32U << 20U, 'x'));
  std::string body;
  request.edit_options().sink = pass_to([&](std::string_view bytes) {
    if (body.empty()) received.count_down();
    body += bytes;
    return true;
  });
  const auto outcome = Client::bare().send(request);
  if (body.empty()) received.count_down();
  REQUIRE_MESSAGE(outcome, outcome.error().message);
  CHECK(outcome->status == 200);
  CHECK(outcome->exchange.sent == Sent::Answered);
  CHECK(body == "ok");
}
