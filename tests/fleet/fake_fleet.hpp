// Shared by the tests in which a FakeRedis replies to processes that share limits.
#pragma once

#include "fake_redis.hpp"

#include "lib/extras/fleet/link.hpp"
#include "tests/waiting.hpp"

#include <string>

namespace httpretry::fleet {

using namespace std::chrono_literals;

inline Link::Options options_for(const FakeRedis& server) {
  Link::Options options;
  options.address = server.address("?workers=2");
  options.reply_timeout = 5s;  // this machine may be busy
  options.connect_timeout = 5s;
  options.first_wait = 5ms;
  return options;
}

// Replies to the snapshots of a RedisState, too.
inline std::string usual(const FakeRedis::Words& words) {
  if (FakeRedis::key_of(words) != "{httpretry}:processes:all") return FakeRedis::usual(words);
  return "*4\r\n:1\r\n*0\r\n*0\r\n" + FakeRedis::bulk("1");
}

// Calls `act` until the state has sent three more of its snapshots, one in each of its ticks.
template <class Act>
void repeat_for_ticks(const FakeRedis& server, const Act& act) {
  const auto end = server.commands("{httpretry}:processes") + 3;
  wait_until([&] {
    act();
    return server.commands("{httpretry}:processes") >= end;
  });
}

}  // namespace httpretry::fleet
