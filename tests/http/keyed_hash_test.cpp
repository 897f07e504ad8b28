#include "lib/core/base/keyed_hash.hpp"

#include <doctest/doctest.h>

#include <string>

using httpretry::keyed_hash;

// From the paper and the reference implementation of SipHash-2-4.
TEST_CASE("the keyed hash is SipHash-2-4") {
  const std::uint64_t low = 0x0706050403020100;
  const std::uint64_t high = 0x0f0e0d0c0b0a0908;
  std::string text;
  CHECK(keyed_hash(low, high, text) == 0x726fdb47dd0e0e31);
  for (char byte = 0; byte < 8; ++byte) text.push_back(byte);
  CHECK(keyed_hash(low, high, text) == 0x93f5f5799a932462);
  for (char byte = 8; byte < 15; ++byte) text.push_back(byte);
  CHECK(keyed_hash(low, high, text) == 0xa129ca6149be45e5);
}

TEST_CASE("another key gives another hash") {
  CHECK(keyed_hash(1, "Bearer a") == keyed_hash(1, "Bearer a"));
  CHECK(keyed_hash(1, "Bearer a") != keyed_hash(2, "Bearer a"));
  CHECK(keyed_hash(1, "Bearer a") != keyed_hash(1, "Bearer b"));
}
