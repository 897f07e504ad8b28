#pragma once

namespace httpretry {

// Returns how many random cases a test tries: a quarter of them in builds with a sanitizer, where
// each takes many times as long.
constexpr int rounds(int all) {
#ifdef HTTPRETRY_FEWER_ROUNDS
  return all / 4;
#else
  return all;
#endif
}

}  // namespace httpretry
