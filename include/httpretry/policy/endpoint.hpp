// Endpoints: which entry of many a request belongs to, by method, URL and headers.
//
// The most specific pattern wins, whatever their order: compare host (exact > with "*" > any; then
// more fixed labels; then the longer fixed suffix), then port (given > any), then path (segment by
// segment: literal > one > rest; then longer > shorter), then methods (given > any), then scheme
// (given > any), then the number of conditions on headers and query.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/http/url.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// What an entry matches, as it was written; each part may be left out.
//
// Requests and patterns are compared in one normal form, so that no spelling of a URL gets past its
// pattern:
//   host     lower case, without trailing dots; addresses as libcurl writes them ([0:0::1] is
//   [::1]).
//            A Unicode name is its punycode, as browsers convert it (UTS 46, non-transitional).
//   path     by segments; "%41" is "A" and "%3A" is ":", but "%2F" is data in its segment and never
//            ends it. "." and ".." are gone, however they were spelled. "//" holds an empty
//            segment, and "/a/" ends in one; "*" matches an empty one as any other.
//   port     the scheme's where the URL has none.
//   methods  as written: "get" is not "GET".
//   headers  names in any case; of several with one name the first counts.
//   query    names and values without percent-encoding; of several with one name the first counts.
// Userinfo and fragment are not looked at.
struct HTTPRETRY_API EndpointPattern {
  EndpointPattern() = default;
  friend bool operator==(const EndpointPattern&, const EndpointPattern&) = default;

  std::optional<std::string> scheme;  // "http", "https"
  // Exact, "[::1]", a Unicode name, or "*". "*." at the beginning is one label or more; a further
  // "*" is one label, and a fixed label ends the name: "*.s3.*.amazonaws.com".
  std::optional<std::string> host;
  std::vector<std::string> more_hosts;  // each as if it had a pattern of its own
  std::optional<std::uint16_t> port;    // 1 to 65535
  // "/a/{id}/*/**", 16 segments at most; a literal "*" is "%2A". "**" is any number of segments,
  // also none; one may stand before the end.
  std::optional<std::string> path;
  std::vector<std::string> methods;  // empty: all
  // Name and value; "gold*" is what begins with "gold", and "*" is any value. All must hold.
  using Conditions = std::map<std::string, std::string>;
  Conditions headers;
  Conditions query;
};

// What is wrong with one part of a pattern ("host", "path", …), in a sentence.
struct HTTPRETRY_API PatternProblem {
  PatternProblem() = default;
  PatternProblem(std::string_view wrong_part, std::string what)
      : part(wrong_part), message(std::move(what)) {}

  std::string part;  // empty where the whole is wrong: a pattern without any part
  std::string message;
};
// Empty where nothing is wrong.
[[nodiscard]] HTTPRETRY_API std::vector<PatternProblem> problems_of(const EndpointPattern& pattern);

// Finds the winning pattern. Immutable; patterns keep the number they were given in, and where two
// are equally specific, the first wins. Copies share.
//
// "/a" and "/a/**" both match "/a"; the longer wins, as everywhere.
class HTTPRETRY_API EndpointIndex {
 public:
  EndpointIndex() = default;
  // Throws std::invalid_argument where a pattern has a problem.
  explicit EndpointIndex(const std::vector<EndpointPattern>& patterns);

  // The number of the winner; empty where none matches. Does not allocate, except for a path of
  // more than 17 segments.
  //
  // Looks up an exact host by its hash, and then tries the patterns of that host one after the
  // other, the most specific first; then those with a "*" and those for any host.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view method, const Url& url,
                                                const Headers& headers = Headers()) const;

  // A pattern that matches, and how specific it is for that request.
  struct Match {
    std::size_t pattern = 0;
    std::uint64_t rank = 0;  // greater: more specific
  };
  // All that match, the winner first.
  [[nodiscard]] std::vector<Match> matches(std::string_view method, const Url& url,
                                           const Headers& headers = Headers()) const;
  // Why the loser is less specific than the winner: "its host is a suffix, not exact".
  [[nodiscard]] static std::string why_less(const Match& loser, const Match& winner);

  // Patterns that can match the same request as an earlier one and are equally specific: each with
  // the first such, for each host and method that the two have in common; in ascending order.
  struct Tie {
    std::size_t later = 0;
    std::size_t earlier = 0;
    friend bool operator==(const Tie&, const Tie&) = default;
    friend auto operator<=>(const Tie&, const Tie&) = default;
  };
  [[nodiscard]] const std::vector<Tie>& ties() const;

  struct Data;  // lib/core/policy/endpoint_index.cpp

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace httpretry
