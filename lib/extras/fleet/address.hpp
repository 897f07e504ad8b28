// Address: the parts of the URL of a Redis server.
#pragma once

#include <httpretry/http/result.hpp>
#include <httpretry/http/time.hpp>

#include <string>
#include <string_view>

namespace httpretry::fleet {
namespace detail {

// redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?job=NAME&workers=N&timeout=MS]
struct HTTPRETRY_API Address {
  std::string host;  // without brackets
  int port = 6379;
  std::string user;
  std::string password;
  int database = 0;
  std::string job;                                   // the name of a queue; empty for limits
  int workers = 1;                                   // least number of processes that share limits
  Duration timeout = std::chrono::milliseconds(50);  // limit for one reply

  // Returns the URL for messages, without user and password.
  [[nodiscard]] std::string text() const;
};

// Parses a URL. Returns Errc::InvalidRequest if it is malformed. The message states the position
// and the expected form, and never repeats the password.
[[nodiscard]] HTTPRETRY_API Result<Address> parse_address(std::string_view url);

}  // namespace detail
using detail::Address;
using detail::parse_address;

}  // namespace httpretry::fleet
