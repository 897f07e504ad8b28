#include <httpretry/http/time.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("durations as a policy file writes them") {
  CHECK(to_text(0ns) == "0s");
  CHECK(to_text(1ns) == "1ns");
  CHECK(to_text(51200ns) == "51.2us");
  CHECK(to_text(250ms) == "250ms");
  CHECK(to_text(1500ms) == "1.5s");
  CHECK(to_text(90s) == "1m30s");
  CHECK(to_text(1h + 1ms) == "1h0.001s");
  CHECK(to_text(24h) == "24h");
  CHECK(to_text(kForever) == "none");
  CHECK(to_text(1h + 2min + 3s + 4ns) == "1h2m3.000000004s");
  CHECK(to_text(999us + 999ns) == "999.999us");
  CHECK(to_text(-90s) == "-1m30s");
  CHECK(to_text(Duration::min()) == "-2562047h47m16.854775806s");
}
