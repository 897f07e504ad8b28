// Which URLs an origin of PendingRule::origins allows.
#include "lib/core/retry/origins.hpp"

#include <doctest/doctest.h>

using namespace httpretry;

TEST_CASE("what is listed as an origin has a scheme and a host, and nothing after the port") {
  for (const char* good :
       {"https://a.test", "HTTP://A.test:8080", "https://*.a.test", "https://[::1]:8443",
        "http://127.0.0.1", "https://bücher.example", "https://*.prod.zone1", "https://*.v2"}) {
    CAPTURE(good);
    CHECK(policy::is_origin_pattern(good));
  }
  for (const char* bad : {"",
                          "a.test",
                          "//a.test",
                          "ftp://a.test",
                          "https://",
                          "https://*",
                          "https://*.",
                          "https://a.*.test",
                          "https://*a.test",
                          "https://*.*.test",
                          "https://*.0.0.1",
                          "https://*.0x7f000001",
                          "https://*.a.12",
                          "https://*.[::1]",
                          "https://a.test/",
                          "https://a.test/v1",
                          "https://a.test?q",
                          "https://a.test#f",
                          "https://ann@a.test",
                          "https://a.test:99999",
                          "https://a b"}) {
    CAPTURE(bad);
    CHECK_FALSE(policy::is_origin_pattern(bad));
  }
}

TEST_CASE("an origin fits where scheme, host and port do; of a suffix there is a label before it") {
  struct Row {
    const char* pattern;
    const char* url;
    bool fits;
  };
  const Row rows[] = {
      {"https://a.test", "https://a.test/x?y", true},
      {"https://A.test:443", "https://a.test/", true},
      {"https://a.test", "http://a.test/", false},
      {"https://a.test", "https://a.test:8443/", false},
      {"https://a.test", "https://b.a.test/", false},
      {"https://a.test", "https://a.test.evil/", false},
      {"https://*.a.test", "https://b.a.test/", true},
      {"https://*.a.test", "https://c.b.A.test/", true},
      {"https://*.a.test", "https://a.test/", false},
      {"https://*.a.test", "https://evila.test/", false},
      {"https://*.a.test", "http://b.a.test/", false},
      {"https://*.a.test:8443", "https://b.a.test/", false},
      {"https://*.a.test:8443", "https://b.a.test:8443/", true},
      {"https://*.prod.zone1", "https://a.prod.zone1/", true},
      {"https://bücher.example", "https://xn--bcher-kva.example/", true},
      {"not an origin", "https://a.test/", false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.pattern);
    CAPTURE(row.url);
    CHECK(policy::fits_origin(row.pattern, Url::parse(row.url).value()) == row.fits);
  }
}
