#include "lib/extras/fleet/address.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace httpretry;
using fleet::Address;
using fleet::parse_address;

namespace {

std::string address_in_words(const Address& address) {
  return address.host + "|" + std::to_string(address.port) + "|" + address.user + "|" +
         address.password + "|" + std::to_string(address.database) + "|" + address.job + "|" +
         std::to_string(address.workers);
}

}  // namespace

TEST_CASE("a Redis URL is taken apart") {
  struct Row {
    const char* url;
    const char* expected;  // host|port|user|password|database|job|workers
  };
  const std::vector<Row> rows = {
      {"redis://localhost", "localhost|6379|||0||1"},
      {"redis://localhost/", "localhost|6379|||0||1"},
      {"REDIS://h:7000/3", "h|7000|||3||1"},
      {"redis://:secret@h/2?workers=8", "h|6379||secret|2||8"},
      {"redis://ann:a%40b%3Ac@h", "h|6379|ann|a@b:c|0||1"},
      {"redis://ann:a@b@h", "h|6379|ann|a@b|0||1"},
      {"redis://[::1]:7000/0", "::1|7000|||0||1"},
      {"redis://[::1]", "::1|6379|||0||1"},
      {"redis://h/0?job=nightly-2026.11&workers=4", "h|6379|||0|nightly-2026.11|4"},
      {"redis://h?job=a", "h|6379|||0|a|1"},
      {"redis://h?", "h|6379|||0||1"},
      {"redis://%41nn:%7e%2F@h", "h|6379|Ann|~/|0||1"},
      {"redis://h:1/0?workers=1", "h|1|||0||1"},
      {"redis://h:65535/1000000?workers=100000", "h|65535|||1000000||100000"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.url);
    const auto address = parse_address(row.url);
    REQUIRE(address.has_value());
    CHECK(address_in_words(*address) == row.expected);
  }
}

TEST_CASE("a Redis URL may say how long a reply takes, in milliseconds") {
  using std::chrono::milliseconds;
  CHECK(parse_address("redis://h").value().timeout == milliseconds(50));
  CHECK(parse_address("redis://h?timeout=200").value().timeout == milliseconds(200));
  CHECK(parse_address("redis://h?timeout=1").value().timeout == milliseconds(1));
  CHECK(parse_address("redis://h?timeout=60000").value().timeout == milliseconds(60000));
}

TEST_CASE("the name of a queue in a Redis URL has up to 100 characters") {
  const std::string name(100, 'a');
  CHECK(parse_address("redis://h?job=" + name).value().job == name);
  CHECK_FALSE(parse_address("redis://h?job=" + name + "a").has_value());
}

TEST_CASE("what is wrong with a Redis URL is told, with its position") {
  struct Row {
    const char* url;
    const char* expected;
  };
  const std::vector<Row> rows = {
      {"http://h", "position 1: it does not begin with redis://"},
      {"localhost:6379", "position 1: it does not begin with redis://"},
      {"rediss://h",
       "position 1: rediss:// is not supported: hiredis 0.14, which we use, has no TLS"},
      {"redis://", "position 9: it has no host"},
      {"redis://:p@", "position 12: it has no host"},
      {"redis://ann@h", "the user has no password"},
      {"redis://h:70000", "position 11: the port: expected a number from 1 to 65535"},
      {"redis://h:65536", "position 11: the port: expected a number from 1 to 65535"},
      {"redis://h:0", "position 11: the port: expected a number from 1 to 65535"},
      {"redis://[::1]:", "position 15: the port: expected a number"},
      {"redis://h:", "position 11: the port: expected a number"},
      {"redis://h:6379/x", "position 16: the database: expected a number from 0"},
      {"redis://h/-1", "position 11: the database"},
      {"redis://h/1000001", "position 11: the database: expected a number from 0 to 1000000"},
      {"redis://h/0?workers=0", "position 21: workers: expected a number from 1"},
      {"redis://h/0?workers=100001", "position 21: workers: expected a number from 1 to 100000"},
      {"redis://h/0?timeout=0", "position 21: timeout: expected a number from 1 to 60000"},
      {"redis://h/0?timeout=60001", "position 21: timeout: expected a number from 1 to 60000"},
      {"redis://h/0?timeout=50ms", "position 21: timeout: expected a number from 1 to 60000"},
      {"redis://h/0?worker=2",
       "position 13: unknown parameter 'worker'; expected 'job', 'workers' or 'timeout'"},
      {"redis://h/0?job=", "job: expected a name of 1 to 100 letters"},
      {"redis://h/0?job=a%7Bb", "position 17: job: expected a name"},
      {"redis://:a%4@h", "position 10: the password has a '%'"},
      {"redis://:a%4g@h", "position 10: the password has a '%'"},
      {"redis://a%:b@h", "position 9: the user has a '%'"},
      {"redis://h?job=a%", "position 15: the job has a '%'"},
      {"redis://fe80::1", "position 9: an IPv6 address must be in brackets: [::1]"},
      {"redis://[::1", "']' is missing after the host"},
      {"redis://[::1]x", "expected ':' and a port after ']'"},
      {"redis://h/0#top", "position 12: '#' is not allowed in the URL"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.url);
    const auto address = parse_address(row.url);
    REQUIRE(!address.has_value());
    CAPTURE(address.error().message);
    CHECK(address.error().code == Errc::InvalidRequest);
    CHECK(address.error().message.find(row.expected) != std::string::npos);
    CHECK(address.error().message.find("expected redis://") != std::string::npos);
  }
}

TEST_CASE("a message has no password") {
  for (const auto* url : {"redis://ann:hush@", "redis://ann:hush@h:x", "redis://:hush@h/0?a=b"}) {
    CHECK(parse_address(url).error().message.find("hush") == std::string::npos);
  }
  CHECK(parse_address("redis://ann:hush@h/1").value().text() == "redis://h:6379/1");
  CHECK(parse_address("redis://[::1]:7/1").value().text() == "redis://[::1]:7/1");
}
