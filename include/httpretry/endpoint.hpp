// Endpoints: which entry of many a request belongs to, by method and URL.
//
// The most specific pattern wins, whatever their order: compare host (exact > longer suffix >
// shorter suffix > any), then port (given > any), then path (segment by segment: literal > one >
// rest; then longer > shorter), then methods (given > any), then scheme (given > any).
#pragma once

#include <httpretry/result.hpp>
#include <httpretry/url.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// What an entry matches, as it was written; each part may be left out.
struct HTTPRETRY_API EndpointPattern {
  EndpointPattern();
  ~EndpointPattern();
  EndpointPattern(const EndpointPattern&);
  EndpointPattern(EndpointPattern&&) noexcept;
  EndpointPattern& operator=(const EndpointPattern&);
  EndpointPattern& operator=(EndpointPattern&&) noexcept;
  friend bool operator==(const EndpointPattern&, const EndpointPattern&) = default;

  std::optional<std::string> scheme;  // "http", "https"
  std::optional<std::string> host;    // exact, "*.suffix", "[::1]", a Unicode name, or "*"
  std::optional<std::uint16_t> port;
  std::optional<std::string> path;   // "/a/{id}/*/**"
  std::vector<std::string> methods;  // empty: all
};

// What is wrong with one part of a pattern ("host", "path", …), in a sentence; empty where nothing
// is.
struct PatternProblem {
  std::string part;
  std::string message;
};
[[nodiscard]] HTTPRETRY_API std::vector<PatternProblem> problems_of(const EndpointPattern& pattern);

// Finds the winning pattern. Immutable; patterns keep the number they were given in.
class HTTPRETRY_API EndpointIndex {
 public:
  EndpointIndex();
  // The patterns must be without problems.
  explicit EndpointIndex(const std::vector<EndpointPattern>& patterns);

  // The number of the winner; empty where none matches. Does not allocate; its cost does not grow
  // with the number of patterns.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view method, const Url& url) const;

  // Every pattern that matches, the winner first.
  [[nodiscard]] std::vector<std::size_t> matches(std::string_view method, const Url& url) const;
  // Why pattern `loser` is less specific than `winner`: "its host is a suffix, not exact".
  [[nodiscard]] std::string why_less(std::size_t loser, std::size_t winner) const;

  // Pairs of patterns that can match the same request and are equally specific, each as (later,
  // earlier).
  struct Tie {
    std::size_t later;
    std::size_t earlier;
  };
  [[nodiscard]] const std::vector<Tie>& ties() const;

  struct Data;

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace httpretry
