// The index against the reference, on random sets and URLs in random spellings.
#include "endpoint_patterns.hpp"
#include "endpoint_reference.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <random>
#include <set>
#include <utility>

using namespace httpretry;
using namespace endpoint_test;

namespace {

constexpr char kSlash = 0x1F;

// Small alphabets: what is drawn meets often.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  bool one_in(int n) { return below(n) == 0; }
  template <std::size_t N>
  std::string of(const char* const (&choices)[N]) {
    return choices[below(static_cast<int>(N))];
  }

  std::string host() {
    std::string name = of({"a", "b", "c1"});
    for (auto more = below(3); more > 0; --more) name += "." + of({"a", "b", "d-e"});
    return name;
  }
  // Byte 1F stands for a "/" that is data.
  std::string literal() {
    return of({"a", "b", "", "ab", "x y", "1:2", "a\x1F", "%41", "\xC3\xA4"});
  }

  // As it is written, and as it is meant: with data for percent-encoding.
  std::pair<EndpointPattern, EndpointPattern> pattern() {
    EndpointPattern made;
    if (!one_in(3)) made.host = host_pattern();
    if (made.host && one_in(8)) made.more_hosts.push_back(host_pattern());
    if (one_in(8)) made.headers = conditions({"x", "X-Tier"});
    if (one_in(8)) made.query = conditions({"q", "r s"});
    if (one_in(3)) made.port = static_cast<std::uint16_t>(one_in(2) ? 80 : 443);
    std::string data;
    if (!one_in(4)) made.path = path(data);
    if (one_in(2)) made.methods = one_in(2) ? methods{"GET"} : methods{"GET", "PUT"};
    if (one_in(3)) made.scheme = of({"http", "https"});
    if (made.more_hosts == std::vector{made.host.value_or("")}) made.more_hosts.clear();
    if (!problems_of(made).empty()) made.host = "*";  // where nothing was drawn
    auto meant = made;
    if (made.path) meant.path = data;
    return {made, meant};
  }

  Asked asked() {
    Asked made;
    made.method = of({"GET", "PUT", "POST"});
    made.scheme = of({"http", "https"});
    made.host = host();
    made.port = one_in(2) ? (made.scheme == "http" ? 80 : 443) : one_in(2) ? 80 : 8080;
    const auto count = 1 + below(one_in(10) ? 20 : 4);
    for (auto i = 0; i < count; ++i) made.segments.push_back(literal());
    for (const auto* const name : {"x", "X-Tier"}) {
      if (one_in(3)) made.headers[name] = of({"a", "ab", "b", "abc"});
    }
    for (const auto* const name : {"q", "r s"}) {
      if (one_in(3)) made.query[name] = of({"a", "ab", "b", "abc"});
    }
    return made;
  }

  Headers headers_of(const Asked& made) {
    Headers headers;
    for (const auto& [name, value] : made.headers) headers.add(any_case(name), value);
    for (const auto& [name, value] : made.headers) headers.add(name, "other");  // the first counts
    return headers;
  }

  // The request in one of its spellings.
  std::string spelling(const Asked& made) {
    std::string text = any_case(made.scheme) + "://" + (one_in(4) ? "user:p@" : "") +
                       any_case(made.host) + (one_in(4) ? "." : "");
    const bool usual = made.port == (made.scheme == "http" ? 80 : 443);
    if (!usual || one_in(2)) text += ":" + std::to_string(made.port);
    for (const auto& segment : made.segments) {
      if (one_in(8)) text += of({"/%2e", "/.", "/x/..", "/y%2Fz/%2E%2e", "/q/.%2e"});
      text += "/" + encoded(segment);
    }
    text += "?" + of({"", "/a/b", "&&", "q2=a"});
    for (const auto& [name, value] : made.query) {
      text += "&" + encoded(name) + "=" + encoded(value);
      if (one_in(3)) text += "&" + encoded(name) + "=other";
    }
    return text + of({"", "#/a", "#?q=b"});
  }

 private:
  using methods = std::vector<std::string>;

  // A label in the middle may be any one.
  std::string host_pattern() {
    if (one_in(6)) return "*";
    auto made = (one_in(2) ? "*." : "") + host();
    const auto dot = made.find('.', made.starts_with("*.") ? 2 : 0);
    const auto next = made.find('.', dot + 1);
    if (dot != made.npos && next != made.npos && one_in(2))
      made.replace(dot + 1, next - dot - 1, "*");
    return made;
  }

  Conditions conditions(std::initializer_list<const char*> names) {
    Conditions made;
    for (const auto* const name : names) {
      if (made.empty() || one_in(3)) made[name] = of({"a", "ab", "b", "a*", "ab*", "*"});
    }
    return made;
  }

  std::string path(std::string& data) {
    std::string text;
    const auto rest = one_in(3) ? below(3) : -1;  // a "**" before the end
    for (auto more = 1 + below(4); more > 0; --more) {
      if (more - 1 == rest) {
        text += "/**";
        data += "/**";
      }
      const bool one = one_in(3);
      const auto segment = one ? of({"*", "{id}"}) : literal();
      data += "/" + segment;
      text += "/" + (one ? segment : encoded(segment));
    }
    if (!one_in(3)) return text;
    data += "/**";
    return text + "/**";
  }

  std::string any_case(std::string text) {
    for (auto& c : text) {
      if (c >= 'a' && c <= 'z' && one_in(4)) c = static_cast<char>(c - 32);
    }
    return text;
  }

  std::string encoded(const std::string& data) {
    std::string text;
    for (const auto c : data) {
      const bool must = c == kSlash || c == '%' || c == ' ' || c < 0;
      if (!must && !one_in(4)) {
        text.push_back(c);
        continue;
      }
      char hex[4];
      std::snprintf(hex, sizeof hex, one_in(2) ? "%%%02x" : "%%%02X",
                    static_cast<unsigned>(static_cast<unsigned char>(c == kSlash ? '/' : c)));
      text += hex;
    }
    return text;
  }

  std::mt19937 random_;
};

}  // namespace

TEST_SUITE_BEGIN("large");

TEST_CASE("the index answers as the reference does, whatever the spelling") {
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    std::vector<EndpointPattern> written;
    std::vector<EndpointPattern> meant;
    for (auto more = draw.below(seed % 10 == 0 ? 200 : 20); more >= 0; --more) {
      auto [text, data] = draw.pattern();
      written.push_back(text);
      meant.push_back(data);
    }
    const EndpointIndex index(written);
    for (int i = 0; i < 10; ++i) {
      const auto asked = draw.asked();
      const auto text = draw.spelling(asked);
      CAPTURE(text);
      const auto expected = all_matches(meant, asked);
      const auto target = url(text);
      const auto headers = draw.headers_of(asked);
      const auto all = index.matches(asked.method, target, headers);
      REQUIRE(all.size() == expected.size());
      const auto found = index.find(asked.method, target, headers);
      REQUIRE(found.has_value() == !expected.empty());
      if (found) REQUIRE(*found == expected.front().number);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        REQUIRE(all[k].pattern == expected[k].number);
        if (k == 0) continue;
        const bool equal = expected[k].rank == expected[0].rank;
        const auto why = EndpointIndex::why_less(all[k], all[0]);
        REQUIRE((why == "it is equally specific and comes later") == equal);
        REQUIRE_FALSE(why.empty());
      }
    }
  }
}

namespace {

// What the index says of patterns, against the reference for `meant`, which are the same.
void check_ties(const std::vector<EndpointPattern>& written,
                const std::vector<EndpointPattern>& meant) {
  std::set<std::size_t> expected;
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& later : singles(meant)) {
    for (const auto& earlier : singles(meant)) {
      if (earlier.number >= later.number || !tie(later.pattern, earlier.pattern)) continue;
      expected.insert(later.number);
      pairs.emplace(later.number, earlier.number);
    }
  }

  const EndpointIndex index(written);

  std::set<std::size_t> found;
  for (const auto& pair : index.ties()) {
    CAPTURE(pair.later);
    CAPTURE(pair.earlier);
    REQUIRE(pairs.count({pair.later, pair.earlier}) == 1);
    found.insert(pair.later);
  }
  REQUIRE(found == expected);
}

}  // namespace

TEST_CASE("ties are the pairs that the reference finds") {
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    std::vector<EndpointPattern> written;
    std::vector<EndpointPattern> meant;
    for (auto more = draw.below(60); more >= 0; --more) {
      auto [text, data] = draw.pattern();
      written.push_back(text);
      meant.push_back(data);
    }
    check_ties(written, meant);
  }
}

TEST_CASE("ties among many of one place are the pairs that the reference finds") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    std::vector<EndpointPattern> patterns;
    const auto kinds = 1 + draw.below(3);
    for (auto more = 17 + draw.below(80); more >= 0; --more) {
      EndpointPattern made;
      made.host = seed % 2 == 0 ? "h" : draw.of({"a.*.h", "b.*.h", "*.a.*.h", "*.*.h"});
      if (made.host == "*.*.h") made.host = "c.*.*.h";
      const auto about = draw.below(kinds);
      const auto value = [&] { return draw.of({"a", "ab", "b", "abc", "a*", "ab*", "b*", "*"}); };
      if (about != 1) made.headers["x"] = value();
      if (about == 1) made.headers["X-Tier"] = value();
      if (!draw.one_in(3)) made.query["q"] = value();
      if (draw.one_in(8)) made.methods = {"GET"};
      patterns.push_back(made);
    }
    check_ties(patterns, patterns);
  }
}

TEST_SUITE_END();
