// The reply of a Redis server to INFO, and what in it harms shared limits.
#include "lib/extras/fleet/server_facts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace httpretry::fleet::detail;

TEST_CASE("the reply to INFO is read line by line") {
  const auto facts = read_info(
      "# Server\r\nredis_version:6.12.3\r\nmaxmemory_human:7B\r\nmaxmemory:5\r\n"
      "maxmemory_policy:volatile-ttl\r\naof_enabled:1\r\n");
  CHECK(facts.version == "6.12.3");
  CHECK(facts.major == 6);
  CHECK(facts.minor == 12);
  CHECK(facts.max_memory == 5);
  CHECK(facts.eviction == "volatile-ttl");
  CHECK(facts.appends == true);
  CHECK(read_info("aof_enabled:0\n").appends == false);
  const auto nothing = read_info("redis_version:unstable\nmaxmemory:much");
  CHECK(nothing.major == 0);
  CHECK(nothing.minor == 0);
  CHECK(nothing.max_memory == 0);
  CHECK(nothing.eviction.empty());
  CHECK_FALSE(nothing.appends.has_value());
}

TEST_CASE("old servers and those that evict limits are problems") {
  struct Row {
    std::string info;
    std::vector<std::string> problems;
  };
  const std::string evicted =
      "maxmemory-policy is allkeys-lru: an evicted limit starts over; set it to noeviction";
  for (const auto& row : std::vector<Row>{
           {"", {}},
           {"redis_version:0.9", {}},  // not a version of Redis
           {"redis_version:5.9.9", {"Redis 5.9 is older than 6.2: limits are not shared"}},
           {"redis_version:6.1.9", {"Redis 6.1 is older than 6.2: limits are not shared"}},
           {"redis_version:6.2.0", {}},
           {"redis_version:7.0.15", {}},
           {"redis_version:10.0.1", {}},
           {"maxmemory:0\nmaxmemory_policy:allkeys-lru", {}},
           {"maxmemory:1\nmaxmemory_policy:allkeys-lru", {evicted}},
           {"maxmemory:1\nmaxmemory_policy:noeviction", {}},
           {"maxmemory:1", {}},
           {"redis_version:6.1.0\nmaxmemory:1\nmaxmemory_policy:allkeys-lru",
            {"Redis 6.1 is older than 6.2: limits are not shared", evicted}},
       }) {
    CAPTURE(row.info);
    CHECK(problems_for_limits(read_info(row.info)) == row.problems);
  }
}
