// The rules of matching, one row a rule: which of the patterns wins.
#include "endpoint_patterns.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace httpretry;
using endpoint_test::pattern;
using endpoint_test::url;

namespace {

constexpr int kNobody = -1;

struct EndpointRow {
  std::vector<const char*> patterns;  // see endpoint_patterns.hpp
  const char* request;                // "METHOD URL"
  int winner;
};

void check_row(const EndpointRow& row) {
  std::vector<EndpointPattern> patterns;
  for (const auto* text : row.patterns) {
    CAPTURE(text);
    patterns.push_back(pattern(text));
    for (const auto& problem : problems_of(patterns.back())) FAIL_CHECK(problem.message);
  }
  CAPTURE(row.request);
  const std::string_view request(row.request);
  const auto space = request.find(' ');
  const auto target = url(request.substr(space + 1));
  const EndpointIndex index(patterns);

  const auto found = index.find(request.substr(0, space), target);

  CHECK((found ? static_cast<int>(*found) : kNobody) == row.winner);
  const auto all = index.matches(request.substr(0, space), target);
  REQUIRE(all.empty() == !found.has_value());
  if (found) CHECK(all.front().pattern == *found);
  // Whatever the order in the file.
  const EndpointIndex reversed({patterns.rbegin(), patterns.rend()});
  const auto again = reversed.find(request.substr(0, space), target);
  CHECK((again ? static_cast<int>(patterns.size() - 1 - *again) : kNobody) == row.winner);
}

}  // namespace

TEST_CASE("hosts match as they are looked up") {
  const EndpointRow rows[] = {
      {{"host=a.example.com"}, "GET http://A.Example.COM/", 0},
      {{"host=A.EXAMPLE.com"}, "GET http://a.example.com/", 0},
      {{"host=a.example.com"}, "GET http://a.example.com./", 0},
      {{"host=a.example.com."}, "GET http://a.example.com/", 0},
      {{"host=a.example.com"}, "GET http://user:pass@a.example.com/", 0},
      {{"host=a.example.com"}, "GET http://evil.com/a.example.com", kNobody},
      {{"host=a.example.com"}, "GET http://a.example.com@evil.com/", kNobody},
      {{"host=a.example.com"}, "GET http://ba.example.com/", kNobody},
      {{"host=a.example.com"}, "GET http://b.a.example.com/", kNobody},
      {{"host=a.example.com"}, "GET http://a%2Eexample.com/", 0},
      {{"host=*.example.com"}, "GET http://a.example.com/", 0},
      {{"host=*.example.com"}, "GET http://c.b.a.example.com/", 0},
      {{"host=*.example.com"}, "GET http://example.com/", kNobody},
      {{"host=*.example.com"}, "GET http://.example.com/", kNobody},
      {{"host=*.example.com"}, "GET http://anexample.com/", kNobody},
      {{"host=*.EXAMPLE.com"}, "GET http://x.example.com/", 0},
      {{"host=*.com"}, "GET http://a.com/", 0},
      {{"host=b.*.d path=/**/y"}, "GET http://b.x.d/y", 0},
      {{"host=b.*.d path=/**/y"}, "GET http://q..b.x.d/y", kNobody},
      {{"host=*"}, "GET http://[::1]/", 0},
      {{"host=localhost"}, "GET http://LOCALHOST/", 0},
      {{"host=my_host"}, "GET http://my_host/", 0},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("an address matches in each of its spellings") {
  const EndpointRow rows[] = {
      {{"host=[::1]"}, "GET http://[0:0::1]/", 0},
      {{"host=[0:0:0:0:0:0:0:1]"}, "GET http://[::1]:8080/", 0},
      {{"host=[2001:DB8::A]"}, "GET http://[2001:db8:0::a]/", 0},
      {{"host=[::1]"}, "GET http://[::2]/", kNobody},
      {{"host=127.0.0.1"}, "GET http://0x7f.1/", 0},
      {{"host=127.0.0.1"}, "GET http://2130706433/", 0},
      {{"host=0x7f.1"}, "GET http://127.0.0.1/", 0},
      {{"host=0x7f.9"}, "GET http://127.0.0.9/", 0},
      {{"host=127.0.0.1"}, "GET http://127.0.0.1./", 0},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("an international name matches its punycode") {
  const EndpointRow rows[] = {
      {{"host=b\xC3\xBC"
        "cher.example"},
       "GET http://xn--bcher-kva.example/",
       0},
      {{"host=B\xC3\x9C"
        "CHER.Example"},
       "GET http://XN--bcher-KVA.example/",
       0},
      {{"host=*.b\xC3\xBC"
        "cher.example"},
       "GET http://shop.xn--bcher-kva.example/",
       0},
      {{"host=stra\xC3\x9F"
        "e.de"},
       "GET http://xn--strae-oqa.de/",
       0},
      {{"host=\xE4\xBE\x8B\xE3\x81\x88\xE3\x80\x82jp"}, "GET http://xn--r8jz45g.jp/", 0},
      {{"host=xn--BCHER-kva.example"}, "GET http://xn--bcher-kva.example/", 0},
      {{"host=a\xEF\xBC\x8Ex.example"}, "GET http://a.x.example/", 0},
      {{"host=a\xEF\xBD\xA1x.example"}, "GET http://a.x.example/", 0},
      {{"host=\xD0\x9F\xD0\xA0\xD0\x98\xD0\x9C\xD0\x95\xD0\xA0.com"},
       "GET http://xn--e1afmkfd.com/",
       0},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("paths match by segments") {
  const EndpointRow rows[] = {
      {{"path=/a"}, "GET http://h/a", 0},
      {{"path=/a"}, "GET http://h/a?b=/c#/d", 0},
      {{"path=/a"}, "GET http://h/a/", kNobody},
      {{"path=/a/"}, "GET http://h/a/", 0},
      {{"path=/a"}, "GET http://h/A", kNobody},
      {{"path=/a"}, "GET http://h/ab", kNobody},
      {{"path=/a/*"}, "GET http://h/a/b", 0},
      {{"path=/a/{id}"}, "GET http://h/a/b", 0},
      {{"path=/a/*"}, "GET http://h/a/", 0},
      {{"path=/a/*"}, "GET http://h/a", kNobody},
      {{"path=/a/*"}, "GET http://h/a/b/c", kNobody},
      {{"path=/a/*/c"}, "GET http://h/a//c", 0},
      {{"path=/a/c"}, "GET http://h/a//c", kNobody},
      {{"path=/a//c"}, "GET http://h/a//c", 0},
      {{"path=/a/**"}, "GET http://h/a", 0},
      {{"path=/a/**"}, "GET http://h/a/", 0},
      {{"path=/a/**"}, "GET http://h/a/b/c/", 0},
      {{"path=/a/**"}, "GET http://h/ab", kNobody},
      {{"path=/**"}, "GET http://h", 0},
      {{"path=/"}, "GET http://h", 0},
      {{"path=/"}, "GET http://h//", kNobody},
      {{"path=/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/**"}, "GET http://h/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f", 0},
      {{"path=/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/*"},
       "GET http://h/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h",
       kNobody},
      {{"path=/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/*"},
       "GET http://h/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g",
       0},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("no spelling of a path gets past its pattern") {
  const EndpointRow rows[] = {
      {{"path=/a/b"}, "GET http://h/%61/%62", 0},
      {{"path=/%61/%7Eb"}, "GET http://h/a/~b", 0},
      {{"path=/a/\xC3\xA4"}, "GET http://h/a/%c3%A4", 0},
      {{"path=/a/\xC3\xA4"}, "GET http://h/a/\xC3\xA4", 0},
      {{"path=/a/b:c@d"}, "GET http://h/a/b%3ac%40d", 0},
      {{"path=/a/%2A"}, "GET http://h/a/*", 0},
      {{"path=/a/%2A"}, "GET http://h/a/b", kNobody},
      {{"path=/a/%7Bid%7D"}, "GET http://h/a/{id}", 0},
      {{"path=/a/b"}, "GET http://h/a%2Fb", kNobody},
      {{"path=/a%2fb"}, "GET http://h/a%2Fb", 0},
      {{"path=/a%2fb"}, "GET http://h/a/b", kNobody},
      {{"path=/*"}, "GET http://h/a%2Fb", 0},
      {{"path=/a"}, "GET http://h/%2561", kNobody},
      {{"path=/%2561"}, "GET http://h/%2561", 0},
      {{"path=/%2561"}, "GET http://h/a", kNobody},
      {{"path=/%2561"}, "GET http://h/%61", kNobody},
      {{"path=/%25zz"}, "GET http://h/%zz", 0},
      {{"path=/%25"}, "GET http://h/%", 0},
      {{"path=/a/b"}, "GET http://h/a/x/../b", 0},
      {{"path=/a/b"}, "GET http://h/a/x/%2e%2E/b", 0},
      {{"path=/a/b"}, "GET http://h/a/%2e/b", 0},
      {{"path=/a/b"}, "GET http://h/%2e%2e/.%2e/a/b", 0},
      {{"path=/a/"}, "GET http://h/a/b/%2e%2e", 0},
      {{"path=/a/"}, "GET http://h/a/%2e", 0},
      {{"path=/admin/**"}, "GET http://h/public/%2e%2e/admin/x", 0},
      {{"path=/public/**"}, "GET http://h/public/%2e%2e/admin/x", kNobody},
      {{"path=/a/..%2fb"}, "GET http://h/a/..%2Fb", 0},
      {{"path=/a/...", "path=/a"}, "GET http://h/a/...", 0},
      {{"path=/a/..."}, "GET http://h/a/", kNobody},
      {{"path=/x/../a/./b"}, "GET http://h/a/b", 0},
      {{"path=/x/%2E%2E/a/%2e/b"}, "GET http://h/a/b", 0},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("ports, schemes and methods match as given or in general") {
  const EndpointRow rows[] = {
      {{"port=443"}, "GET https://h/", 0},
      {{"port=80"}, "GET http://h/", 0},
      {{"port=80"}, "GET http://h:080/", 0},
      {{"port=80"}, "GET https://h/", kNobody},
      {{"port=8443"}, "GET https://h:8443/", 0},
      {{"scheme=https"}, "GET HTTPS://h/", 0},
      {{"scheme=https"}, "GET http://h:443/", kNobody},
      {{"methods=GET,PUT"}, "PUT http://h/", 0},
      {{"methods=GET,PUT"}, "POST http://h/", kNobody},
      {{"methods=GET"}, "get http://h/", kNobody},
      {{"methods=get"}, "get http://h/", 0},
      {{"methods=GET"}, "GETS http://h/", kNobody},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("the most specific pattern wins, host before port before path before methods") {
  const EndpointRow rows[] = {
      {{"host=*", "host=*.c", "host=*.b.c", "host=a.b.c"}, "GET http://a.b.c/", 3},
      {{"host=*", "host=*.c", "host=*.b.c", "host=a.b.c"}, "GET http://x.b.c/", 2},
      {{"host=*", "host=*.c", "host=*.b.c", "host=a.b.c"}, "GET http://x.c/", 1},
      {{"host=*.c port=80 path=/a methods=GET scheme=http", "host=b.c"}, "GET http://b.c/a", 1},
      {{"path=/a/b/c methods=GET scheme=http", "port=80"}, "GET http://h/a/b/c", 1},
      {{"path=/a/*", "path=/a/**", "path=/*/b", "path=/**"}, "GET http://h/a/b", 0},
      {{"path=/a/*", "path=/a/b/**", "path=/a/**"}, "GET http://h/a/b", 1},
      {{"path=/a/*/c", "path=/a/b/*"}, "GET http://h/a/b/c", 1},
      {{"path=/a/*/c", "path=/a/b/d"}, "GET http://h/a/b/c", 0},
      {{"path=/*/b/c/d", "path=/a/**"}, "GET http://h/a/b/c/d", 1},
      {{"path=/a", "path=/a/**"}, "GET http://h/a", 1},
      {{"path=/a/**", "path=/*"}, "GET http://h/a", 0},
      {{"path=/a/**", "path=/a/*/**"}, "GET http://h/a/b", 1},
      {{"path=/a/**", "path=/a/*/**"}, "GET http://h/a", 0},
      {{"path=/a/** methods=GET scheme=http", "path=/a/b"}, "GET http://h/a/b", 1},
      {{"scheme=http path=/a", "methods=GET path=/a"}, "GET http://h/a", 1},
      {{"path=/a", "scheme=http path=/a"}, "GET http://h/a", 1},
      {{"path=/a methods=GET", "path=/a methods=GET scheme=http"}, "GET http://h/a", 1},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("a more specific pattern that does not match in full hides none that does") {
  const EndpointRow rows[] = {
      {{"host=a.b path=/x", "host=*.b path=/y", "path=/z"}, "GET http://a.b/y", 1},
      {{"host=a.b path=/x", "host=*.b path=/y", "path=/z"}, "GET http://a.b/z", 2},
      {{"host=a.b port=80 methods=PUT", "host=a.b"}, "GET http://a.b/", 1},
      {{"path=/a/b/c methods=PUT", "path=/a/*/c methods=POST", "path=/a/** methods=GET"},
       "GET http://h/a/b/c",
       2},
      {{"path=/a/b scheme=https", "path=/a/b methods=PUT", "path=/*/b"}, "GET http://h/a/b", 2},
      {{"path=/a methods=GET scheme=https", "path=/a scheme=http"}, "GET http://h/a", 1},
      {{"host=*.b.c path=/x", "host=*.c"}, "GET http://a.b.c/y", 1},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("all that match are listed, the winner first, each with why it lost") {
  const EndpointIndex index(
      {pattern("host=*"), pattern("host=*.c"), pattern("host=*.b.c"), pattern("host=a.b.c"),
       pattern("host=a.b.c port=80"), pattern("host=a.b.c port=80 path=/x/**"),
       pattern("host=a.b.c port=80 path=/x/*"), pattern("host=a.b.c port=80 path=/x/y"),
       pattern("host=a.b.c port=80 path=/x/y methods=GET"),
       pattern("host=a.b.c port=80 path=/x/y methods=GET scheme=http"),
       pattern("host=a.b.c port=80 path=/x/y/**")});

  const auto all = index.matches("GET", url("http://a.b.c/x/y"));

  std::string order;
  for (const auto& match : all) order += std::to_string(match.pattern) + ' ';
  CHECK(order == "10 9 8 7 6 5 4 3 2 1 0 ");
  const auto why = [&](std::size_t loser, std::size_t winner) {
    return EndpointIndex::why_less(all[10 - loser], all[10 - winner]);
  };
  CHECK(why(0, 9) == "its host is any, not exact");
  CHECK(why(0, 1) == "its host is any, not one with \"*\"");
  CHECK(why(1, 2) == "its host has fewer fixed labels");
  CHECK(why(2, 9) == "its host is one with \"*\", not exact");
  CHECK(why(3, 9) == "it names no port");
  CHECK(why(4, 9) == "segment 1 of its path is any rest, not literal");
  CHECK(why(6, 9) == "segment 2 of its path is any, not literal");
  CHECK(why(7, 9) == "it names no methods");
  CHECK(why(8, 9) == "it names no scheme");
  CHECK(why(9, 10) == "its path is shorter");
  CHECK(why(9, 9) == "it is equally specific and comes later");
  CHECK(why(9, 0).empty());
}

TEST_CASE("the last segment that a pattern may have is compared") {
  const std::string path = "host=h path=/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/";
  const EndpointIndex index({pattern(path + "*"), pattern(path + "g")});
  const auto all = index.matches("GET", url("http://h/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g"));
  REQUIRE(all.size() == 2);
  CHECK(all[0].pattern == 1);
  CHECK(EndpointIndex::why_less(all[1], all[0]) == "segment 16 of its path is any, not literal");
}

TEST_CASE("a \"*\" within a host is one label, and the leading one is one or more") {
  const EndpointRow rows[] = {
      {{"host=s3.*.amazonaws.com"}, "GET http://s3.eu-west-1.amazonaws.com/", 0},
      {{"host=s3.*.amazonaws.com"}, "GET http://s3.a.b.amazonaws.com/", kNobody},
      {{"host=s3.*.amazonaws.com"}, "GET http://s3.amazonaws.com/", kNobody},
      {{"host=s3.*.amazonaws.com"}, "GET http://x.s3.a.amazonaws.com/", kNobody},
      {{"host=*.s3.*.amazonaws.com"}, "GET http://x.y.s3.a.amazonaws.com/", 0},
      {{"host=*.s3.*.amazonaws.com"}, "GET http://s3.a.amazonaws.com/", kNobody},
      {{"host=a.*.*.d"}, "GET http://a.b.c.d/", 0},
      {{"host=*.amazonaws.com", "host=s3.*.amazonaws.com", "host=s3.x.amazonaws.com"},
       "GET http://s3.x.amazonaws.com/",
       2},
      {{"host=*.amazonaws.com", "host=s3.*.amazonaws.com"}, "GET http://s3.x.amazonaws.com/", 1},
      {{"host=a.*.c.d", "host=*.b.c.d"}, "GET http://a.b.c.d/", 1},
      {{"host=a.*.c.d path=/x", "host=*.b.c.d path=/y"}, "GET http://a.b.c.d/x", 0},
      {{"host=a.*.*.d.e path=/x", "host=*.b.*.d.e path=/*"}, "GET http://a.b.c.d.e/x", 0},
      {{"host=a.*.*.d.e path=/*", "host=*.b.*.d.e path=/x"}, "GET http://a.b.c.d.e/x", 1},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("each host of a list is as if it had an entry") {
  const EndpointRow rows[] = {
      {{"host=a.b,c.d"}, "GET http://a.b/", 0},
      {{"host=a.b,c.d"}, "GET http://c.d/", 0},
      {{"host=a.b,c.d"}, "GET http://a.d/", kNobody},
      {{"host=*.b,c.d", "host=a.b"}, "GET http://a.b/", 1},
      {{"host=*.b,a.b", "host=*.b path=/x"}, "GET http://a.b/x", 0},
      {{"host=*.b,a.b", "host=*.b path=/x"}, "GET http://c.b/x", 1},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("a \"**\" in the middle of a path is any number of segments") {
  const EndpointRow rows[] = {
      {{"path=/a/**/z"}, "GET http://h/a/z", 0},
      {{"path=/a/**/z"}, "GET http://h/a/b/c/z", 0},
      {{"path=/a/**/z"}, "GET http://h/a/z/b", kNobody},
      {{"path=/a/**/z"}, "GET http://h/a", kNobody},
      {{"path=/**/z/**"}, "GET http://h/a/z/b", 0},
      {{"path=/**/z/*"}, "GET http://h/z/z/b", 0},
      {{"path=/**/z"}, "GET http://h/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h/i/j/../z", 0},
      {{"path=/**/z"}, "GET http://h/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h/z/i", kNobody},
      {{"path=/**/b", "path=/**/a/*"}, "GET http://h/a/b", 1},
      {{"path=/**/a/*", "path=/**/b/c"}, "GET http://h/a/b/c", 1},
      {{"path=/a/**", "path=/a/**/z", "path=/a/*/z"}, "GET http://h/a/b/z", 2},
      {{"path=/a/**", "path=/a/**/z"}, "GET http://h/a/b/c/z", 1},
      {{"path=/a/*/**", "path=/a/**/z"}, "GET http://h/a/b/z", 0},
  };
  for (const auto& row : rows) check_row(row);
}

TEST_CASE("an empty index finds nothing, and a pattern with a problem makes none") {
  CHECK_FALSE(EndpointIndex().find("GET", url("http://h/")));
  CHECK(EndpointIndex().matches("GET", url("http://h/")).empty());
  CHECK(EndpointIndex().ties().empty());
  CHECK_FALSE(EndpointIndex(std::vector<EndpointPattern>()).find("GET", url("http://h/")));
  CHECK_THROWS_AS(EndpointIndex({pattern("path=a")}), std::invalid_argument);
}
