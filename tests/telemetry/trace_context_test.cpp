// W3C Trace Context and Baggage: what is taken, and what is not.
#include <httpretry/http/headers.hpp>
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

using namespace httpretry;

TEST_CASE("a traceparent is read as the standard says") {
  struct Row {
    const char* text;
    bool good;
    const char* written;
  };
  constexpr auto* kGood = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const Row rows[] = {
      {kGood, true, kGood},
      {" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\t", true, kGood},
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true,
       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"},
      // Only the two known flags go on.
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", true,
       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"},
      {"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes", true, kGood},
      {"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true, kGood},
      {"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", false, ""},
      {"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, ""},
      {"00-00000000000000000000000000000000-b7ad6b7169203331-01", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, ""},
      {"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", false, ""},
      {"00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01", false, ""},
      {"0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, ""},
      // One part alone that is not hexadecimal, or not separated.
      {"00-0af7651916cd43dg8448eb211c80319c-b7ad6b7169203331-01", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g", false, ""},
      {"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01", false, ""},
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01", false, ""},
      // A half of the trace id may be zero.
      {"00-00000000000000008448eb211c80319c-b7ad6b7169203331-02", true,
       "00-00000000000000008448eb211c80319c-b7ad6b7169203331-02"},
      {"00-0af7651916cd43dd0000000000000000-0000000000000001-01", true,
       "00-0af7651916cd43dd0000000000000000-0000000000000001-01"},
      {"", false, ""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    const auto context = TraceContext::parse(row.text);
    CHECK(context.has_value() == row.good);
    if (context) CHECK(context->traceparent() == row.written);
  }
}

TEST_CASE("a tracestate goes on untouched, or not at all") {
  constexpr auto* kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto state = [&](std::string_view text) {
    return TraceContext::parse(kParent, text)->state;
  };
  CHECK(state("a=1, b@c=2,,d=3 4") == "a=1,b@c=2,d=3 4");
  CHECK(state("no pair").empty());
  CHECK(state("pair").empty());
  CHECK(state("a=1,pair").empty());
  CHECK(state("=1").empty());
  CHECK(state("a=").empty());
  CHECK(state("a=\x1F").empty());
  CHECK(state("a=\x7F").empty());
  CHECK(state("a=!~") == "a=!~");
  CHECK(state("A=1").empty());
  CHECK(state("a=b=c").empty());
  std::string many;
  for (int i = 0; i < 40; ++i) many += "k" + std::to_string(i) + "=v,";
  CHECK(state(many).ends_with("k31=v"));
  CHECK(state("a=" + std::string(257, 'x')).empty());
  CHECK(state("a=" + std::string(256, 'x')).size() == 258);
  CHECK(state(std::string(257, 'a') + "=x").empty());
  CHECK(state(std::string(256, 'a') + "=x").size() == 258);
}

TEST_CASE("baggage keeps whole members up to 8192 bytes") {
  constexpr auto* kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  std::string many;
  for (int i = 0; i < 64; ++i)
    many += "key" + std::to_string(100 + i) + "=" + std::string(100, 'v') + ",";
  const auto all = TraceContext::parse(kParent, "", many)->baggage;
  CHECK(all.size() == many.size() - 1);
  const auto less =
      TraceContext::parse(kParent, "", many + "long=" + std::string(3000, 'x'))->baggage;
  CHECK(less == all);
  // The first member with its comma has 100 bytes, so the last one fits exactly, or not at all.
  const std::string first = "a=" + std::string(97, 'x') + ",";
  const auto last = [&](std::size_t size) { return "b=" + std::string(size - 2, 'y'); };
  CHECK(TraceContext::parse(kParent, "", first + last(8092))->baggage == first + last(8092));
  CHECK(TraceContext::parse(kParent, "", first + last(8093))->baggage + "," == first);
  CHECK(TraceContext::parse(kParent, "", "a=1;p=2, b=%20")->baggage == "a=1;p=2,b=%20");
  // A header must not have a control byte, so propagate() could not send it.
  CHECK(TraceContext::parse(kParent, "", "a=1,b=\n,c=3,d=\x7F")->baggage == "a=1,c=3");
}

TEST_CASE("several headers are joined") {
  Headers headers;
  headers.add("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  headers.add("tracestate", "a=1");
  headers.add("tracestate", "b=2");
  headers.add("baggage", "c=3");
  const auto context = TraceContext::from(headers);
  REQUIRE(context);
  CHECK(context->state == "a=1,b=2");
  CHECK(context->baggage == "c=3");
  CHECK_FALSE(TraceContext::from(Headers()));
}

TEST_CASE("a URL is shown without secrets") {
  const auto shown = [](const char* url) { return redacted(*Url::parse(url)); };
  CHECK(shown("https://me:pw@h/a?X-Amz-Signature=ab&page=2&sig=c") ==
        "https://REDACTED:REDACTED@h/a?X-Amz-Signature=REDACTED&page=2&sig=REDACTED");
  CHECK(shown("https://h/?AWSAccessKeyId=a&X-Goog-Signature=b&Signature=c&api_key=d&q=e") ==
        "https://h/?AWSAccessKeyId=REDACTED&X-Goog-Signature=REDACTED&Signature=REDACTED&api_key="
        "REDACTED&q=e");
  CHECK(shown("https://h/?s3cr3t") == "https://h/?REDACTED");
  CHECK(shown("https://h/a#f") == "https://h/a");
}
