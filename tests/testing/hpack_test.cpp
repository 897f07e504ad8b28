#include <lib/extras/testing/hpack.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

using namespace httpretry::faults;

namespace {

using Strings = std::vector<std::string>;

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return bytes;
}

// "name: value" of each field; only "malformed" if the block is.
Strings decoded(HpackDecoder& decoder, const std::string& block) {
  const auto fields = decoder.decode(block);
  if (!fields) return {"malformed"};
  Strings lines;
  for (const auto& field : *fields) lines.push_back(field.name + ": " + field.value);
  return lines;
}

Strings decoded_alone(const std::string& block) {
  HpackDecoder decoder;
  return decoded(decoder, block);
}

}  // namespace

TEST_CASE("the requests of RFC 7541, appendix C.4, are decoded") {
  HpackDecoder decoder;
  CHECK(decoded(decoder, bytes_of("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff")) ==
        Strings{":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"});
  CHECK(decoded(decoder, bytes_of("8286 84be 5886 a8eb 1064 9cbf")) ==
        Strings{":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com",
                "cache-control: no-cache"});
  CHECK(decoded(decoder, bytes_of("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf")) ==
        Strings{":method: GET", ":scheme: https", ":path: /index.html",
                ":authority: www.example.com", "custom-key: custom-value"});
}

// They need a table of 256 bytes, which the first one sets.
TEST_CASE("the responses of RFC 7541, appendix C.6, which evict entries, are decoded") {
  HpackDecoder decoder;
  CHECK(decoded(decoder, bytes_of("3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8"
                                  "2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b"
                                  "97c8 e9ae 82ae 43d3")) ==
        Strings{":status: 302", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT",
                "location: https://www.example.com"});
  CHECK(decoded(decoder, bytes_of("4883 640e ffc1 c0bf")) ==
        Strings{":status: 307", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT",
                "location: https://www.example.com"});
  CHECK(decoded(decoder, bytes_of("88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d"
                                  "1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b"
                                  "3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed"
                                  "4ee5 b106 3d50 07")) ==
        Strings{":status: 200", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:22 GMT",
                "location: https://www.example.com", "content-encoding: gzip",
                "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"});
  CHECK(decoded(decoder, "\xbe") ==
        Strings{"set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"});
  CHECK(decoded(decoder, "\xc1") == Strings{"malformed"});  // three fit
}

TEST_CASE("a literal of any length is decoded to what was written") {
  for (const std::size_t size : {0U, 1U, 126U, 127U, 128U, 254U, 255U, 300U, 20'000U}) {
    CAPTURE(size);
    const std::string value(size, 'v');
    CHECK(decoded_alone(hpack_literal("name", value)) == Strings{"name: " + value});
  }
  CHECK(decoded_alone(hpack_literal("a", "1") + hpack_literal("b", "")) == Strings{"a: 1", "b: "});
}

TEST_CASE("a number has at most four bytes after its prefix") {
  const std::string value(127, 'v');
  CHECK(decoded_alone(bytes_of("0001617f80808000") + value) == Strings{"a: " + value});
  CHECK(decoded_alone(bytes_of("0001617f8080808000") + value) == Strings{"malformed"});
}

// RFC 7541, appendix B. The codes fill their space, so a wrong length of any symbol moves the last
// ones.
TEST_CASE("the symbols with the longest codes are decoded") {
  const std::pair<const char*, const char*> rows[] = {
      {"83ffffea", "\t"},      // 24 bits
      {"84fffffff3", "\n"},    // 30 bits, and two of padding
      {"84fffffff7", "\r"},    // the same
      {"84fffffffb", "\x16"},  // the same
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK(decoded_alone(bytes_of("000161") + bytes_of(row.first)) ==
          Strings{std::string("a: ") + row.second});
  }
}

// RFC 7541, appendix B. The codes were compared with those of libnghttp2.
TEST_CASE("each symbol of the Huffman code is decoded") {
  std::string all;
  for (int symbol = 0; symbol < 256; ++symbol) all += static_cast<char>(symbol);
  const auto* const codes =
      "ffc7fffd8fffffe2fffffe3fffffe4fffffe5fffffe6fffffe7fffffe8ffffeafffffff3fffffa7fffffabff"
      "ffffdfffffebfffffecfffffedfffffeefffffefffffff0ffffff1ffffff2fffffffbfffffcffffffd3fffff"
      "d7fffffdbfffffdffffffe3fffffe7fffffebfffffed4fe3f9ffaffcabf1febfafefe7fdfd2cbb00089969b7"
      "1d79fb9f7fff20ffbff3ff50ddbd7f061c58f265cd9f469d5af66dddbf871e5f9cff7ff7fffc3ff9ffe45fff"
      "4719242cb34e6e9d68a6a3d7dac426defe3cfaf7fffbfe7ffbffdffffffcfffe6ffff4bfff9ffffa3fffd3ff"
      "ff53fffd5ffffb3fffeb7fffdaffffb7ffff73fffeeffffdeffffebffffbfffffd9ffffdbfffebffffe0ffff"
      "eeffffc3ffff8bffff1ffffe4fffee7fffb1ffff97fffd9ffffcdffff9fffffbffffdafffeeffff4ffffb7ff"
      "fee7fffe8ffffd3fffdeffffd5fffeeffffbdffffe1fffdfffff7fffff5ffffecffff07fff87fffe0ffff17f"
      "ffedffff87ffff77fffeffffeaffff8bfffe3ffff93ffff87fffcbffff37ffff1fffff83ffffe1fffebfffe3"
      "ffff3fffff2ffffa3ffffd9fffff17ffffc7fffff27ffffdefffffbffffff2fffff8fffffb7fff97fff8ffff"
      "fe6fffffc1fffff87ffffe7fffffc5ffffe5fffe4ffff2fffffd1fffff4ffffffefffffe3fffffc9fffff97f"
      "ffb3ffffcffffb7fffcdffff4ffff9ffffd1ffffcffffeaffffafffffddffffeffffff4fffff5fffffabffff"
      "a7ffffd7fffff9bffffecfffffb7fffff3fffffe8fffffd3fffffabfffff5fffffff7ffffecfffffdbfffffb"
      "bfffff7ffffff0fffffbbf";
  // The code of each byte, from 0 to 255, and one bit of padding.
  CHECK(decoded_alone(bytes_of("000161ffc803") + bytes_of(codes)) == Strings{"a: " + all});
}

TEST_CASE("a malformed block is rejected") {
  for (const std::string hex : {
           "80",                // no field has the index 0
           "8001610161",        // the same, and a literal after it
           "be",                // the table is empty
           "ff80808080808080",  // a number without end
           "ff",                // a number without its end
           "3fe21f",            // a table of 4097 bytes
           "0001",              // no name
           "000161",            // no value
           "00016105616161",    // a value that is longer than the block
           "00016184ffffffff",  // the end of a string within a string
           "000161821fff",      // padding of a whole byte
           "0001618118",        // "a", and padding that is not ones
       }) {
    CAPTURE(hex);
    CHECK(decoded_alone(bytes_of(hex)) == Strings{"malformed"});
  }
  CHECK(decoded_alone(bytes_of("000161811f")) == Strings{"a: a"});
}

TEST_CASE("the first byte of an entry tells its kind") {
  CHECK(decoded_alone(bytes_of("81")) == Strings{":authority: "});            // indexed
  CHECK(decoded_alone(bytes_of("bd")) == Strings{"www-authenticate: "});      // the last one, 61
  CHECK(decoded_alone(bytes_of("4001610162be")) == Strings{"a: b", "a: b"});  // added to the table
  CHECK(decoded_alone(bytes_of("410162be")) == Strings{":authority: b", ":authority: b"});
  CHECK(decoded_alone(bytes_of("20")).empty());      // a table of 0 bytes
  CHECK(decoded_alone(bytes_of("3fe11f")).empty());  // a table of 4096 bytes
  CHECK(decoded_alone(bytes_of("204001610162be")) == Strings{"malformed"});
  CHECK(decoded_alone(bytes_of("0001610162")) == Strings{"a: b"});  // a literal
  CHECK(decoded_alone(bytes_of("1001610162")) == Strings{"a: b"});  // one never to be added
  CHECK(decoded_alone(bytes_of("0001610162be")) == Strings{"malformed"});
}

TEST_CASE("the table has 4096 bytes, of which a field takes 32 besides its texts") {
  const auto added = [](std::size_t size) {
    auto literal = hpack_literal("name", std::string(size - 4 - 32, 'v'));
    literal.front() = '\x40';
    return literal;
  };
  const std::string newest = "\xbe";
  CHECK(decoded_alone(added(4096) + newest).size() == 2);
  CHECK(decoded_alone(added(4097) + newest) == Strings{"malformed"});
  // Two fields that fill the table, and two of which the older one must go.
  const std::string both = "\xbe\xbf";
  CHECK(decoded_alone(added(96) + added(4000) + both).size() == 4);
  CHECK(decoded_alone(added(96) + added(4001) + newest).size() == 3);
  CHECK(decoded_alone(added(96) + added(4001) + both) == Strings{"malformed"});
}

TEST_CASE("a small block that stands for more than 64 KiB of headers is rejected") {
  HpackDecoder decoder;
  auto added = hpack_literal("name", std::string(4060, 'v'));  // 4 KiB with its overhead
  added.front() = '\x40';                                      // with indexing
  REQUIRE(decoded(decoder, added).front() != "malformed");
  CHECK(decoded(decoder, std::string(16, '\xbe')).size() == 16);
  CHECK(decoded(decoder, std::string(17, '\xbe')) == Strings{"malformed"});
}
