// A FaultServer over HTTP/2.
#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>
#include <lib/extras/testing/hpack.hpp>
#include <lib/extras/testing/http2_frames.hpp>
#include <tests/libcurl_version.hpp>
#include <tests/testing/raw_client.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

using namespace httpretry;
using namespace httpretry::faults;
using namespace raw;
using namespace std::chrono_literals;

namespace {

constexpr auto kFloods = {Fault::Http2EmptyData, Fault::Http2GoawayFlood, Fault::Http2ResetFlood};

// A server that speaks HTTP/2, because of a step that only /fault takes.
Scenario with_http2(std::vector<Step> steps, Fault fault = Fault::Http2NoEndStream) {
  Scenario scenario(std::move(steps));
  scenario.paths.emplace("/fault", Script({fault}));
  return scenario;
}

FaultServerOptions with_tls() {
  FaultServerOptions options;
  options.tls = Tls::Good;
  return options;
}

Request request(const FaultServer& server, const char* method = "GET",
                const std::string& path = "/") {
  Request made(method, server.url(path));
  if (server.ca_file().empty()) {
    made.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
  }
  return made;
}

ClientOptions trusting(const FaultServer& server) {
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = server.ca_file();
  return options;
}

Outcome play(const Step& step, const char* method = "GET") {
  const FaultServer server(with_http2({step}));
  return Client::bare().send(request(server, method));
}

// A client that sends frames by hand.
class FrameClient {
 public:
  explicit FrameClient(const FaultServer& server, std::string_view settings = {})
      : raw_(server.port()) {
    raw_.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(FrameType::Settings, 0, 0, settings));
  }
  void get(std::uint32_t stream, const std::string& path = "/") {
    const auto block = hpack_literal(":method", "GET") + hpack_literal(":path", path);
    raw_.send(header_frames(stream, block, kEndStream));
  }
  void send(const std::string& bytes) { raw_.send(bytes); }
  // The next frame that is not about settings; an empty one at the end of the connection.
  Frame next() {
    for (;;) {
      fill(9);
      if (received_.size() < 9) return {};
      const std::size_t size = number_at('\0' + received_.substr(0, 3));
      fill(9 + size);
      Frame read{static_cast<FrameType>(received_[3]), static_cast<unsigned char>(received_[4]),
                 number_at(std::string_view(received_).substr(5)), received_.substr(9, size)};
      received_.erase(0, 9 + size);
      if (read.type != FrameType::Settings) return read;
    }
  }
  RawClient& raw() { return raw_; }

 private:
  void fill(std::size_t size) {
    received_ += raw_.read_until(
        [&](const std::string& text) { return received_.size() + text.size() >= size; });
  }
  RawClient raw_;
  std::string received_;
};

void check_head(const Frame& frame, std::uint32_t stream) {
  CHECK(frame.type == FrameType::Headers);
  CHECK(frame.stream == stream);
}

}  // namespace

TEST_CASE("requests and responses are the same over HTTP/2, with and without TLS") {
  for (const auto& options : {FaultServerOptions(), with_tls()}) {
    CAPTURE(static_cast<int>(options.tls));
    const Step step(201, Headers{{"X-Long", std::string(40'000, 'x')}, {"X-Two", "2"}}, "hello");
    FaultServer server(with_http2({step, 503}), options);
    Client client(trusting(server));
    auto sent = request(server, "POST", "/a?b=c");
    sent.add_header("X-Mine", "mine").set_body(std::string(100'000, 'b'));

    const auto outcome = client.send(sent);
    REQUIRE(outcome);
    CHECK(outcome->http_version == "2");
    CHECK(outcome->status == 201);
    CHECK(outcome->headers.get("X-Long") == std::string(40'000, 'x'));
    CHECK(outcome->headers.get("X-Two") == "2");
    CHECK(outcome->body == "hello");
    CHECK(client.send(request(server))->status == 503);

    // Without TLS, libcurl 7.88 cannot send a second request on a connection.
    const bool one_connection = options.tls == Tls::Good || !libcurl_before(0x080000);
    CHECK(server.connections() == (one_connection ? 1 : 2));
    const auto seen = server.seen();
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].method == "POST");
    CHECK(seen[0].target == "/a?b=c");
    CHECK(seen[0].path == "/a");
    CHECK(seen[0].http_version == "2");
    CHECK(seen[0].headers.get("x-mine") == "mine");
    CHECK(seen[0].headers.get("host") == server.url("").substr(server.url("").rfind('/') + 1));
    CHECK(seen[0].body == std::string(100'000, 'b'));
    CHECK(seen[0].body_complete);
    CHECK(seen[0].step == 0);
    CHECK(seen[1].step == 1);
  }
}

TEST_CASE("a server whose scenario has no fault of HTTP/2 does not speak it") {
  FaultServer server(Scenario{200}, with_tls());
  CHECK(Client(trusting(server)).send(request(server))->http_version == "1.1");

  FaultServer plain(Scenario{200});
  RawClient client(plain.port());
  CHECK(status_of(client.ask("PRI * HTTP/2.0\r\n\r\n")) == 505);
}

TEST_CASE("a client that does not offer HTTP/2 gets HTTP/1.1") {
  FaultServer server(with_http2({200}), with_tls());
  auto sent = request(server);
  sent.edit_options().http_version = HttpVersion::Http1;
  CHECK(Client(trusting(server)).send(sent)->http_version == "1.1");

  FaultServer plain(with_http2({200}));
  RawClient client(plain.port());
  CHECK(status_of(client.ask(get())) == 200);
}

TEST_CASE("a response over HTTP/2 that has no body ends with its head") {
  CHECK(play(Step(200, "text"), "HEAD")->headers.get("Content-Length") == "4");
  CHECK(play(Step(204, "text"))->body.empty());
  CHECK(play(Step(200))->headers.get("Content-Length") == "0");

  Step step(204, "text");
  step.fault = Fault::Truncate;
  const FaultServer server(with_http2({step}));
  FrameClient client(server);
  client.get(1);
  const auto head = client.next();
  check_head(head, 1);
  CHECK(head.payload.find("content-length") == std::string::npos);
  CHECK(client.next().payload.empty());
}

TEST_CASE("interim responses and gzip work over HTTP/2") {
  Step step(200, "text");
  step.gzip = true;
  step.interims = {Interim(103, Headers{{"Link", "</a>"}})};
  const FaultServer server(with_http2({step}));
  auto sent = request(server);
  sent.edit_options().compressed = true;
  CHECK(Client::bare().send(sent)->body == "text");
}

TEST_CASE("faults that need no framing happen over HTTP/2 too") {
  for (const auto fault : {Fault::Reset, Fault::ResetEarly, Fault::Close, Fault::TlsReset}) {
    const auto what = to_string(fault);
    CAPTURE(what);
    const auto outcome = play(fault);
    REQUIRE_FALSE(outcome);
    // libcurl may notice it when it sends its settings.
    CHECK((outcome.error().code == Errc::Receive || outcome.error().code == Errc::Send));
    CHECK(outcome.error().exchange.sent == Sent::Maybe);
  }
  for (const auto fault : {Fault::ResetDuring, Fault::Truncate, Fault::Http2NoEndStream}) {
    const auto what = to_string(fault);
    CAPTURE(what);
    const FaultServer server(with_http2({fault}));
    FrameClient client(server);
    client.get(1);
    check_head(client.next(), 1);
    CHECK(client.next().payload == std::string(512, 'x'));
    if (fault == Fault::Http2NoEndStream) {
      const auto broken = client.next();
      CHECK(broken.flags == kPadded);
      CHECK(static_cast<std::size_t>(broken.payload.front()) >= broken.payload.size());
    } else {
      CHECK(client.next().payload.empty());
      CHECK(client.raw().end() == (fault == Fault::Truncate ? End::Fin : End::Rst));
    }
  }
}

TEST_CASE("a request over HTTP/2 without a response holds up no other one") {
  const FaultServer server(with_http2({Fault::Hang, {200, "hello"}}));
  FrameClient client(server);
  client.get(1);
  client.get(3);
  check_head(client.next(), 3);
  CHECK(client.next().payload == "hello");
}

TEST_CASE("a fault of the other version of HTTP gets a 505 that says so") {
  const auto http2 = play(Fault::Huge);
  CHECK(http2->status == 505);
  CHECK(http2->body == "this fault exists only in HTTP/1.1\n");

  FaultServer server({Fault::Http2EmptyData});
  const auto http1 = Client::bare().get(server.url());
  CHECK(http1->status == 505);
  CHECK(http1->body == "this fault exists only in HTTP/2\n");
}

TEST_CASE("a body is sent as the windows of the client allow") {
  const FaultServer server(with_http2({{200, "0123456789"}}));
  // The initial window, between two settings that are ignored.
  FrameClient client(server, std::string("\0\3", 2) + to_bytes(1) + std::string("\0\4", 2) +
                                 to_bytes(4) + std::string("\1\4", 2) + to_bytes(9));
  client.get(1);
  check_head(client.next(), 1);
  CHECK(client.next().payload == "0123");
  client.send(frame(FrameType::WindowUpdate, 0, 1, to_bytes(3)));
  CHECK(client.next().payload == "456");
  client.send(frame(FrameType::Settings, 0, 0, std::string("\0\4", 2) + to_bytes(100)));
  const auto last = client.next();
  CHECK(last.payload == "789");
  CHECK(last.flags == kEndStream);
}

TEST_CASE("the window of the connection limits a body too, and a frame has at most 16 KiB") {
  const FaultServer server(with_http2({{200, std::string(65'536, 'x')}}));
  FrameClient client(server, std::string("\0\4", 2) + to_bytes(100'000));
  client.get(1);
  check_head(client.next(), 1);
  for (const std::size_t size : {16'384U, 16'384U, 16'384U, 16'383U}) {
    const auto piece = client.next();
    CHECK(piece.payload.size() == size);
    CHECK(piece.flags == 0);
  }
  client.send(frame(FrameType::WindowUpdate, 0, 0, to_bytes(1)));
  const auto last = client.next();
  CHECK(last.payload == "x");
  CHECK(last.flags == kEndStream);
}

TEST_CASE("frames that need no answer are ignored, and a PING is answered") {
  const FaultServer server(with_http2({200}));
  FrameClient client(server);
  client.send(frame(FrameType::Goaway, 0, 0, to_bytes(0) + to_bytes(0)) +
              frame(FrameType::Reset, 0, 1, to_bytes(8)) +
              frame(static_cast<FrameType>(2), 0, 1, "prior") +  // PRIORITY
              frame(FrameType::Ping, kAck, 0, "response") +
              frame(FrameType::Ping, 0, 0, "question"));
  const auto answer = client.next();
  CHECK(answer.type == FrameType::Ping);
  CHECK(answer.flags == kAck);
  CHECK(answer.payload == "question");
  client.get(1);
  check_head(client.next(), 1);
}

TEST_CASE("a connection over HTTP/2 ends with GOAWAY if the step or the server closes it") {
  for (const bool by_step : {true, false}) {
    Step step(200, "hello");
    if (by_step) step.headers.add("Connection", "close");
    step.headers.add("Keep-Alive", "timeout=1");
    step.headers.add("Transfer-Encoding", "chunked");
    FaultServerOptions options;
    options.keep_alive = by_step;
    const FaultServer server(with_http2({step}), options);
    FrameClient client(server);
    client.get(1);
    const auto head = client.next();
    check_head(head, 1);
    for (const auto* name : {"connection", "keep-alive", "transfer-encoding"}) {
      CHECK(head.payload.find(name) == std::string::npos);
    }
    CHECK(client.next().payload == "hello");
    const auto goaway = client.next();
    CHECK(goaway.type == FrameType::Goaway);
    CHECK(goaway.payload == to_bytes(1) + to_bytes(0));
    CHECK(client.raw().read_to_end().empty());
    CHECK(client.raw().end() == End::Fin);
  }
}

TEST_CASE("a request over HTTP/2 that is malformed gets a 400, and a CONNECT a 405") {
  const FaultServer server(with_http2({200}));
  FrameClient client(server);
  client.send(header_frames(1, hpack_literal(":method", "GET"), kEndStream));
  CHECK(client.next().payload.find("400") != std::string::npos);
  client.send(header_frames(
      3, hpack_literal(":method", "CONNECT") + hpack_literal(":authority", "a:1"), kEndStream));
  CHECK(client.next().payload.find("405") != std::string::npos);
  CHECK(server.requests() == 0);
}

TEST_CASE("headers may come with padding, a priority, in several frames, and as trailers") {
  const FaultServer server(with_http2({200}));
  FrameClient client(server);
  const auto block = hpack_literal(":method", "PUT") + hpack_literal(":path", "/a");
  client.send(frame(FrameType::Headers, kPadded | kPriority, 1,
                    "\x03" + std::string(5, 'p') + block.substr(0, 9) + "pad") +
              frame(FrameType::Continuation, kEndHeaders, 1, block.substr(9)) +
              frame(FrameType::Data, kPadded, 1,
                    "\x03"
                    "bodypad") +
              header_frames(1, hpack_literal("trailer", "t"), kEndStream));
  Frame answer = client.next();
  while (answer.type == FrameType::WindowUpdate) answer = client.next();
  check_head(answer, 1);
  CHECK(server.seen().at(0).path == "/a");
  CHECK(server.seen().at(0).body == "body");
}

TEST_CASE("a client may send as much again as it has sent, with its padding") {
  const FaultServer server(with_http2({200}));
  FrameClient client(server);
  const auto block = hpack_literal(":method", "PUT") + hpack_literal(":path", "/");
  client.send(header_frames(1, block, 0) + frame(FrameType::Data, kPadded, 1,
                                                 "\x02"
                                                 "abcpp"));
  for (const std::uint32_t stream : {0U, 1U}) {
    const auto update = client.next();
    CHECK(update.type == FrameType::WindowUpdate);
    CHECK(update.stream == stream);
    CHECK(update.payload == to_bytes(6));
  }
  client.send(frame(FrameType::Data, kEndStream, 1));  // without bytes, so without an update
  check_head(client.next(), 1);
  CHECK(server.seen().at(0).body == "abc");
}

TEST_CASE("padding and priority may fill a frame, but not more") {
  const auto content = [](unsigned flags, std::string payload) -> std::string {
    Frame padded{FrameType::Headers, flags, 1, std::move(payload)};
    return remove_padding(padded) ? "<" + padded.payload + ">" : "malformed";
  };
  CHECK(content(0, "abc") == "<abc>");
  CHECK(content(kPadded, std::string(1, '\0')) == "<>");
  CHECK(content(kPadded, "") == "malformed");
  CHECK(content(kPadded, "\x02pp") == "<>");
  CHECK(content(kPadded, "\x02xpp") == "<x>");
  CHECK(content(kPadded, "\x03pp") == "malformed");
  CHECK(content(kPriority, "12345") == "<>");
  CHECK(content(kPriority, "12345x") == "<x>");
  CHECK(content(kPriority, "1234") == "malformed");
  CHECK(content(kPadded | kPriority,
                "\x01"
                "12345xp") == "<x>");
}

TEST_CASE("a block of headers is cut into frames of at most 16 KiB") {
  CHECK(header_frames(1, "", kEndStream) == frame(FrameType::Headers, kEndHeaders | kEndStream, 1));
  const std::string full(kMaxPayload, 'h');
  CHECK(header_frames(1, full, 0) == frame(FrameType::Headers, kEndHeaders, 1, full));
  CHECK(header_frames(1, full + full + "x", kEndStream) ==
        frame(FrameType::Headers, kEndStream, 1, full) +
            frame(FrameType::Continuation, 0, 1, full) +
            frame(FrameType::Continuation, kEndHeaders, 1, "x"));
  CHECK(to_bytes(0x01020304) == "\1\2\3\4");
  CHECK(number_at("\1\2\3\4x") == 0x01020304);
  CHECK(number_at("\xff\xff\xff\xff") == 0x7fffffff);
  CHECK(number_at("\5") == 5);
}

TEST_CASE("what is not HTTP/2 ends the connection") {
  const FaultServer server(with_http2({200}));
  const auto block = hpack_literal(":method", "GET") + hpack_literal(":path", "/");
  const std::string full(kMaxPayload, 'x');
  for (const auto& bytes :
       {header_frames(1, "\x80", kEndStream),                            // no field has the index 0
        frame(FrameType::Headers, kPadded, 1, "\x09x"),                  // too much padding
        frame(FrameType::Headers, 0, 1) + frame(FrameType::Data, 0, 1),  // no CONTINUATION
        frame(FrameType::Headers, kEndStream, 1, block) +
            frame(FrameType::Continuation, kEndHeaders, 3),  // of another stream
        frame(FrameType::Continuation, kEndHeaders, 1) +
            header_frames(1, block, kEndStream),  // no HEADERS before it
        frame(FrameType::Data, 0, 1, std::string(kMaxPayload + 1, 'x')),
        frame(FrameType::Headers, 0, 1, full) + frame(FrameType::Continuation, 0, 1, full) +
            frame(FrameType::Continuation, 0, 1, full) +
            frame(FrameType::Continuation, 0, 1, full) +
            frame(FrameType::Continuation, 0, 1, "x")}) {  // more than 64 KiB of headers
    FrameClient client(server);
    client.send(bytes);
    CHECK(client.next().payload.empty());
    CHECK(client.raw().end() == End::Fin);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("a flood is `size` bytes of one frame, then FIN") {
  for (const auto fault : kFloods) {
    const auto what = to_string(fault);
    CAPTURE(what);
    Step step(fault);
    step.size = 100'000;
    const FaultServer server({step});
    FrameClient client(server);
    client.get(1);
    if (fault == Fault::Http2EmptyData) check_head(client.next(), 1);
    const auto expected = fault == Fault::Http2EmptyData ? frame(FrameType::Data, 0, 1)
                          : fault == Fault::Http2GoawayFlood
                              ? frame(FrameType::Goaway, 0, 0, to_bytes(1) + to_bytes(1))
                              : frame(FrameType::Reset, 0, 1, to_bytes(1));
    std::size_t bytes = 0;
    std::size_t others = 0;
    for (auto next = client.next(); client.raw().end() == End::Open; next = client.next()) {
      const auto same = frame(next.type, next.flags, next.stream, next.payload);
      bytes += same.size();
      if (same != expected) ++others;
    }
    CHECK(client.raw().end() == End::Fin);
    CHECK(bytes >= step.size);
    CHECK(bytes < 2 * step.size);
    CHECK(others == 0);
  }
}

TEST_CASE("a flood ends when the client disconnects, and when the server stops") {
  for (const auto fault : kFloods) {
    for (const bool reads : {true, false}) {
      Step step(fault);
      step.size = std::uint64_t{1} << 60;
      FaultServer server({step});
      FrameClient gone(server);
      gone.get(1);
      gone.next();
      gone.raw().close();

      FrameClient client(server);
      client.get(1);
      client.next();
      std::thread reader([&] {
        if (reads) client.raw().read_until([](std::string& text) { return text.clear(), false; });
      });
      server.stop();  // joins the threads of both connections
      reader.join();
      CHECK(server.connections() == 2);
    }
  }
}
