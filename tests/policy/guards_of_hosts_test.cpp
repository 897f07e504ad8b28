// Guards of scope "host" that two places of a file state for one host.
#include "tests/policy/policy_cases.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace httpretry;

namespace {

constexpr const char* kRate = R"({"limit": "10/s"})";

// The problems of a file with two entries, which have these conditions and rates.
std::string problems_of(const std::string& first, const std::string& second,
                        const std::string& second_rate, const std::string& first_rate = kRate,
                        const std::string& fallback = "{}") {
  const auto entry = [](const std::string& match, const std::string& rate) {
    return R"({"match": {)" + match + R"(}, "policy": {"rate": )" + rate + "}}";
  };
  return cases::said_of(R"({"version": 1, "default": )" + fallback + R"(, "endpoints": [)" +
                        entry(first, first_rate) + ", " + entry(second, second_rate) + "]}");
}

struct HostRow {
  const char* first;   // the conditions of an entry
  const char* second;  // those of another
  bool share;          // one host may have requests to both
};

}  // namespace

TEST_CASE("two rates for one host are an error if they differ, and otherwise a warning") {
  for (const auto& row : {
           HostRow{R"("host": "a")", R"("host": "a", "path": "/x")", true},
           HostRow{R"("host": "a")", R"("host": "b", "path": "/x")", false},
           HostRow{R"("host": ["b", "a"])", R"("host": ["a", "c"], "path": "/x")", true},
           HostRow{R"("host": "a", "port": 1)", R"("host": "a", "port": 1, "path": "/x")", true},
           HostRow{R"("host": "a", "port": 1)", R"("host": "a", "port": 2, "path": "/x")", false},
           HostRow{R"("host": "a", "port": 1)", R"("host": "a", "path": "/x")", true},
           HostRow{R"("host": "a")", R"("host": "a", "port": 1, "path": "/x")", true},
           HostRow{R"("host": "a", "scheme": "http")",
                   R"("host": "a", "scheme": "http", "path": "/x")", true},
           HostRow{R"("host": "a", "scheme": "http")",
                   R"("host": "a", "scheme": "https", "path": "/x")", false},
           HostRow{R"("host": "a", "scheme": "http")", R"("host": "a", "path": "/x")", true},
           HostRow{R"("host": "a")", R"("host": "a", "scheme": "https", "path": "/x")", true},
           HostRow{R"("host": "a", "scheme": "http", "port": 1)",
                   R"("host": "a", "scheme": "http", "port": 2, "path": "/x")", false},
       }) {
    CAPTURE(row.first);
    CAPTURE(row.second);
    const auto equal = problems_of(row.first, row.second, kRate);
    const auto different = problems_of(row.first, row.second, R"({"limit": "20/s"})");
    if (row.share) {
      const std::string both = R"(its "rate" and that of /endpoints/0 are both for the host "a", )";
      CHECK(equal.find("warning: /endpoints/1: " + both + "but are counted separately") !=
            std::string::npos);
      CHECK(different.find(": /endpoints/1: " + both + "and differ") != std::string::npos);
      CHECK(different.find("warning") == std::string::npos);
    } else {
      CHECK(equal.empty());
      CHECK(different.empty());
    }
    const std::string of_endpoint = R"({"limit": "20/s", "scope": "endpoint"})";
    CHECK(problems_of(row.first, row.second, of_endpoint).empty());
    CHECK(problems_of(row.first, row.second, kRate, of_endpoint).empty());
  }
}

TEST_CASE("each entry is compared with all before it that are of another place") {
  const auto said = [](const std::string& first, const std::string& second,
                       const std::string& third) {
    const auto entry = [](const std::string& match, const std::string& policy) {
      return R"({"match": {"host": "a", )" + match + R"(}, "policy": )" + policy + "}";
    };
    const std::string own = R"({"rate": {"limit": "20/s"}})";
    return cases::said_of(
        R"({"version": 1, "policies": {"p": {"rate": {"limit": "10/s"}}}, "endpoints": [)" +
        entry(first, "\"p\"") + ", " + entry(second, "\"p\"") + ", " + entry(third, own) + "]}");
  };
  const std::string message =
      R"(: /endpoints/2: its "rate" and that of /endpoints/1 are both for the host "a", and differ)";
  CHECK(said(R"("port": 1)", R"("port": 2)", R"("port": 2, "path": "/x")").find(message) !=
        std::string::npos);
  CHECK(said(R"("scheme": "http")", R"("scheme": "https")", R"("scheme": "https", "path": "/x")")
            .find(message) != std::string::npos);
}

TEST_CASE("two rates that may be for one host are a warning") {
  const std::string separately = " are counted separately, even for the same host";
  for (const auto& row : {
           HostRow{R"("host": "*.x.org")", R"("host": "a.x.org", "path": "/x")", true},
           HostRow{R"("host": "*.x.org")", R"("host": "a.x.org", "methods": ["GET"])", true},
           HostRow{R"("host": "*.x.org")", R"("host": "a.x.org", "headers": {"a": "b"})", true},
           HostRow{R"("host": "*.x.org")", R"("host": "a.x.org", "query": {"a": "b"})", true},
           HostRow{R"("host": "*.x.org")", R"("host": "a.x.org")", false},
           HostRow{R"("host": "*.x.org")", R"("host": "a.y.org", "path": "/x")", false},
           HostRow{R"("host": "*.x.org")", R"("host": "x.org", "path": "/x")", false},
           HostRow{R"("host": "*.x.org")", R"("host": "ax.org", "path": "/x")", false},
           HostRow{R"("host": "*.ax.org")", R"("host": "*.x.org", "path": "/x")", false},
           HostRow{R"("host": "*.x.org")", R"("host": "*.b.x.org", "path": "/x")", true},
           HostRow{R"("host": "*.b.x.org")", R"("host": "*.x.org", "path": "/x")", true},
           HostRow{R"("host": "*.b.x.org")", R"("host": "*.c.x.org", "path": "/x")", false},
           HostRow{R"("host": "a.*.x.org")", R"("host": "a.b.x.org", "path": "/x")", true},
           HostRow{R"("host": ["u", "*.x.org"])", R"("host": ["v", "a.x.org"], "path": "/x")",
                   true},
           HostRow{R"("host": "*.x.org", "port": 1)",
                   R"("host": "a.x.org", "port": 1, "path": "/x")", true},
           HostRow{R"("host": "*.x.org", "port": 1)",
                   R"("host": "a.x.org", "port": 2, "path": "/x")", false},
           HostRow{R"("host": "*.x.org", "port": 1)", R"("host": "a.x.org", "path": "/x")", true},
           HostRow{R"("host": "*.x.org", "scheme": "http")",
                   R"("host": "a.x.org", "scheme": "https", "path": "/x")", false},
           HostRow{R"("path": "/y")", R"("host": "a", "path": "/x")", true},
           HostRow{R"("path": "/y")", R"("host": "a")", false},
       }) {
    CAPTURE(row.first);
    CAPTURE(row.second);
    const auto problems = problems_of(row.first, row.second, R"({"limit": "20/s"})");
    const auto expected =
        R"(warning: /endpoints/1: its "rate" and that of /endpoints/0)" + separately;
    CHECK((problems.find(expected) != std::string::npos) == row.share);
    if (!row.share) CHECK(problems.empty());
  }
  const auto with_default = [](const char* match) {
    return problems_of(match, R"("host": "b")", kRate, kRate, R"({"rate": {"limit": "20/s"}})");
  };
  CHECK(with_default(R"("host": "a", "path": "/x")")
            .find(R"(/endpoints/0: its "rate" and that of the default)" + separately) !=
        std::string::npos);
  CHECK(with_default(R"("host": "a")").empty());
}
