// Address: the URL of a Redis server, taken apart.
#pragma once

#include <httpretry/http/result.hpp>
#include <httpretry/http/time.hpp>

#include <string>
#include <string_view>

namespace httpretry::fleet {

// redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?job=NAME&workers=N&timeout=MS]
struct HTTPRETRY_API Address {
  std::string host;  // without brackets
  int port = 6379;
  std::string user;
  std::string password;
  int database = 0;
  std::string job;                                   // of a queue
  int workers = 1;                                   // how many processes share at least
  Duration timeout = std::chrono::milliseconds(50);  // of a reply

  // For messages: without user and password.
  [[nodiscard]] std::string text() const;
};

// Errc::InvalidRequest where it is none: the message says where, and what was expected, and does
// not repeat a password.
[[nodiscard]] HTTPRETRY_API Result<Address> parse_address(std::string_view url);

}  // namespace httpretry::fleet
