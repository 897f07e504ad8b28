// No spelling of a URL gets past its entry: each of these is either refused as a URL, or goes where
// the plain spelling goes; and what only looks alike does not.
#include "endpoint_patterns.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <random>
#include <string>

using namespace httpretry;
using endpoint_test::pattern;

namespace {

enum class Way { Refused, Entry, Elsewhere };

Way way_of(const EndpointIndex& index, const std::string& text) {
  const auto url = Url::parse(text);
  if (!url) return Way::Refused;
  return index.find("GET", *url) ? Way::Entry : Way::Elsewhere;
}

}  // namespace

TEST_CASE("a host's spellings go to its entry, or nowhere") {
  const EndpointIndex index({pattern("host=api.example.com path=/admin/**")});
  for (const std::string spelling :
       {"http://api.example.com/admin/", "HTTP://API.EXAMPLE.COM/admin",
        "http://api.example.com./admin", "http://%61pi.example.com/admin",
        "http://api%2eexample%2Ecom/admin", "http://u@api.example.com/admin",
        "http://u:p%40x@api.example.com/admin", "http://@api.example.com/admin",
        "http://evil.example@api.example.com/admin", "http://api.example.com:80/admin",
        "http://api.example.com:00080/admin", "http://api.example.com:/admin",
        "https://api.example.com:443/admin", "http://api.example.com:8080/admin?x#y"}) {
    CAPTURE(spelling);
    CHECK(way_of(index, spelling) == Way::Entry);
  }
  CHECK(way_of(index, "http://api.example.com../admin") == Way::Refused);
  // What parsers read in more than one way: never another host's entry.
  for (const std::string spelling :
       {"http:///api.example.com/admin", "http:/api.example.com/admin",
        "http:api.example.com/admin", "http:\\\\api.example.com\\admin",
        "http://api.example.com\\@evil.example/admin", "http://api.example.com\t/admin",
        "http://api.example.com%00.evil.example/admin", "http://api.example.com%0d%0a/admin",
        "http://[api.example.com]/admin", " http://api.example.com/admin",
        "http://api.example.com#@evil.example/admin"}) {
    CAPTURE(spelling);
    const auto url = Url::parse(spelling);
    // Accepted, it is connected to as it is matched.
    CHECK((!url || (way_of(index, spelling) == Way::Entry) ==
                       (url->host() == "api.example.com" && url->path() != "/")));
  }
  for (const std::string spelling :
       {"http://api.example.com.evil.example/admin", "http://evil.example/api.example.com/admin",
        "http://api.example.com@evil.example/admin", "http://evil.example?@api.example.com/admin",
        "http://evil.example#@api.example.com/admin", "http://xapi.example.com/admin",
        "http://api-example.com/admin", "http://api.example.comm/admin"}) {
    CAPTURE(spelling);
    CHECK(way_of(index, spelling) != Way::Entry);
  }
}

TEST_CASE("a path's spellings go to its entry") {
  const EndpointIndex index({pattern("host=h path=/admin/users/**")});
  for (const std::string path : {"/admin/users",         "/admin/users/",
                                 "/admin/users/7",       "/%61dmin/users",
                                 "/admin/%75%73ers",     "/%61%64%6D%69%6e/%75sers",
                                 "/./admin/users",       "/%2e/admin/users",
                                 "/x/../admin/users",    "/x/%2e%2e/admin/users",
                                 "/x/.%2E/admin/users",  "/x/%2E./admin/users",
                                 "/../../admin/users",   "/%2e%2e/%2e%2e/admin/users",
                                 "/admin/./users",       "/admin/x/../users",
                                 "/admin/users/..%2f..", "/admin/users/x/..",
                                 "/admin/users/%2e",     "/admin/users/?/../..",
                                 "/admin/users/#/../..", "/admin/users//..//x"}) {
    CAPTURE(path);
    CHECK(way_of(index, "http://h" + path) == Way::Entry);
  }
  for (const std::string path :
       {"/admin%2Fusers", "/admin/users%2F7", "//admin/users", "/admin//users", "/ADMIN/users",
        "/%2561dmin/users", "/admin/users/..", "/admin/users/%2e%2e", "/admin/users/../users2",
        "/admin/usersx", "/admin\\users", "/admin;x/users", "/admin%00/users",
        "/admin/%2e%2e/users"}) {
    CAPTURE(path);
    CHECK(way_of(index, "http://h" + path) == Way::Elsewhere);
  }
}

TEST_CASE("a long segment among others is found wherever it is percent-encoded") {
  const std::string name = "abcdefgh-ijklmnop-q";
  const EndpointIndex index({pattern("path=/" + name), pattern("path=/" + name + "r"),
                             pattern("path=/abcdefgh"), pattern("path=/abcdefghi")});
  for (std::size_t at = 0; at < name.size(); ++at) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02x", static_cast<unsigned>(name[at]));
    auto spelling = name;
    spelling.replace(at, 1, code);
    CAPTURE(spelling);
    CHECK(index.find("GET", Url::parse("http://h/" + spelling).value()) == 0);
    CHECK(index.find("GET", Url::parse("http://h/" + spelling + "r").value()) == 1);
    CHECK_FALSE(index.find("GET", Url::parse("http://h/" + spelling + "s").value()));
  }
}

TEST_CASE("any mixture of spellings goes to the entry") {
  std::mt19937 random(1);
  const auto below = [&](unsigned end) { return static_cast<std::size_t>(random() % end); };
  const auto spelled = [&](std::string_view text) {
    std::string out;
    for (const auto c : text) {
      constexpr std::string_view kHex = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      if (c != ' ' && below(3) != 0) {  // a space is no part of a URL
        out += c;
      } else {
        out += '%';
        out += kHex[byte >> 4U];
        const auto digit = kHex[byte & 15U];
        out += below(2) == 0 && digit >= 'a' ? static_cast<char>(digit - 32) : digit;
      }
    }
    return out;
  };
  const auto cased = [&](std::string text) {
    for (auto& c : text) {
      if (c >= 'a' && c <= 'z' && below(2) == 0) c = static_cast<char>(c - 32);
    }
    return text;
  };
  const std::string detours[] = {"/.", "/%2e", "/x/..", "/y/%2E.", "/a/b/../.%2e", ""};
  const std::string userinfos[] = {"", "u@", "u:p@", "%61:@"};
  const std::string ports[] = {"", ":443", ":0443", ":"};
  const std::string dots[] = {"", "."};
  const EndpointIndex index(
      {pattern("scheme=https host=*.example.com port=443 path=/v1/users/{id} methods=GET")});
  for (auto i = 0; i < 20'000; ++i) {
    auto text = cased("https") + "://" + userinfos[below(4)] + cased("api.example.com") +
                dots[below(2)] + ports[below(4)];
    for (const auto* const segment : {"v1", "users", "a b"}) {
      text += detours[below(6)] + "/" + spelled(segment);
    }
    CAPTURE(text);
    CHECK(way_of(index, text) == Way::Entry);
  }
}
