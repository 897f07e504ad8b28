#include "uploading.hpp"

#include "tests/rounds.hpp"

#include <random>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Ranges = std::vector<std::string>;

std::string text_of(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * 7 % 26);
  return text;
}

}  // namespace

TEST_CASE("content is uploaded to a session in parts, or at once") {
  Uploading parts;
  parts.options.part_size = 4;
  parts.options.headers.add("X-Project", "9");
  parts.options.headers.add("X-Project", "10");
  std::string told;
  parts.options.on_session = [&](const std::string& url) { told = url; };
  const auto start = Request::post(kStart, "{}")
                         .set_header("Authorization", "Bearer secret")
                         .set_header("Content-Type", "application/json");
  const auto outcome = parts.run("0123456789", {retry()}, start);
  REQUIRE(outcome);
  CHECK(outcome->status == 201);
  CHECK(outcome->body == "stored");
  CHECK(parts.server.content == "0123456789");
  CHECK(parts.ranges() == Ranges{"bytes 0-3/10", "bytes 4-7/10", "bytes 8-9/10"});
  CHECK(told == kSession);
  CHECK(parts.talk.sent(0).body().bytes()->compare("{}") == 0);
  const auto put = parts.talk.sent(1);
  CHECK(put.method() == "PUT");
  CHECK(put.url() == kSession);
  CHECK(put.headers()["Authorization"] == "Bearer secret");
  CHECK(put.headers().get_all("X-Project") == std::vector<std::string_view>{"9", "10"});
  CHECK_FALSE(put.headers().contains("Content-Type"));

  Uploading whole;
  whole.options.part_size = 0;
  REQUIRE(whole.run("0123456789", {retry()}));
  CHECK(whole.ranges() == Ranges{"bytes 0-9/10"});

  Uploading empty;
  REQUIRE(empty.run("", {retry()}));
  CHECK(empty.ranges() == Ranges{"bytes */0"});
  CHECK(empty.server.complete);
}

TEST_CASE("a session gets the user name and the password of the start") {
  const auto start = Request::post("https://ann:secret@x/upload", "{}");
  Uploading upload;
  std::string told;
  upload.options.on_session = [&](const std::string& url) { told = url; };
  REQUIRE(upload.run("0123456789", {retry()}, start));
  CHECK(upload.talk.sent(1).url() == "https://ann:secret@x/upload?session=7");
  CHECK(told == kSession);

  Uploading resumed;
  resumed.options.session = told;
  REQUIRE(resumed.run("0123456789", {retry()}, start));
  CHECK(resumed.talk.sent(0).url() == "https://ann:secret@x/upload?session=7");
}

TEST_CASE("after a failure the server is asked, and what it has is not sent again") {
  struct Row {
    const char* what;
    std::vector<Fate> fates;
    Ranges ranges;
  };
  const Row rows[] = {
      {"the connection breaks", {lost_after(3)}, {"bytes 0-9/10", "bytes */10", "bytes 3-9/10"}},
      {"before a byte", {lost_after(0)}, {"bytes 0-9/10", "bytes */10", "bytes 0-9/10"}},
      {"the response is lost", {lost_after(10)}, {"bytes 0-9/10", "bytes */10"}},
      {"the server is busy", {busy(2)}, {"bytes 0-9/10", "bytes */10", "bytes 2-9/10"}},
      {"it cannot be asked at first",
       {lost_after(3), busy(), lost_after(0)},
       {"bytes 0-9/10", "bytes */10", "bytes */10", "bytes */10", "bytes 3-9/10"}},
      {"twice",
       {lost_after(3), kGood, lost_after(5)},
       {"bytes 0-9/10", "bytes */10", "bytes 3-9/10", "bytes */10", "bytes 8-9/10"}},
      {"it takes only a part", {{4, std::nullopt}}, {"bytes 0-9/10", "bytes 4-9/10"}},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.what));
    Uploading upload;
    upload.will(row.fates);
    const auto outcome = upload.run("0123456789", {retry(attempts(5))});
    REQUIRE(outcome);
    CHECK(upload.server.content == "0123456789");
    CHECK(upload.ranges() == row.ranges);
    CHECK(upload.server.mistakes == 0);
  }
}

TEST_CASE("a retry waits as the policy says, and is one attempt though it asks first") {
  Uploading upload;
  upload.will({busy(2)});
  auto policy = attempts(5);
  policy.backoff = Backoff::constant(7s);
  const auto outcome = upload.run("0123456789", {retry(policy)});
  REQUIRE(outcome);
  REQUIRE(outcome->history.attempts.size() == 2);
  CHECK(outcome->history.attempts[0].status == 503);
  CHECK(outcome->history.attempts[1].wire_sends == 2);
  const auto seen = upload.talk.network->requests();
  CHECK(seen[2].when - seen[1].when == 7s);
}

TEST_CASE("an upload that moves goes on when the attempts of a part are used up") {
  Uploading upload;
  upload.fate = [](const Request& request) {
    return request.body().bytes()->empty() ? kGood : lost_after(1);
  };
  const auto outcome = upload.run("0123456789", {retry(attempts(2))});
  REQUIRE(outcome);
  CHECK(upload.server.content == "0123456789");
  CHECK(upload.server.mistakes == 0);
}

TEST_CASE("an upload that stands still ends with the failure, and so does one that may not retry") {
  for (const bool asked : {true, false}) {
    CAPTURE(asked);
    Uploading upload;
    upload.fate = [&](const Request& request) {
      return asked && request.body().bytes()->empty() ? kGood : lost_after(0);
    };
    CHECK(failure_of(upload.run("0123456789", {retry(attempts(3))})).code == Errc::Receive);
    // Three attempts, each but the first with its question, and one question after them; or one
    // part, and then questions only, of two calls.
    CHECK(upload.ranges().size() == 6);
  }
  Uploading once;
  once.will({lost_after(3)});
  CHECK(failure_of(once.run("0123456789", {})).code == Errc::Receive);
  CHECK(once.ranges().size() == 1);

  Uploading gone;
  gone.will({kGood, {0, Outcome(Response(404))}});
  gone.options.part_size = 5;
  const auto outcome = gone.run("0123456789", {retry()});
  REQUIRE(outcome);
  CHECK(outcome->status == 404);
  CHECK(gone.ranges().size() == 2);
}

TEST_CASE("progress is told of the whole content, whatever breaks") {
  Uploading upload;
  upload.options.part_size = 6;
  upload.will({lost_after(2)});
  auto start = Request::post(kStart, "{}");
  std::vector<std::uint64_t> sent;
  start.edit_options().on_progress = [&](const Progress& now) {
    CHECK(now.to_send == 10);
    if (sent.empty() || sent.back() != now.sent) sent.push_back(now.sent);
  };
  REQUIRE(upload.run("0123456789", {retry(attempts(5))}, start));
  CHECK(sent == std::vector<std::uint64_t>{0, 6, 2, 6, 10});
}

TEST_CASE("what the server has at the end is the content byte for byte, whatever breaks") {
  int unfinished = 0;
  for (unsigned seed = 0; seed < static_cast<unsigned>(rounds(600)); ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t limit) { return random() % limit; };
    const auto content = text_of(std::vector<std::size_t>{0, 1, 30, 500}[below(4)]);
    const int most = std::vector<int>{1, 2, 100}[below(3)];
    Uploading upload;
    upload.options.part_size = std::vector<std::size_t>{0, 1, 7, 64, 500}[below(5)];
    int troubles = 60;
    upload.fate = [&](const Request& request) -> Fate {
      const auto some = below(request.body().bytes()->size() + 1);
      const auto what = below(9);
      if (what > 5 || --troubles < 0) return kGood;
      if (what == 0) return busy();
      if (what == 1) return busy(SIZE_MAX);
      if (what == 2) return lost_after(SIZE_MAX);
      if (what == 3) return {0, Outcome(error_of(Errc::Connect))};
      if (what == 4 && some > 0) return {some, std::nullopt};  // it has no room for more
      return lost_after(some);
    };
    const auto outcome = upload.run(content, {retry(attempts(most))});
    CHECK(upload.server.mistakes == 0);
    CHECK(content.starts_with(upload.server.content));
    if (outcome && outcome->is_2xx()) {
      CHECK(upload.server.complete);
      CHECK(upload.server.content == content);
    } else {
      CHECK(most < 100);  // it ended because its attempts were used up
      ++unfinished;
    }
  }
  CHECK(unfinished > rounds(10));
  CHECK(unfinished < rounds(300));
}
