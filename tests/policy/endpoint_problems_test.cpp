#include "endpoint_patterns.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

using namespace httpretry;
using endpoint_test::pattern;

namespace {

EndpointPattern with_host(std::string host) {
  EndpointPattern made;
  made.host = std::move(host);
  return made;
}

EndpointPattern with_path(std::string path) {
  EndpointPattern made;
  made.path = std::move(path);
  return made;
}

// Of a code point from 0x80 to 0xFFFF.
std::string utf8(char32_t point) {
  const auto tail = [point](int shift) {
    return static_cast<char>(0x80 | (point >> shift & 0x3F));
  };
  if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), tail(0)};
  return {static_cast<char>(0xE0 | point >> 12), tail(6), tail(0)};
}

std::string only_problem(const EndpointPattern& made) {
  const auto problems = problems_of(made);
  return problems.size() == 1 ? problems[0].part + ": " + problems[0].message
                              : std::to_string(problems.size()) + " problems";
}

std::string host_problem(const std::string& host) {
  const auto text = only_problem(with_host(host));
  const auto start = "host: \"" + host + "\" is not a host pattern: ";
  return text.starts_with(start) ? text.substr(start.size()) : "not a problem of the host: " + text;
}

std::string path_problem(const std::string& path) {
  const auto text = only_problem(with_path(path));
  const auto start = "path: \"" + path + "\" is not a path pattern: ";
  return text.starts_with(start) ? text.substr(start.size()) : "not a problem of the path: " + text;
}

}  // namespace

constexpr const char* kStar =
    "a \"*\" must be a whole label between fixed ones, or the leading \"*.\"";

TEST_CASE("what is no host pattern is refused with the reason") {
  const std::pair<std::string, const char*> rows[] = {
      {"*.*.com", kStar},
      {"a.*", kStar},
      {"*.*.b.com", kStar},
      {"a.b*.com", kStar},
      {"a.**.com", kStar},
      {"a*.com", kStar},
      {"**", kStar},
      {"*a", kStar},
      {"*..", kStar},
      {"*.*", kStar},
      {"", "it has no name"},
      {".", "it has no name"},
      {".a", "it has an empty label"},
      {"a..b", "it has an empty label"},
      {"*..a", "it has an empty label"},
      {std::string(64, 'a') + ".com", "a label has at most 63 bytes"},
      {std::string(64, 'a') + "\xC3\xA4.com", "a label has at most 63 bytes"},
      {"a:80", "the port has its own key"},
      {"[::1]:80", "its bracket is not closed, or text follows it"},
      {"[::1", "its bracket is not closed, or text follows it"},
      {"::1", "an IPv6 address must be in brackets, as in \"[::1]\""},
      {"[fe80::1%25eth0]", "a zone is not supported"},
      {"[::g]", "it is not an IPv6 address"},
      {"[]", "it is not an IPv6 address"},
      {"*.[::1]", "an address has no suffix"},
      {"*.0.0.1", "an address has no suffix"},
      {"http://a", "only a name belongs here; write \"a\", and \"scheme\": \"http\""},
      {"http://[::1]:80/a", "only a name belongs here; write \"[::1]\", and \"scheme\": \"http\""},
      {".*\\.a",
       "regular expressions are not supported; write \"*.example.com\" for all names below "
       "example.com"},
      {".*a",
       "regular expressions are not supported; write \"*.example.com\" for all names below "
       "example.com"},
      {"^a",
       "regular expressions are not supported; write \"*.example.com\" for all names below "
       "example.com"},
      {"http://u:p@a:80/b", "only a name belongs here; write \"a\", and \"scheme\": \"http\""},
      {"a/b", "only a name belongs here"},
      {"u@a", "only a name belongs here"},
      {"a%2eb", "only a name belongs here"},
      {"a b", "no host can have that name"},
      {"a\nb", "no host can have that name"},
      {std::string("a\0b", 3), "no host can have that name"},
      {"\xC3", "it is not UTF-8"},
      {"\xC0\xAE", "it is not UTF-8"},
      {"\xED\xA0\x80", "it is not UTF-8"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK(host_problem(row.first) == row.second);
  }
  std::string long_name("a");
  while (long_name.size() < 254) long_name += ".a";
  CHECK(host_problem(long_name) == "a name has at most 253 bytes");
  long_name.erase(0, 2);
  CHECK(problems_of(with_host(long_name)).empty());
  CHECK(host_problem("a" + long_name) == "a name has at most 253 bytes");
  CHECK(problems_of(with_host(std::string(63, 'a') + ".com")).empty());
}

TEST_CASE("what is no path pattern is refused with the reason") {
  const std::pair<std::string, const char*> rows[] = {
      {"", "it must start with \"/\""},
      {"a", "it must start with \"/\""},
      {"**", "it must start with \"/\""},
      {"/**/a/**/b", "only one \"**\" is allowed before the end"},
      {"/a/**/b/**/", "only one \"**\" is allowed before the end"},
      {"/a/**/**", "one \"**\" directly follows another"},
      {"/a/**/..", "\"..\" follows a \"**\""},
      {"^/a",
       "regular expressions are not supported; write \"*\" for any one segment, and \"**\" for any "
       "number of them"},
      {"/a.*",
       "regular expressions are not supported; write \"*\" for any one segment, and \"**\" for any "
       "number of them"},
      {"/a?b", "it must not contain a query or a fragment"},
      {"/a#b", "it must not contain a query or a fragment"},
      {"/a\x01", "it contains a control byte"},
      {"/a\x7F", "it contains a control byte"},
      {"/%", "\"%\" encodes nothing: two hexadecimal digits must follow a \"%\""},
      {"/a%4", "\"%4\" encodes nothing: two hexadecimal digits must follow a \"%\""},
      {"/%41%zz", "\"%zz\" encodes nothing: two hexadecimal digits must follow a \"%\""},
      {"/%%41", "\"%%4\" encodes nothing: two hexadecimal digits must follow a \"%\""},
      {"/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/**/", "it has 17 segments, at most 16 are allowed"},
      {"/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h", "it has 17 segments, at most 16 are allowed"},
      {"/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/**", "it has 17 segments, at most 16 are allowed"},
      {"/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/", "it has 17 segments, at most 16 are allowed"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK(path_problem(row.first) == row.second);
  }
  for (const std::string segment :
       {"a*", "*a", "***", "{}", "{", "}", "{a}b", "{a", "{a{b}", "{*}", "{a*}"}) {
    CHECK(path_problem("/x/" + segment) ==
          "\"" + segment +
              "\" is not a segment: a segment is \"*\", \"{name}\", or text, in which these "
              "characters are written \"%2A\", \"%7B\" and \"%7D\"");
  }
}

TEST_CASE("other parts are refused with the reason") {
  CHECK(only_problem(EndpointPattern()) ==
        ": at least one of scheme, host, port, path, methods, headers and query is required");
  CHECK(only_problem(pattern("scheme=ftp")) == "scheme: \"ftp\" is not \"http\" or \"https\"");
  CHECK(only_problem(pattern("scheme=HTTP")) == "scheme: \"HTTP\" is not \"http\" or \"https\"");
  CHECK(only_problem(pattern("port=0")) == "port: 0 is not a port: ports are 1 to 65535");
  CHECK(only_problem(pattern("methods=GET,PUT,GET,GET")) ==
        "methods: \"GET\" is listed more than once");
  CHECK(only_problem(pattern("methods=G@T")) ==
        "methods: \"G@T\" is not a method: it is not a token");
  EndpointPattern empty_method;
  empty_method.methods = {""};
  CHECK(only_problem(empty_method) == "methods: \"\" is not a method: it is not a token");
  CHECK(problems_of(pattern("scheme=x host=a..b port=0 path=x methods=@,;")).size() == 6);
}

TEST_CASE("hosts that are not valid are not taken for each other") {
  EndpointPattern pattern;
  pattern.host = "a..b";
  pattern.more_hosts = {"c..d", "ok", "e..f", "ok."};
  std::vector<std::string> wrong;
  for (const auto& problem : problems_of(pattern)) {
    wrong.push_back(problem.message.substr(0, problem.message.find(" is not a host pattern")));
  }
  CHECK(wrong == std::vector<std::string>{"\"a..b\"", "\"c..d\"", "\"e..f\"",
                                          "\"ok.\" is listed more than once"});
}

TEST_CASE("what is allowed has no problems") {
  for (const auto* text : {"scheme=http",
                           "scheme=https",
                           "host=*",
                           "host=*.com",
                           "host=*.co.uk.",
                           "host=A_b-c.d",
                           "host=[::]",
                           "host=1.2.3.4",
                           "host=xn--bcher-kva.de",
                           "host=b\xC3\xBC"
                           "cher.de",
                           "port=1",
                           "port=65535",
                           "path=/",
                           "path=/**",
                           "path=//",
                           "path=/*",
                           "path=/{a}/{b-c.d_e}",
                           "path=/%2a/%2F/%00",
                           "path=/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/**",
                           "path=/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/x/../g",
                           "methods=GET,get,M-SEARCH"}) {
    CAPTURE(text);
    CHECK(problems_of(pattern(text)).empty());
  }
}

TEST_CASE("international names in a pattern become what they become in a URL") {
  const std::pair<char32_t, char32_t> letters[] = {
      {0xC0, 0x12F},    {0x134, 0x13E},   {0x14A, 0x17E},   {0x388, 0x38A},   {0x38E, 0x3A1},
      {0x3A3, 0x3CE},   {0x400, 0x481},   {0x48A, 0x4BF},   {0x4C1, 0x52F},   {0x531, 0x556},
      {0x561, 0x586},   {0x5D0, 0x5EA},   {0x620, 0x64A},   {0x905, 0x939},   {0xE01, 0xE30},
      {0x1EA0, 0x1EF9}, {0x3041, 0x3094}, {0x4E00, 0x4F00}, {0xAC00, 0xAD00},
  };
  int compared = 0;
  for (const auto& [first, last] : letters) {
    for (auto point = first; point <= last; ++point) {
      const auto name = "a" + utf8(point) + "z" + utf8(point) + ".example";
      const auto asked = endpoint_test::url("http://" + name + "/");
      ++compared;
      CAPTURE(name);
      CHECK(EndpointIndex({with_host(name)}).find("GET", asked).has_value());
    }
  }
  CHECK(compared > 1000);
}
