// URLs that are read without libcurl are what libcurl would have made of them.
#include "lib/core/curl/url_parts.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace httpretry;

namespace {

bool is_plain(std::string_view text) { return Url::Parts::read_plain(text).has_value(); }

// Both read the text, and give the same parts. (Whether a URL without `plain` is an error is told
// by libcurl alone.)
void compare(const std::string& text) {
  const auto url = Url::Parts::read_plain(text);
  if (!url) return;
  const auto& plain = url->parts();
  CAPTURE(std::string(text));
  const auto read = Url::Parts::read(detail::CurlUrl(curl_url()), text, 0);
  REQUIRE(read.has_value());
  const auto& curl = read->parts();
  REQUIRE(plain.text == curl.text);
  REQUIRE(url->scheme() == read->scheme());
  REQUIRE(url->host() == read->host());
  REQUIRE(plain.port == curl.port);
  REQUIRE(url->path() == read->path());
  REQUIRE(url->query() == read->query());
  REQUIRE(url->origin() == read->origin());
  REQUIRE(plain.userinfo == curl.userinfo);
  REQUIRE(plain.host_is_name == curl.host_is_name);
  // As it is sent: from a form that had another path and query before.
  const detail::CurlUrl form(curl_url());
  curl_url_set(form.get(), CURLUPART_URL, (std::string(url->origin()) + "/other?q").c_str(), 0);
  curl_url_set(form.get(), CURLUPART_PATH, std::string(url->path()).c_str(), 0);
  const auto* query = url->query().empty() ? nullptr : url->query().data();
  curl_url_set(form.get(), CURLUPART_QUERY, query, 0);
  for (const auto part : {CURLUPART_PATH, CURLUPART_QUERY}) {
    REQUIRE(detail::url_part(form.get(), part) == detail::url_part(curl.handle.get(), part));
  }
}

}  // namespace

TEST_CASE("which URLs are plain") {
  for (const auto* text :
       {"http://a/", "https://api.example.com/v1/items?page=2&q=a,b;c", "http://localhost:8080/x",
        "http://a-b.c/~user/(1)/a..b/.well-known/x=1/'*'", "https://a/?x=/?y", "http://a:65535/",
        "http://a.:1/...", "https://127.0.0.1:80/", "http://255.0.10.199/"}) {
    CAPTURE(std::string(text));
    CHECK(is_plain(text));
    compare(text);
  }
  for (const auto* text : {"",
                           "http",
                           "http:",
                           "http://",
                           "http://a",
                           "http://a?x",
                           "HTTP://a/",
                           "http://A/",
                           "http://u@a/",
                           "http://[::1]/",
                           "http://1.2.3/",
                           "http://1.2.3.4./",
                           "http://1.2.3.04/",
                           "http://1.2.3.256/",
                           "http://1.2.3.4.5/",
                           "http://1a.b/",
                           "http://1.2.3./",
                           "http://0x7f.1/",
                           "http://a:/",
                           "http://a:0/",
                           "http://a:080/",
                           "http://a:80/",
                           "https://a:443/",
                           "http://a:65536/",
                           "http://a:x/",
                           "http://a/%20",
                           "http://a/./b",
                           "http://a/b/..",
                           "http://a/../b",
                           "http://a/.",
                           "http://a/x#f",
                           "http://a/ b",
                           "http://a/?",
                           "http://a/?a b",
                           "http://a/?%41",
                           "http://a/\xc3\xa4",
                           "http://\xc3\xa4/",
                           "http:///a",
                           "http:/a/b",
                           "ftp://a/",
                           "http://a_b/",
                           "http://a/\"",
                           "http://a/?[1]",
                           "http://a\\b/"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(is_plain(text));
  }
}

TEST_CASE("a host is a name unless it is an address or localhost") {
  for (const auto* text : {"http://a/", "http://1a.b/", "http://localhost.b/", "http://localhosts/",
                           "http://xlocalhost/", "http://127.0.0.1.b/", "http://A.B/"}) {
    CAPTURE(std::string(text));
    CHECK(Url::parse(text)->parts().host_is_name);
  }
  for (const auto* text :
       {"http://127.0.0.1/", "http://127.1/", "http://[::1]/", "http://[fe80::1]/",
        "http://localhost/", "http://a.localhost/", "http://LOCALHOST/"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(Url::parse(text)->parts().host_is_name);
  }
}

TEST_CASE("generated URLs have the parts that libcurl finds") {
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  const auto one_of = [&](const std::vector<std::string>& list) {
    return list[random() % list.size()];
  };
  int plain = 0;
  for (int run = 0; run < rounds(50'000); ++run) {
    auto text = one_of({"http://", "https://", "http:", "HTTP://"});
    for (auto parts = 1 + random() % 4; parts > 0; --parts) {
      text += one_of({"a", "example", "-", ".", "..", "1", "0x1", "127", ".0.0.1", "b2", "_", "~",
                      "local", "B"});
    }
    text += one_of({"", "", "", ":80", ":443", ":8080", ":1", ":0", ":65536", ":", ":08", "@"});
    for (auto segments = random() % 5; segments > 0; --segments) {
      text += one_of({"/", "/a", "/b.c", "/.", "/..", "/...", "/.x", "/x.", "//", "/~", "/%2e",
                      "/a:b@c", "/(1)", "/;p=1", "/,", "/+", "/A-Z_"});
    }
    text +=
        one_of({"", "", "?", "?q", "?q=1&r=/x?y", "?%41", "?.", "?../x", "#f", "?a#f", "?a:b@c"});
    compare(text);
    plain += is_plain(text) ? 1 : 0;
  }
  CHECK(plain > rounds(1'000));
}
