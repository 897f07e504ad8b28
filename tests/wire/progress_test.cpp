// RequestOptions::on_progress: what a program is told of the bodies on their way.
#include "files.hpp"
#include "http2_server.hpp"
#include "send_functions.hpp"
#include "wire.hpp"

#include <httpretry/body/sink.hpp>

using namespace httpretry;

namespace {

// The reports of one request, by exchange.
class Reports {
 public:
  std::function<void(const Progress&)> take() {
    return [this](const Progress& now) {
      if (now.sent == 0 && now.received == 0 && now.to_receive == std::nullopt) {
        exchanges.emplace_back();
      }
      REQUIRE_FALSE(exchanges.empty());
      exchanges.back().push_back(now);
    };
  }
  // Nothing goes backwards within an exchange, no report is given twice, and none is above the
  // total.
  void check() const {
    for (const auto& reports : exchanges) {
      for (std::size_t i = 0; i < reports.size(); ++i) {
        const auto& now = reports[i];
        CHECK(now.sent <= now.to_send.value_or(UINT64_MAX));
        CHECK(now.received <= now.to_receive.value_or(UINT64_MAX));
        if (i == 0) continue;
        CHECK(now.sent >= reports[i - 1].sent);
        CHECK(now.received >= reports[i - 1].received);
        CHECK(now != reports[i - 1]);
      }
    }
  }
  std::vector<std::vector<Progress>> exchanges;
};

Body in_pieces(std::size_t size, std::optional<std::uint64_t> told) {
  const auto start = [size]() -> Body::Generator {
    return [left = size](std::span<char> into) mutable {
      const auto count = std::min(into.size(), left);
      std::fill_n(into.begin(), count, 'l');
      left -= count;
      return count;
    };
  };
  return Body::generated(start, told);
}

}  // namespace

TEST_CASE("progress is told of bodies up and down, and begins anew with each attempt") {
  constexpr std::size_t kUp = 300'000;
  constexpr std::size_t kDown = 200'000;
  struct Row {
    const char* what;
    Body body;
    std::optional<std::uint64_t> to_send;
  };
  const Row rows[] = {{"in memory", std::string(kUp, 'u'), kUp},
                      {"small, in memory", "up", 2},
                      {"in pieces", in_pieces(kUp, kUp), kUp},
                      {"in pieces, of unknown size", in_pieces(kUp, std::nullopt), std::nullopt},
                      {"none", Body(), 0}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.what));
    FaultServer server(Scenario{{503, "busy"}, {200, std::string(kDown, 'd')}});
    Reports reports;
    auto request = Request::put(server.url(), row.body);
    request.edit_options().on_progress = reports.take();
    REQUIRE(Client({retry(hasty())}).send(request));

    reports.check();
    REQUIRE(reports.exchanges.size() == 2);
    const auto& busy = reports.exchanges[0].back();
    CHECK(busy.received == 4);
    for (const auto& exchange : reports.exchanges) CHECK(exchange.front().to_send == row.to_send);
    const auto& last = reports.exchanges[1].back();
    CHECK(last.sent == server.seen()[1].body_size);
    CHECK(last.received == kDown);
    CHECK(last.to_receive == kDown);
    CHECK(last.offset == 0);
    if (row.body.present() && last.sent == kUp) CHECK(reports.exchanges[1].size() >= 3);
  }
}

TEST_CASE_TEMPLATE("progress is told on the thread that drives the call", SendFunction,
                   ALL_SEND_FUNCTIONS) {
  FaultServer server(Scenario{{200, "down"}});
  Reports reports;
  std::vector<std::thread::id> threads;
  auto request = Request::post(server.url(), "up");
  const auto take = reports.take();
  request.edit_options().on_progress = [&](const Progress& now) {
    threads.push_back(std::this_thread::get_id());
    take(now);
  };
  std::optional<std::thread::id> driver;
  ClientOptions options;
  options.blocking = SendFunction::kBlocking;
  options.middlewares = {
      on_outcome("thread", [&](auto&, auto&, auto&) { driver = std::this_thread::get_id(); })};
  Client client(options);
  REQUIRE(SendFunction::send(client, request, CallOptions()));
  reports.check();
  REQUIRE(reports.exchanges.size() == 1);
  CHECK(reports.exchanges[0].back().sent == 2);
  CHECK(reports.exchanges[0].back().received == 4);
  for (const auto& thread : threads) CHECK(thread == *driver);
}

TEST_CASE("after a request with progress, the next one on its handle has none") {
  FaultServer server(Scenario{{200, "down"}});
  auto client = Client::bare();
  int calls = 0;
  auto request = Request::get(server.url());
  request.edit_options().on_progress = [&](const Progress&) { ++calls; };
  REQUIRE(client.send(request));
  const int told = calls;
  CHECK(told >= 2);
  REQUIRE(client.get(server.url()));
  CHECK(calls == told);
}

TEST_CASE(
    "a body that is decoded counts as the server sent it, one without a length has no total") {
  Step small(200, std::string(100'000, 'a'));
  small.gzip = true;
  FaultServer server(Scenario{small, {200, {{"Transfer-Encoding", "chunked"}}, "in a chunk"}});
  auto client = Client::bare();
  Reports reports;
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  request.edit_options().on_progress = reports.take();
  const auto decoded = client.send(request);
  REQUIRE(decoded);
  CHECK(decoded->body.size() == 100'000);
  const auto last = reports.exchanges.at(0).back();
  CHECK(last.received < 1000);
  CHECK(last.received == last.to_receive);

  REQUIRE(client.send(request));
  CHECK(reports.exchanges.at(1).back().received == 10);
  CHECK_FALSE(reports.exchanges.at(1).back().to_receive);
}

TEST_CASE("a download that goes on tells where the rest begins") {
  const TemporaryDirectory directory;
  const std::string whole = std::string(50'000, 'a') + std::string(50'000, 'b');
  Step first(200, {{"ETag", "\"1\""}}, whole);
  first.fault = Fault::Truncate;
  const Step rest(206, {{"ETag", "\"1\""}, {"Content-Range", "bytes 50000-99999/100000"}},
                  whole.substr(50'000));
  FaultServer server(Scenario{first, rest});
  Reports reports;
  auto request = Request::get(server.url());
  request.edit_options().sink = save_to(directory.file("out"));
  request.edit_options().on_progress = reports.take();
  REQUIRE(Client({retry(hasty())}).send(request));
  CHECK(read_file(directory.file("out")) == whole);
  REQUIRE(reports.exchanges.size() == 2);
  CHECK(reports.exchanges[0].back().offset == 0);
  CHECK(reports.exchanges[0].back().received == 50'000);
  const auto last = reports.exchanges[1].back();
  CHECK(last.offset == 50'000);
  CHECK(last.received == 50'000);
  CHECK(last.to_receive == 50'000);
}

TEST_CASE("a function that throws when it is told of progress ends its call, and no other") {
  FaultServer server(Scenario{{200, "down"}});
  for (const bool at_once : {true, false}) {
    CAPTURE(at_once);
    auto request = Request::put(server.url(), std::string(100'000, 'u'));
    request.edit_options().on_progress = [&](const Progress& now) {
      if (at_once || now.received > 0) throw std::runtime_error("no room");
    };
    auto client = Client::bare();
    const auto outcome = client.send(request);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Internal);
    CHECK(outcome.error().permanent);
    CHECK(outcome.error().message.ends_with("RequestOptions::on_progress threw: no room"));
    CHECK(client.get(server.url()));
  }
}

TEST_CASE("progress is told of a body over HTTP/2") {
  const Nghttpd server;
  ClientOptions options;
  options.connection.ca_file = server.ca_file();
  Reports reports;
  auto request = Request::get(server.url("/large"));
  request.edit_options().on_progress = reports.take();
  REQUIRE(Client(options).send(request));
  reports.check();
  const auto& seen = reports.exchanges.at(0);
  CHECK(seen.size() >= 2);
  CHECK(seen.back().received == Nghttpd::kLarge);
  CHECK(seen.back().to_receive == Nghttpd::kLarge);
}
