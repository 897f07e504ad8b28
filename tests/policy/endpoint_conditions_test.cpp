// Conditions on headers and query, and what ties.
#include "endpoint_patterns.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using endpoint_test::pattern;
using endpoint_test::url;

TEST_CASE("headers and query are looked at, and more conditions are more specific") {
  const EndpointIndex index({pattern("host=h"), pattern("host=h header:X-Tier=gold"),
                             pattern("host=h header:x-tier=gold query:action=Get*"),
                             pattern("host=h query:action=Put%"), pattern("host=h query:a*=*")});
  Headers gold;
  gold.add("x-TIER", "gold");
  gold.add("X-Tier", "silver");
  Headers silver;
  silver.add("X-Tier", "silver");

  CHECK(index.find("GET", url("http://h/"), silver) == 0);
  CHECK(index.find("GET", url("http://h/"), gold) == 1);
  CHECK(index.find("GET", url("http://h/?b&action=GetItem"), gold) == 2);
  CHECK(index.find("GET", url("http://h/?b&%61ction=%47etItem"), gold) == 2);
  CHECK(index.find("GET", url("http://h/?b&action=getItem"), gold) == 1);
  CHECK(index.find("GET", url("http://h/?action=Put&action=GetItem"), gold) == 1);
  CHECK(index.find("GET", url("http://h/?action=Put%25")) == 3);
  CHECK(index.find("GET", url("http://h/?a%2a")) == 4);
  CHECK(index.find("GET", url("http://h/#?action=Put%25")) == 0);
  const auto all = index.matches("GET", url("http://h/?action=Get"), gold);
  REQUIRE(all.size() == 3);
  CHECK(EndpointIndex::why_less(all[1], all[0]) == "it has fewer conditions");
  CHECK(EndpointIndex::why_less(all[2], all[1]) == "it has fewer conditions");
}

TEST_CASE("what can match the same request and is equally specific is a tie") {
  const auto ties = [](const char* one, const char* other) {
    return !EndpointIndex({pattern(one), pattern(other)}).ties().empty();
  };
  CHECK(ties("host=a.*.*.d.e", "host=*.b.*.d.e"));
  CHECK(ties("host=*.b.*.e", "host=a.*.b.*.e") == false);  // not equally specific
  CHECK_FALSE(ties("host=a.*.d.e", "host=b.*.d.e"));
  CHECK(ties("host=*.b.*.d.e", "host=a.*.*.d.e"));
  CHECK_FALSE(ties("host=a.*.*.d.e", "host=b.*.d.e"));
  CHECK_FALSE(ties("host=b.*.d.e", "host=a.*.*.d.e"));
  CHECK_FALSE(ties("host=b.*.d.e", "host=*.b.*.d.e"));
  CHECK(ties("host=a.b,c.d", "host=e.f,C.D"));
  CHECK_FALSE(ties("host=*.b,a.b", "host=c.b"));
  CHECK(ties("path=/x/**/a/**", "path=/x/**/b/**"));
  CHECK_FALSE(ties("path=/x/**/a", "path=/x/**/b"));
  CHECK_FALSE(ties("path=/x/**/a/**", "path=/y/**/b/**"));
  CHECK(ties("header:a=x", "header:b=x"));
  CHECK(ties("header:a=x", "header:A=x*"));
  CHECK_FALSE(ties("header:a=x", "header:A=y"));
  CHECK_FALSE(ties("header:a=x", "header:a=xa"));
  CHECK_FALSE(ties("header:a=xa", "header:a=x"));
  CHECK(ties("header:a=xa", "header:a=x*"));
  CHECK_FALSE(ties("header:a=ya", "header:a=x*"));
  CHECK(ties("header:a=x", "query:a=y"));
  CHECK_FALSE(ties("query:a=x*", "query:a=y*"));
  CHECK(ties("query:a=x", "query:A=y"));
}
