#include "files.hpp"
#include "wire.hpp"

#include <httpretry/curl/cookies.hpp>

#include <sys/stat.h>

#include <thread>

using namespace httpretry;

namespace {

Step sets(const std::string& cookie) { return Step(200, Headers{{"Set-Cookie", cookie}}, ""); }

ClientOptions with_jar(std::shared_ptr<CookieJar> jar) {
  ClientOptions options;
  options.connection.cookies = std::move(jar);
  options.middlewares = {redirect()};
  return options;
}

std::string cookies_seen(const FaultServer& server, std::size_t request) {
  return std::string(server.seen().at(request).headers.get("Cookie").value_or("none"));
}

}  // namespace

TEST_CASE("nothing is kept without a jar, and with one it comes back") {
  FaultServer server(Scenario{sets("a=1; Path=/"), {200}});
  auto plain = Client::bare();
  REQUIRE(plain.get(server.url()));
  REQUIRE(plain.get(server.url()));
  CHECK(cookies_seen(server, 1) == "none");

  FaultServer other(
      Scenario{sets("a=1; Path=/"), sets("b=2; Path=/deep"), sets("a=; Max-Age=0; Path=/"), {200}});
  const auto jar = std::make_shared<CookieJar>();
  Client client(with_jar(jar));
  for (const char* path : {"/", "/", "/deep/x", "/deep/x"}) REQUIRE(client.get(other.url(path)));
  CHECK(cookies_seen(other, 0) == "none");
  CHECK(cookies_seen(other, 1) == "a=1");
  CHECK(cookies_seen(other, 2) == "b=2; a=1");
  CHECK(cookies_seen(other, 3) == "b=2");
  CHECK(jar->size() == 1);
}

TEST_CASE("cookies are neither sent to nor taken from where a redirect leads, unless wanted") {
  for (const bool wanted : {false, true}) {
    FaultServer stranger(Scenario{sets("evil=1; Path=/")});
    FaultServer server(
        Scenario{sets("session=secret; Path=/"), {302, {{"Location", stranger.url()}}, ""}, {200}});
    auto options = with_jar(std::make_shared<CookieJar>());
    options.connection.cookies_of_other_origins = wanted;
    Client client(options);
    REQUIRE(client.get(server.url()));
    REQUIRE(client.get(server.url()));
    REQUIRE(client.get(server.url()));
    // The stranger has the same address and another port, which cookies do not tell apart.
    CHECK(cookies_seen(stranger, 0) == (wanted ? "session=secret" : "none"));
    CHECK(cookies_seen(server, 2) == (wanted ? "session=secret; evil=1" : "session=secret"));
  }
}

TEST_CASE("a server sets no cookies for others, or for a public suffix") {
  FaultServer server(Scenario{Step(200,
                                   Headers{{"Set-Cookie", "a=1; Domain=other.example"},
                                           {"Set-Cookie", "b=1; Domain=co.uk"},
                                           {"Set-Cookie", "c=1; Domain=uk"},
                                           {"Set-Cookie", "d=1; Domain=shop.co.uk"},
                                           {"Set-Cookie", "__Host-e=1; Path=/"},
                                           {"Set-Cookie", "f=1; Secure"}},
                                   "")});
  const auto jar = std::make_shared<CookieJar>();
  auto options = with_jar(jar);
  options.connection.connect_to = {"::127.0.0.1:" + std::to_string(server.port())};
  Client client(options);
  REQUIRE(client.get("http://www.shop.co.uk/"));
  CHECK(jar->size() == 1);
  REQUIRE(client.get("http://pay.shop.co.uk/"));
  CHECK(cookies_seen(server, 1) == "d=1");
  REQUIRE(client.get("http://other.co.uk/"));
  CHECK(cookies_seen(server, 2) == "none");
}

TEST_CASE("a cookie of the request's own goes into the same field") {
  FaultServer server(Scenario{sets("a=1"), {200}});
  Client client(with_jar(std::make_shared<CookieJar>()));
  REQUIRE(client.get(server.url()));
  REQUIRE(client.send(Request::get(server.url()).set_header("Cookie", "own=2")));
  const auto seen = server.seen()[1];
  CHECK(seen.headers.get_all("Cookie") == std::vector<std::string_view>{"a=1; own=2"});
}

TEST_CASE("a jar survives in a file that only its owner can read") {
  const TemporaryDirectory directory;
  const auto path = directory.file("cookies");
  FaultServer server(Scenario{
      Step(200, Headers{{"Set-Cookie", "a=1; Max-Age=1000; HttpOnly"}, {"Set-Cookie", "b=2"}}, ""),
      {200}});
  write_file(path, "old");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  const auto jar = std::make_shared<CookieJar>();
  REQUIRE(Client(with_jar(jar)).get(server.url()));

  REQUIRE(jar->save(path));

  struct ::stat about {};
  REQUIRE(::stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777U) == 0600);
  CHECK(directory.count() == 1);
  const auto text = read_file(path);
  CHECK(text.starts_with("# Netscape HTTP Cookie File\n"));
  CHECK(text.find("#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t") != std::string::npos);
  CHECK(text.find("\n127.0.0.1\tFALSE\t/\tFALSE\t0\tb\t2\n") != std::string::npos);

  const auto read = std::make_shared<CookieJar>();
  REQUIRE(read->load(path));
  CHECK(read->to_text() == text);
  REQUIRE(Client(with_jar(read)).get(server.url()));
  const auto sent = cookies_seen(server, 1);
  CHECK((sent == "a=1; b=2" || sent == "b=2; a=1"));
}

TEST_CASE("a file that is no cookie file is refused, by the line, and adds nothing") {
  const char* good = "example.com\tFALSE\t/\tFALSE\t0\tname\tvalue\n";
  struct Row {
    const char* text;
    const char* problem;
  };
  for (const auto& row :
       {Row{"a b c\n", "expected 7 fields with tabs between, found 1"},
        Row{"Set-Cookie: a=b\n",
            "expected the format that curl -c writes, found a Set-Cookie header"},
        Row{"example.com\tyes\t/\tFALSE\t0\tn\tv", "the second field must be TRUE or FALSE"},
        Row{"example.com\tTRUE\tx\tFALSE\t0\tn\tv", "the third field must be a path"},
        Row{"example.com\tTRUE\t/\tFALSE\tsoon\tn\tv", "the fifth field must be a time in seconds"},
        Row{"example.com\tTRUE\t/\tFALSE\t-1\tn\tv", "the fifth field must be a time in seconds"},
        Row{"example.com\tTRUE\t/\tno\t0\tn\tv", "the fourth field must be TRUE or FALSE"},
        Row{"example.com\tTRUE\t/\tFALSE\t0\t\tv", "the sixth field must be the name of a cookie"},
        Row{"example.com\tTRUE\t/\tFALSE\t0", "expected 7 fields with tabs between, found 5"},
        Row{"example.com\tTRUE\t/\tFALSE\t0\tn\tv\t",
            "expected 7 fields with tabs between, found 8"},
        Row{".\tTRUE\t/\tFALSE\t0\tn\tv", "the first field must name a domain"}}) {
    CookieJar jar;
    const auto added = jar.add(std::string("# comment\n\n") + good + row.text, "cookies.txt");
    REQUIRE_FALSE(added);
    CHECK(added.error().message.starts_with(std::string("cookies.txt:4: ") + row.problem));
    CHECK(jar.size() == 0);
  }
  CookieJar jar;
  const auto nul = jar.add("example.com\tTRUE\t/\tFALSE\t0\tn\tv" + std::string(1, '\0'), "x");
  REQUIRE_FALSE(nul);
  CHECK(nul.error().message == "x:1: a NUL byte is not allowed");
  const auto missing = jar.load("/nowhere/cookies");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message ==
        "cannot read cookie file /nowhere/cookies: No such file or directory");
  CHECK(jar.add(std::string(good) + "empty.example\tTRUE\t/\tTRUE\t0\tname\t\r\n", "x"));
  CHECK(jar.to_text() ==
        "# Netscape HTTP Cookie File\n"
        "empty.example\tTRUE\t/\tTRUE\t0\tname\t\n" +
            std::string(good));
}

TEST_CASE("a line adds, replaces or removes the cookie of its domain, name and path") {
  CookieJar jar;
  const auto lines_after = [&](const std::string& line) {
    REQUIRE(jar.add(line, "x"));
    const auto text = jar.to_text();
    return text.substr(text.find('\n') + 1);
  };
  const std::string session = "a.example\tFALSE\t/\tFALSE\t0\tn\n";  // without a value
  CHECK(lines_after(session) == session);
  const std::string hidden = "#HttpOnly_.A.Example\tTRUE\t/\tTRUE\t0\tn\tv\n";
  CHECK(lines_after(hidden) == hidden);
  const std::string deeper = "a.example\tFALSE\t/deeper\tFALSE\t0\tn\tv\n";
  CHECK(lines_after(deeper) == hidden + deeper);
  const std::string deleted = "a.example\tFALSE\t/\tFALSE\t1\tn\tv\n";
  CHECK(lines_after(deleted) == deeper);
  const std::string lasting = "a.example\tFALSE\t/\tFALSE\t99999999999\tn\tv\n";
  CHECK(lines_after("# comment\n \t\r\n" + lasting) == lasting + deeper);
  jar.clear();
  CHECK(jar.size() == 0);
}

TEST_CASE("a server cannot fill the memory with cookies") {
  CookieJar jar;
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "one.example\tFALSE\t/\tFALSE\t0\tn" + std::to_string(i) + "\tv\n";
  }
  REQUIRE(jar.add(text, "x"));
  CHECK(jar.size() == 180);
  CHECK(jar.to_text().find("\tn820\t") != std::string::npos);  // the last 180
  CHECK(jar.to_text().find("\tn819\t") == std::string::npos);
  text.clear();
  for (int i = 0; i < 5000; ++i) {
    text += "host" + std::to_string(i) + ".example\tFALSE\t/\tFALSE\t0\tn\tv\n";
  }
  REQUIRE(jar.add(text, "x"));
  CHECK(jar.size() == 3000);
  CHECK(jar.to_text().find("host2000.") != std::string::npos);
  CHECK(jar.to_text().find("host1999.") == std::string::npos);
}

TEST_CASE("one jar serves many threads, and no cookie gets lost") {
  const auto jar = std::make_shared<CookieJar>();
  std::vector<std::unique_ptr<FaultServer>> servers;
  for (int i = 0; i < 4; ++i) {
    servers.push_back(
        std::make_unique<FaultServer>(Scenario{sets("c" + std::to_string(i) + "=1; Path=/")}));
  }
  std::vector<std::thread> threads;
  for (const auto& which : servers) {
    threads.emplace_back([&] {
      Client client(with_jar(jar));
      for (int i = 0; i < 20; ++i) {
        const auto outcome = client.get(which->url());
        CHECK(outcome.has_value());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(jar->size() == 4);
}

TEST_CASE("the cookies of an address in brackets, and of a name in a Host field, come back") {
  FaultServerOptions six;
  six.address = "::1";
  FaultServer server(Scenario{sets("a=1; Path=/"), {200}}, six);
  Client client(with_jar(std::make_shared<CookieJar>()));
  REQUIRE(client.get(server.url()));
  REQUIRE(client.get(server.url()));
  CHECK(cookies_seen(server, 1) == "a=1");

  FaultServer named(Scenario{sets("b=2; Path=/"), {200}});
  Client other(with_jar(std::make_shared<CookieJar>()));
  for (int i = 0; i < 2; ++i) {
    REQUIRE(other.send(Request::get(named.url()).set_header("Host", "shop.test:8080")));
  }
  CHECK(cookies_seen(named, 1) == "b=2");
}

TEST_CASE("a directory is no file of cookies") {
  CookieJar jar;
  const auto loaded = jar.load("/tmp");
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == Errc::InvalidRequest);
  CHECK(loaded.error().message == "cannot read cookie file /tmp: Is a directory");
}
