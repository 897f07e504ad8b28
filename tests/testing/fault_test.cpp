#include <httpretry/body/sink.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <string>

using namespace httpretry;
using namespace raw;
using namespace std::chrono_literals;

namespace {

// What a client received from a server with one step.
struct Got {
  std::string bytes;
  End end;
};

Got play(const Step& step, const std::string& request = get()) {
  FaultServer server({step});
  RawClient client(server.port());
  client.send(request);
  auto bytes = client.read_to_end();
  return {std::move(bytes), client.end()};
}

Step faulty(Fault fault, std::string body = {}) {
  Step step(200, std::move(body));
  step.fault = fault;
  step.headers.add("Connection", "close");
  return step;
}

// The content of a gzip stream, and whether the stream is complete.
struct Unzipped {
  std::string text;
  bool whole;
};

Unzipped unzip(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string text(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int result = inflate(&stream, Z_SYNC_FLUSH);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return {text, result == Z_STREAM_END};
}

}  // namespace

TEST_CASE("reset sends only an RST, after the request was read") {
  FaultServer server({Fault::Reset});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");

  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Rst);
  REQUIRE(server.requests() == 1);
  CHECK(server.seen()[0].body == "abc");
}

TEST_CASE("close sends only a FIN, after the request was read") {
  FaultServer server({Fault::Close});
  RawClient client(server.port());
  client.send(get());

  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Fin);
  CHECK(server.requests() == 1);
}

TEST_CASE("reset_early counts the connection but no request, on a new or a reused connection") {
  FaultServer server({200, Fault::ResetEarly, Fault::ResetEarly, 200});

  RawClient kept(server.port());
  CHECK(status_of(kept.ask(get())) == 200);
  kept.send(get());
  CHECK(kept.read_to_end().empty());
  CHECK(kept.end() == End::Rst);

  RawClient fresh(server.port());
  fresh.send(get());
  CHECK(fresh.read_to_end().empty());
  CHECK(fresh.end() == End::Rst);

  CHECK(server.connections() == 2);
  CHECK(server.requests() == 1);
}

TEST_CASE("a connection without any bytes takes no step for reset_early") {
  FaultServer server({Fault::ResetEarly, 200});
  { const RawClient silent(server.port()); }
  RawClient first(server.port());
  first.send(get());
  CHECK(first.read_to_end().empty());
  CHECK(first.end() == End::Rst);
  RawClient second(server.port());
  CHECK(status_of(second.ask(get())) == 200);
}

TEST_CASE("a fault before reading happens after the head if only a path asks for it") {
  Scenario scenario({200});
  scenario.paths.emplace("/a", Script({Fault::ResetEarly}));
  FaultServer server(scenario);

  RawClient other(server.port());
  CHECK(status_of(other.ask(get("/b"))) == 200);
  RawClient client(server.port());
  client.send(get("/a"));
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Rst);
}

TEST_CASE("reset_during and truncate end in the middle of the body, with RST and with FIN") {
  for (const auto& [fault, end] :
       {std::pair{Fault::ResetDuring, End::Rst}, std::pair{Fault::Truncate, End::Fin}}) {
    const auto which = to_string(fault);
    CAPTURE(which);
    const auto got = play(Step(faulty(fault, "0123456789")));
    CHECK(got.bytes.find("\r\nContent-Length: 10\r\n") != std::string::npos);
    CHECK(body_of(got.bytes) == "01234");
    CHECK(got.end == end);

    const auto filled = play(Step(fault));
    CHECK(filled.bytes.find("\r\nContent-Length: 1024\r\n") != std::string::npos);
    CHECK(body_of(filled.bytes).size() == 512);
    CHECK(filled.end == end);
  }
}

TEST_CASE("a truncated chunked body ends inside its chunk") {
  auto step = faulty(Fault::Truncate, "0123456789");
  step.headers.add("Transfer-Encoding", "chunked");
  const auto got = play(step);
  CHECK(got.bytes.find("Content-Length") == std::string::npos);
  CHECK(body_of(got.bytes) == "a\r\n0123456");
  CHECK(got.end == End::Fin);
}

TEST_CASE("hang reads the request and sends nothing until the client disconnects") {
  FaultServer server({Fault::Hang, 200});
  RawClient client(server.port());
  client.send(get());
  REQUIRE(server.wait_for_requests(1, 10s));

  char byte = 0;
  const timeval brief{0, 50'000};
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief));
  CHECK(::recv(client.fd(), &byte, 1, 0) == -1);
  CHECK(errno == EAGAIN);

  ::shutdown(client.fd(), SHUT_WR);
  const timeval long_enough{10, 0};
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVTIMEO, &long_enough, sizeof(long_enough));
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Fin);
}

TEST_CASE("drip waits its interval before every byte of the body and sends all of them") {
  auto step = faulty(Fault::Drip, "abcdef");
  step.interval = 20ms;
  const auto start = std::chrono::steady_clock::now();
  const auto got = play(step);
  CHECK(std::chrono::steady_clock::now() - start >= 120ms);
  CHECK(body_of(got.bytes) == "abcdef");
  CHECK(got.end == End::Fin);
}

TEST_CASE("garbage is not HTTP, or exactly the step's body if it has one") {
  const auto noise = play(Step(Fault::Garbage));
  CHECK_FALSE(noise.bytes.empty());
  CHECK_FALSE(noise.bytes.starts_with("HTTP/"));
  CHECK(noise.end == End::Fin);

  CHECK(play(faulty(Fault::Garbage, "HTTP/1.1 twohundred\r\n\r\n")).bytes ==
        "HTTP/1.1 twohundred\r\n\r\n");
}

TEST_CASE("stale responds, and ends the connection only at the next request") {
  FaultServer server({Step(Fault::Stale), 201});
  RawClient kept(server.port());
  const auto answer = kept.ask(get("/first"));
  CHECK(status_of(answer) == 200);
  CHECK(answer.find("Connection") == std::string::npos);
  char byte = 0;
  CHECK(::recv(kept.fd(), &byte, 1, MSG_DONTWAIT) == -1);

  kept.send("POST /second HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  CHECK(kept.read_to_end().empty());
  CHECK(kept.end() == End::Fin);
  RawClient again(server.port());
  CHECK(status_of(again.ask(get())) == 201);

  const auto seen = server.seen();
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].step == 0);
  CHECK(seen[1].path == "/second");
  CHECK(seen[1].body == "abc");
  CHECK_FALSE(seen[1].step.has_value());
  CHECK(seen[2].step == 1);
}

TEST_CASE("huge sends exactly `size` bytes, in valid chunks") {
  auto step = faulty(Fault::Huge);
  step.size = 3'000'001;
  const auto got = play(step);
  auto left = body_of(got.bytes);
  std::size_t total = 0;
  for (std::size_t at = 0;;) {
    const auto size = std::stoul(left.substr(at, 16), nullptr, 16);
    at = left.find("\r\n", at) + 2 + size;
    REQUIRE(left.substr(at, 2) == "\r\n");
    at += 2;
    total += size;
    if (size == 0) {
      CHECK(at == left.size());
      break;
    }
  }
  CHECK(total == step.size);
  CHECK(got.end == End::Fin);
}

TEST_CASE("an endless response stops when the client disconnects") {
  for (const auto fault : {Fault::Huge, Fault::HugeHeaders, Fault::EndlessInterim, Fault::Drip}) {
    CAPTURE(to_string(fault));
    auto step = faulty(fault);
    step.size = std::uint64_t{1} << 60;
    step.interval = 1ms;
    FaultServer server({step});
    RawClient client(server.port());
    client.send(get());
    CHECK(client.read_until([](const std::string& text) { return text.size() > 100; }).size() >
          100);
    client.close();
  }
}

TEST_CASE("bad_chunk sends a valid chunk, then an invalid chunk size") {
  const auto got = play(faulty(Fault::BadChunk, "0123456789"));
  CHECK(got.bytes.find("Transfer-Encoding: chunked") != std::string::npos);
  CHECK(body_of(got.bytes) == "5\r\n01234\r\nno number\r\n");
  CHECK(got.end == End::Fin);
}

TEST_CASE("huge_headers sends at least `size` bytes of headers") {
  auto step = faulty(Fault::HugeHeaders, "ok");
  step.size = 300'000;
  const auto got = play(step);
  CHECK(status_of(got.bytes) == 200);
  const auto head = got.bytes.find("\r\n\r\n");
  CHECK(head >= step.size);
  CHECK(head < step.size + 4096);
  const auto line = got.bytes.find("X-Filler: ");
  CHECK(got.bytes.find("X-Filler: ", line + 1) - line == 1024);
  CHECK(body_of(got.bytes) == "ok");
}

TEST_CASE("endless_interim sends `size` bytes of 1xx responses, and no final one") {
  auto step = faulty(Fault::EndlessInterim);
  step.size = 100'000;
  const auto got = play(step);
  CHECK(got.bytes.size() >= step.size);
  CHECK(got.bytes.starts_with("HTTP/1.1 103 "));
  CHECK(got.bytes.find("HTTP/1.1 2") == std::string::npos);
  CHECK(got.end == End::Fin);
}

TEST_CASE("the gzip flag sends a complete gzip body with Content-Encoding") {
  Step step(200, std::string(10'000, 'a'));
  step.gzip = true;
  step.headers.add("Connection", "close");
  const auto got = play(step);
  CHECK(got.bytes.find("\r\nContent-Encoding: gzip\r\n") != std::string::npos);
  const auto unzipped = unzip(body_of(got.bytes));
  CHECK(unzipped.text == step.body);
  CHECK(unzipped.whole);
}

TEST_CASE("gzip_cut_short sends all of its Content-Length, but only part of the gzip stream") {
  FaultServer server({faulty(Fault::GzipCutShort, "hello, hello, hello")});
  RawClient client(server.port());
  const auto answer = client.ask(get());
  CHECK(answer.find("\r\nContent-Encoding: gzip\r\n") != std::string::npos);
  const auto content = body_of(answer);
  CHECK_FALSE(content.empty());
  CHECK(answer.find("\r\nContent-Length: " + std::to_string(content.size()) + "\r\n") !=
        std::string::npos);
  CHECK_FALSE(unzip(content).whole);
}

TEST_CASE("gzip_bomb sends a gzip body that decodes to exactly `size` bytes, and far fewer bytes") {
  constexpr std::uint64_t kSize = 50'000'001;
  Step step(Fault::GzipBomb);
  step.size = kSize;
  FaultServer server({step});
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  CHECK(client.read_to_end().size() < kSize / 500);

  std::uint64_t decoded = 0;
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  request.edit_options().sink = pass_to([&](std::string_view bytes) {
    decoded += bytes.size();
    return true;
  });
  CHECK(Client::bare().send(request));
  CHECK(decoded == kSize);
}

TEST_CASE("tls_stall and tls_reset work without TLS as with TLS") {
  const auto reset = play(Step(Fault::TlsReset));
  CHECK(reset.bytes.empty());
  CHECK(reset.end == End::Rst);

  FaultServer server({Fault::TlsStall});
  RawClient client(server.port());
  client.send(get());
  ::shutdown(client.fd(), SHUT_WR);
  CHECK(client.read_to_end().empty());
  CHECK(server.requests() == 0);
}
