// Handles, connections and headers are used again. What goes over the wire must not show it.
#include "wire.hpp"

#include <barrier>
#include <random>
#include <thread>

using namespace httpretry;

namespace {

class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed) : random_(seed) {}

  Request next(const FaultServer& server) {
    static const std::vector<std::string> methods{"GET",   "HEAD",    "POST",   "PUT",
                                                  "PATCH", "OPTIONS", "DELETE", "PROPFIND"};
    Request request(methods[pick(methods.size())], server.url("/" + std::to_string(pick(5))));
    if (chance()) request.add_query("q", std::string(pick(20), '&'));
    for (auto count = pick(4); count > 0; --count) {
      request.add_header("X-" + std::to_string(pick(9)), std::string(pick(30), 'v'));
    }
    if (pick(4) == 0) request.set_header("Accept", "text/" + std::to_string(pick(9)));
    if (pick(6) == 0) request.set_header("Content-Type", "a/b");
    if (request.method() != "HEAD") set_body(request);
    auto& options = request.edit_options();
    options.compressed = pick(5) == 0;
    options.fresh_connection = pick(9) == 0;
    if (pick(6) == 0) options.credentials.emplace(Credentials::Scheme::Basic, "u", "p");
    if (pick(6) == 0) options.http_version = HttpVersion::Http1;
    if (pick(6) == 0) options.on_connection = [](const ConnectionInfo& /*facts*/) {};
    if (pick(6) == 0) options.upload_rate = 1U << 30U;
    if (pick(6) == 0) options.expect_continue_from = pick(3000);
    return request;
  }

 private:
  void set_body(Request& request) {
    switch (pick(4)) {
      case 0: request.set_body(std::string(pick(3000), 'b')); break;
      case 1: request.set_body(""); break;
      case 2: request.set_body(generated(pick(3000), chance())); break;
      default: break;
    }
  }
  static Body generated(std::size_t size, bool sized) {
    auto left = std::make_shared<std::size_t>(size);
    return Body::once(
        [left](std::span<char> into) {
          const auto count = std::min(into.size(), *left);
          std::fill_n(into.begin(), count, 'g');
          *left -= count;
          return count;
        },
        sized ? std::optional<std::uint64_t>(size) : std::nullopt);
  }
  std::size_t pick(std::size_t below) { return random_() % below; }
  bool chance() { return pick(2) == 0; }

  std::mt19937_64 random_;
};

// All that tells one request from another.
std::string as_seen(const SeenRequest& seen) {
  std::string text = seen.method + " " + seen.target + " " + seen.http_version + "\n";
  for (const auto field : seen.headers) {
    text.append(field.name).append(": ").append(field.value).append("\n");
  }
  return text + "\n" + seen.body;
}

}  // namespace

TEST_CASE("a random sequence of requests looks the same on pooled handles as on fresh ones") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  FaultServer server;
  RandomRequests pooled(seed);
  RandomRequests fresh(seed);
  auto client = Client::bare();
  for (int i = 0; i < 300; ++i) {
    const auto one = client.send(pooled.next(server));
    REQUIRE(one);
    const auto other = Client::bare().send(fresh.next(server));
    REQUIRE(other);
    CHECK(one->status == other->status);
    CHECK(one->body == other->body);
  }
  const auto seen = server.seen();
  REQUIRE(seen.size() == 600);
  for (std::size_t i = 0; i < seen.size(); i += 2) {
    CHECK(as_seen(seen[i]) == as_seen(seen[i + 1]));
  }
  CHECK(server.connections() < 300 + 150);  // the one client did use its connections again
}

TEST_CASE("who asks hears of the connection of each exchange") {
  FaultServer server(Scenario{{503}, {200}});
  std::vector<ConnectionInfo> heard;
  auto request = Request::get(server.url("/path"));
  request.edit_options().on_connection = [&](const ConnectionInfo& facts) {
    heard.push_back(facts);
  };
  Client client({retry(hasty())});
  REQUIRE(client.send(request));
  REQUIRE(heard.size() == 2);
  CHECK(heard[0].remote_ip == "127.0.0.1");
  CHECK(heard[0].remote_port == server.port());
  CHECK(heard[0].local_ip == "127.0.0.1");
  CHECK(heard[0].local_port != 0);
  CHECK(heard[0].new_connections == 1);
  CHECK(heard[1].new_connections == 0);
  CHECK(heard[1].local_port == heard[0].local_port);
  CHECK(heard[0].request_bytes > 20);
  CHECK(heard[0].certificates.empty());
}

TEST_CASE("a function that throws when it is told of the connection ends its call, and no other") {
  FaultServer server;
  auto request = Request::get(server.url());
  request.edit_options().on_connection = [](const ConnectionInfo& /*facts*/) {
    throw std::runtime_error("no room");
  };
  Client client({retry(hasty())});
  const auto outcome = client.send(request);
  REQUIRE_FALSE(outcome);
  const auto& error = outcome.error();
  CHECK(error.code == Errc::Internal);
  CHECK(error.message.ends_with("RequestOptions::on_connection threw: no room"));
  CHECK(error.status == 200);
  CHECK(error.exchange.sent == Sent::Answered);
  CHECK(error.history.attempts.size() == 1);
  CHECK(client.get(server.url()));
}

TEST_CASE("the User-Agent is the library's, the client's or the request's") {
  FaultServer server;
  ClientOptions options;
  CHECK(Client(options).get(server.url()));
  options.connection.user_agent = "mine/1";
  CHECK(Client(options).get(server.url()));
  CHECK(Client(options).get(server.url(), {{"User-Agent", "yours/2"}}));
  const auto seen = server.seen();
  CHECK(seen[0].headers["User-Agent"] == default_user_agent());
  CHECK(default_user_agent().starts_with("httpretry/"));
  CHECK(seen[1].headers["User-Agent"] == "mine/1");
  CHECK(seen[2].headers.get_all("User-Agent") == std::vector<std::string_view>{"yours/2"});
  options.connection.user_agent = "a\nb";
  CHECK_THROWS_AS(Client{options}, std::invalid_argument);
}

TEST_CASE("no header goes out that nobody asked for") {
  FaultServer server;
  ClientOptions options;
  options.connection.user_agent.clear();
  Client client(options);
  REQUIRE(client.get(server.url("/a")));
  REQUIRE(client.post(server.url("/b"), "data"));
  REQUIRE(client.post(server.url("/c"), Body()));
  const auto seen = server.seen();
  const auto host = "127.0.0.1:" + std::to_string(server.port());
  CHECK(seen[0].headers == Headers{{"Host", host}});
  CHECK(seen[1].headers == Headers{{"Host", host}, {"Content-Length", "4"}});
  CHECK(seen[2].headers == Headers{{"Host", host}, {"Content-Length", "0"}});
}

TEST_CASE("what is set reaches the server to the letter") {
  FaultServer server;
  auto request = Request("PATCH", server.url("/%2F?a=%20"))
                     .set_header("X-Empty", "")
                     .set_header("x-CaSe", "\xc3\xa4")
                     .add_header("X-Two", "1")
                     .add_header("X-Two", "2")
                     .set_body(std::string("\0\r\n\xff", 4));
  REQUIRE(Client::bare().send(request));
  const auto seen = server.seen()[0];
  CHECK(seen.method == "PATCH");
  CHECK(seen.target == "/%2F?a=%20");
  CHECK(seen.headers.get("X-Empty") == "");
  CHECK(seen.headers.get("x-CaSe") == "\xc3\xa4");
  CHECK(seen.headers.get_all("X-Two") == std::vector<std::string_view>{"1", "2"});
  CHECK(seen.body == std::string("\0\r\n\xff", 4));
}

TEST_CASE("headers that frame a request cannot be set by hand") {
  FaultServer server;
  for (const char* name : {"Content-Length", "Transfer-Encoding"}) {
    const auto outcome =
        Client::bare().send(Request::post(server.url(), "d").set_header(name, "1"));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("a file goes out whole on every attempt, and an unreadable one not at all") {
  const std::string path = "body_file_test.tmp";
  std::string content(200'000, 'f');
  content += "end";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(std::fwrite(content.data(), 1, content.size(), file) == content.size());
  std::fclose(file);
  FaultServer server(Scenario{{503}, {200}});
  Client client({retry(hasty())});

  CHECK(client.put(server.url(), Body::file(path))->status == 200);
  std::remove(path.c_str());
  const auto gone = client.put(server.url(), Body::file(path));

  REQUIRE(server.seen().size() == 2);
  CHECK(server.seen()[0].body == content);
  CHECK(server.seen()[1].body == content);
  CHECK(server.seen()[1].headers.get("Content-Length") == "200003");
  CHECK(gone.error().code == Errc::InvalidRequest);
  CHECK(gone.error().message.find("No such file") != std::string::npos);
  CHECK(gone.error().history.attempts.size() == 1);
}

TEST_CASE("a body that fails while it is read ends the call with what it said") {
  FaultServer server;
  const auto failing = Body::once(
      [](std::span<char>) -> std::size_t { throw std::runtime_error("the disk is on fire"); });
  const auto outcome = Client({retry(hasty())}).put(server.url(), failing);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidRequest);
  CHECK(outcome.error().message.find("the disk is on fire") != std::string::npos);
}

TEST_CASE("a response without a body, and one with a megabyte, arrive whole") {
  FaultServer server(Scenario{{204}, {200, std::string(1 << 20, 'm')}, {200}});
  auto client = Client::bare();
  CHECK(client.get(server.url())->body.empty());
  CHECK(client.get(server.url())->body == std::string(1 << 20, 'm'));
  CHECK(client.head(server.url())->status == 200);
  CHECK(client.get(server.url())->status == 200);
}

TEST_CASE("as many connections as there are cores are kept for later calls") {
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  FaultServer server;
  auto client = Client::bare();
  for (int times = 0; times < 2; ++times) {
    std::barrier all_run(cores);  // so that no call uses the connection of another one
    const auto send = [&] {
      bool waited = false;
      const auto body = Body::once(
          [&](std::span<char> /*into*/) {
            if (!std::exchange(waited, true)) all_run.arrive_and_wait();
            return std::size_t{0};
          },
          std::nullopt);
      CHECK(client.send(Request::put(server.url("/"), body)));
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < cores; ++i) threads.emplace_back(send);
    for (auto& thread : threads) thread.join();
  }
  CHECK(server.requests() == 2 * cores);
  CHECK(server.connections() == cores);
}
