// Endpoints: finding the entry of a policy file that a request belongs to, by method, URL and
// headers.
//
// The most specific pattern wins, regardless of the order of the patterns. These criteria are
// compared one after the other:
//   host     an exact host before one with "*" before any host; then more fixed labels; then the
//            longer fixed suffix
//   port     a given port before any port
//   path     by segment: a literal before one "{id}" or "*" before "**"; then the longer path
//   methods  given methods before all methods
//   scheme   a given scheme before any scheme
//   then the number of conditions on headers and query
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

// The requests that an entry of a policy file matches, as written there. Each part may be left out.
//
// Requests and patterns are compared in one normal form, so that no spelling of a URL can evade its
// pattern:
//   host     In lower case, without trailing dots. Addresses as libcurl writes them ([0:0::1] is
//            [::1]). A Unicode name in punycode, as browsers convert it (UTS 46, non-transitional).
//   path     By segment. "%41" is "A" and "%3A" is ":", but "%2F" is data in its segment and never
//            ends it. "." and ".." are removed, however they were spelled. "//" contains an empty
//            segment, and "/a/" ends in one; "*" matches an empty segment like any other.
//   port     The scheme's default if the URL has no port.
//   methods  Case-sensitive: "get" is not "GET".
//   headers  Names in any case. If a name is repeated, the first value counts.
//   query    Names and values without percent-encoding. If a name is repeated, the first value
//            counts.
// Userinfo and fragment are ignored.
struct HTTPRETRY_API EndpointPattern {
  EndpointPattern() = default;
  friend bool operator==(const EndpointPattern&, const EndpointPattern&) = default;

  std::optional<std::string> scheme;  // "http", "https"
  // An exact host, "[::1]", a Unicode name, or "*". "*." at the beginning matches one or more
  // labels. Any further "*" matches one label, and the name must end with a fixed label:
  // "*.s3.*.amazonaws.com".
  std::optional<std::string> host;
  std::vector<std::string> more_hosts;  // each is equivalent to a separate pattern
  std::optional<std::uint16_t> port;    // 1 to 65535
  // "/a/{id}/*/**", with at most 16 segments; a literal "*" is "%2A". "**" matches any number of
  // segments, even none. Only one "**" may stand before the end.
  std::optional<std::string> path;
  std::vector<std::string> methods;  // empty for all methods
  // Name and value. "gold*" matches values that begin with "gold", and "*" any value. All
  // conditions must hold.
  using Conditions = std::map<std::string, std::string>;
  Conditions headers;
  Conditions query;
};

// A problem with one part of a pattern ("host", "path", …), as a sentence.
struct HTTPRETRY_API PatternProblem {
  PatternProblem() = default;
  PatternProblem(std::string_view wrong_part, std::string what)
      : part(wrong_part), message(std::move(what)) {}

  std::string part;     // empty if the pattern as a whole is wrong because it has no parts
  std::string message;  // what is wrong, as a sentence
};
// Returns an empty list if the pattern is valid.
[[nodiscard]] HTTPRETRY_API std::vector<PatternProblem> problems_of(const EndpointPattern& pattern);

// EndpointIndex finds the most specific pattern for a request. It is immutable, and copies share
// its data. Patterns are identified by their index in the constructor's argument. If two are
// equally specific, the first wins.
//
// "/a" and "/a/**" both match "/a". The longer one wins, as always.
class HTTPRETRY_API EndpointIndex {
 public:
  EndpointIndex() = default;
  // Throws std::invalid_argument if a pattern has a problem.
  explicit EndpointIndex(const std::vector<EndpointPattern>& patterns);

  // Returns the index of the winning pattern, or nullopt if none matches. Does not allocate memory,
  // except for a path of more than 17 segments.
  //
  // Looks up an exact host by its hash and tries the patterns of that host in order, the most
  // specific first. Then it tries the patterns whose host has a "*", and those for any host.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view method, const Url& url,
                                                const Headers& headers = Headers()) const;

  // A matching pattern, with its specificity for the request.
  struct Match {
    std::size_t pattern = 0;  // its index in the list of patterns
    std::uint64_t rank = 0;   // greater is more specific
  };
  // Returns all matching patterns, the winner first.
  [[nodiscard]] std::vector<Match> matches(std::string_view method, const Url& url,
                                           const Headers& headers = Headers()) const;
  // Explains why the loser is less specific than the winner: "its host is a suffix, not exact".
  [[nodiscard]] static std::string why_less(const Match& loser, const Match& winner);

  // Two equally specific patterns that can match the same request.
  struct Tie {
    std::size_t later = 0;  // indices in the list of patterns
    std::size_t earlier = 0;
    friend bool operator==(const Tie&, const Tie&) = default;
    friend auto operator<=>(const Tie&, const Tie&) = default;
  };
  // Returns the ties in ascending order: each pattern with the first earlier one that it ties with,
  // for each host and method that the two have in common.
  [[nodiscard]] const std::vector<Tie>& ties() const;

  struct Data;  // lib/core/policy/endpoint_index.cpp

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace httpretry
