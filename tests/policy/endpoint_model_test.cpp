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
    if (!one_in(3)) made.host = one_in(6) ? "*" : one_in(2) ? "*." + host() : host();
    if (one_in(3)) made.port = static_cast<std::uint16_t>(one_in(2) ? 80 : 443);
    std::string data;
    if (!one_in(4)) made.path = path(data);
    if (one_in(2)) made.methods = one_in(2) ? methods{"GET"} : methods{"GET", "PUT"};
    if (one_in(3)) made.scheme = of({"http", "https"});
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
    return made;
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
    return text + of({"", "?", "?/a/b", "#/a"});
  }

 private:
  using methods = std::vector<std::string>;

  std::string path(std::string& data) {
    std::string text;
    for (auto more = 1 + below(4); more > 0; --more) {
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
      REQUIRE(index.matches(asked.method, target) == expected);
      const auto found = index.find(asked.method, target);
      REQUIRE(found.has_value() == !expected.empty());
      if (found) REQUIRE(*found == expected.front());
      for (std::size_t k = 1; k < expected.size(); ++k) {
        const bool equal = rank(meant[expected[k]]) == rank(meant[expected[0]]);
        const auto why = index.why_less(expected[k], expected[0]);
        REQUIRE((why == "it is equally specific and comes later") == equal);
        REQUIRE_FALSE(why.empty());
      }
    }
  }
}

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
    std::set<std::size_t> expected;
    for (std::size_t later = 1; later < meant.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        if (tie(meant[later], meant[earlier])) expected.insert(later);
      }
    }

    const EndpointIndex index(written);

    std::set<std::size_t> found;
    for (const auto& pair : index.ties()) {
      CAPTURE(pair.later);
      REQUIRE(pair.earlier < pair.later);
      REQUIRE(tie(meant[pair.later], meant[pair.earlier]));
      found.insert(pair.later);
    }
    REQUIRE(found == expected);
  }
}
