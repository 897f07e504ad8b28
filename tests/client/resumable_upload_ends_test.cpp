// How a resumable upload begins and ends, other than by a success.
#include "uploading.hpp"

#include <httpretry/body/sink.hpp>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("a session of an earlier run goes on, also where all was uploaded") {
  for (const std::size_t had : {0U, 6U, 10U}) {
    CAPTURE(had);
    Uploading upload;
    upload.options.session = kSession;
    upload.server.content = std::string("0123456789").substr(0, had);
    const auto outcome = upload.run("0123456789", {retry()});
    REQUIRE(outcome);
    CHECK(outcome->status == 201);
    CHECK(upload.server.content == "0123456789");
    CHECK(upload.talk.sent(0).url() == kSession);
    CHECK(upload.ranges().size() == (had == 10 ? 1 : 2));
    CHECK(upload.ranges()[0] == "bytes */10");
  }
}

TEST_CASE("a response that the protocol does not know ends the upload with what is wrong") {
  struct Row {
    std::string says;
    Response comes;
    std::size_t requests = 1;  // to the session
  };
  const auto with_range = [](const char* range) {
    Response response(308);
    response.headers.add("Range", range);
    return response;
  };
  const Row rows[] = {
      {R"(the server reports the Range "bytes=5-9"; expected bytes=0-N, with N less than 10)",
       with_range("bytes=5-9")},
      {R"(the Range "bytes=0-x")", with_range("bytes=0-x")},
      {R"(the Range "bytes=0-18446744073709551615")", with_range("bytes=0-18446744073709551615")},
      {R"(the Range "bytes=0-10")", with_range("bytes=0-10")},
      {"ended the upload with the status 200 before it had all 10 bytes", Response(200)},
      {"the server stored nothing from the last requests; it has 0 of 10 bytes", Response(308), 6},
  };
  for (const auto& row : rows) {
    CAPTURE(row.says);
    Uploading upload;
    upload.options.part_size = 5;
    upload.fate = [&](const Request&) { return Fate{0, Outcome(row.comes)}; };
    const auto error = failure_of(upload.run("0123456789", {retry()}));
    CHECK(error.code == Errc::Protocol);
    CHECK(error.permanent);
    CHECK(error.message.find(row.says) != std::string::npos);
    CHECK(upload.ranges().size() == row.requests);
  }
}

TEST_CASE("a session begins with a Location at the same origin") {
  struct Row {
    Response comes;
    const char* says;
  };
  const Row rows[] = {
      {Response(200), "has no Location"},
      {new_session("https://y/s"), "the session is at another origin, https://y, than https://x"},
      {new_session("http://x/s"), "another origin, http://x, than https://x"},
      {new_session("https://"), "the Location of the session is"}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.says));
    Conversation talk;
    talk.network->say(row.comes);
    auto client = talk.client({retry()});
    const auto error = failure_of(
        upload_resumable(client, Request::post(kStart, "{}"), UploadContent::bytes("0123456789")));
    CHECK(error.code == Errc::Protocol);
    CHECK(error.message.find(row.says) != std::string::npos);
    CHECK(talk.sends() == 1);
  }
  Conversation talk;
  talk.network->say(new_session("https://y/s")).say(Response(200));
  auto client = talk.client({retry()});
  ResumableUploadOptions options;
  options.session_at_other_origin = true;
  CHECK(upload_resumable(client, Request::post(kStart, "{}"), UploadContent::bytes("0"), options));
  CHECK(talk.sent(1).url() == "https://y/s");

  Conversation refused;
  refused.network->say(Response(503)).say(Response(403));
  auto other = refused.client({retry()});
  const auto outcome =
      upload_resumable(other, Request::post(kStart, "{}"), UploadContent::bytes("0"));
  REQUIRE(outcome);
  CHECK(outcome->status == 403);
  CHECK(refused.sends() == 2);  // beginning a session is repeated, though it is a POST
}

TEST_CASE("the origin of the start counts for the session, also after a redirect to another one") {
  for (const auto& start : {kStart, std::string("upload")}) {
    CAPTURE(start);
    Conversation talk;
    talk.network->say(redirect_to(307, "https://y/upload")).say(new_session("s"));
    ClientOptions options;
    options.middlewares = {redirect(), retry()};
    options.scheduler = talk.clock;
    options.transport = talk.network;
    options.base_url = "https://x/";
    Client client(options);
    const auto error = failure_of(
        upload_resumable(client, Request::post(start, Body()), UploadContent::bytes("0")));
    CHECK(error.code == Errc::Protocol);
    CHECK(error.message.find("the session is at another origin, https://y, than https://x") !=
          std::string::npos);
    CHECK(talk.sends() == 2);
  }
}

TEST_CASE("content that cannot be uploaded is said before anything is sent") {
  Conversation talk;
  auto client = talk.client({retry()});
  const auto start = Request::post(kStart, "{}");
  const auto nowhere = failure_of(upload_resumable(client, start, UploadContent::file("/nowhere")));
  CHECK(nowhere.code == Errc::InvalidRequest);
  CHECK(nowhere.message.find("/nowhere") != std::string::npos);
  const UploadContent endless([](std::uint64_t) {
    return Body::generated([] { return [](std::span<char>) { return std::size_t{0}; }; });
  });
  CHECK(
      failure_of(upload_resumable(client, start, endless)).message.find("must have a known size") !=
      std::string::npos);
  auto with_sink = start;
  with_sink.edit_options().sink = pass_to([](std::string_view) { return true; });
  CHECK(failure_of(upload_resumable(client, with_sink, UploadContent::bytes("0")))
            .message.find("must not have a sink") != std::string::npos);
  CHECK(talk.sends() == 0);
}

TEST_CASE("the limits of time and a stop are for all requests of an upload together") {
  Uploading late;
  late.options.part_size = 1;
  late.takes = 1s;
  late.options.call.timeout = 10s;
  late.fate = [&](const Request& request) {
    return request.body().bytes()->empty() ? kGood : busy(1);
  };
  auto policy = attempts(5);
  policy.backoff = Backoff::constant(3s);
  const auto ended = late.run("0123456789", {retry(policy)});
  CHECK(timed_out(ended));
  // Parts at 1 s, at 6 s after a wait and a question, and at 8 s, since no wait fits any more.
  CHECK(late.server.content == "012");
  CHECK(late.talk.clock->now() - late.talk.network->requests()[0].when == 10s);

  Uploading stopped;
  std::stop_source stop;
  stopped.options.call.stop = stop.get_token();
  stopped.options.part_size = 5;
  stopped.fate = [&](const Request&) {
    stop.request_stop();
    return kGood;
  };
  CHECK(failure_of(stopped.run("0123456789", {retry()})).code == Errc::Canceled);
  CHECK(stopped.server.content == "01234");
}

TEST_CASE("an upload whose content throws ends with an error") {
  Conversation talk;
  auto client = talk.client({});
  const auto outcome = upload_resumable(
      client, Request::post("http://x/", Body()),
      UploadContent([](std::uint64_t) -> Body { throw std::runtime_error("boom"); }));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidRequest);
  CHECK(outcome.error().message == "opening the body threw: boom");
  CHECK(talk.sends() == 0);
}
