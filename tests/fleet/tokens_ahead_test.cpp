// The tokens of a rate that a process has taken before it needs them.
#include "lib/extras/fleet/shared_scope.hpp"

#include <doctest/doctest.h>

using namespace httpretry;         // NOLINT
using namespace httpretry::fleet;  // NOLINT
using namespace std::chrono_literals;

TEST_CASE("tokens are given back when none was used in this and the last 100 ms") {
  for (const int used : {0, 1, 2}) {
    for (const auto later : {0ms, 99ms, 100ms, 199ms, 200ms, 1000ms}) {
      CAPTURE(used);
      CAPTURE(later.count());
      const Time start(10s);
      TokensAhead tokens;
      tokens.query.start(start);
      tokens.on_reply({.count = 5, .first = start}, start);
      for (int count = 0; count < used; ++count) tokens.take(start);
      const bool gives_back = used == 0 || later >= 200ms;
      CHECK(tokens.take_unused(start + later) == (gives_back ? 5 - used : 0));
      CHECK(tokens.count() == (gives_back ? 0 : 5 - used));
    }
  }
}
