// The coders alone: round trips, cuts, corruption, and data that decodes to far more.
#include "codings.hpp"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>

using namespace httpretry;
using State = ContentCoder::State;

namespace {

// Returns a text with repetitions, which takes every path of an encoder.
std::string some_text(std::mt19937& random, std::size_t size) {
  std::string text;
  while (text.size() < size) {
    const auto from = text.empty() ? 0 : random() % text.size();
    text += random() % 3 == 0 ? text.substr(from, random() % 300)
                              : std::string(1, static_cast<char>(random()));
  }
  text.resize(size);
  return text;
}

}  // namespace

TEST_CASE("what is encoded decodes to the same, in pieces of any size") {
  const auto seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    for (const std::size_t size : {0U, 1U, 100U, 70'000U, 300'000U}) {
      const auto text = some_text(random, size);
      const auto piece = 1 + random() % 5000;
      const auto room = 1 + random() % 5000;
      CAPTURE(size);
      CAPTURE(piece);
      CAPTURE(room);
      const auto encoded = run(*coding.encoder(), text, true, piece, room);
      REQUIRE(encoded.state == State::End);
      const auto decoded = decode(coding, encoded.bytes, piece, room);
      CHECK(decoded.state == State::End);
      CHECK(decoded.bytes == text);
    }
  }
}

TEST_CASE("data that is cut at any position is neither complete nor corrupt") {
  const auto seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const auto text = some_text(random, 3000);
    const auto encoded = encode(coding, text);
    for (std::size_t cut = 1; cut < encoded.size(); ++cut) {
      const auto decoded = decode(coding, encoded.substr(0, cut));
      if (decoded.state != State::MoreInput) FAIL("cut at " << cut);
      if (!text.starts_with(decoded.bytes)) FAIL("wrong bytes at " << cut);
    }
  }
}

TEST_CASE("changed bytes end in an error or in other data, and never in an endless loop") {
  const auto seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const auto encoded = encode(coding, some_text(random, 3000));
    for (int i = 0; i < 300; ++i) {
      auto changed = encoded;
      changed[random() % changed.size()] = static_cast<char>(random());
      static_cast<void>(decode(coding, changed));
    }
  }
}

TEST_CASE("a step writes no more than it has room for, whatever the data decodes to") {
  const std::string zeros(std::size_t{16} << 20, '\0');
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const auto bomb = encode(coding, zeros);
    CHECK(bomb.size() < zeros.size() / 500);
    auto decoder = coding.decoder();
    std::string_view input = bomb;
    std::string out(1000, '\0');
    for (int i = 0; i < 10; ++i) {
      const auto step = decoder->run(input, out, false);
      CHECK(step.state != State::Corrupt);
      CHECK(step.written <= out.size());
    }
    CHECK(decode(coding, bomb, 4096, 1 << 16).bytes == zeros);
  }
}

TEST_CASE("a second stream is part of the body if the coding allows it") {
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const auto twice = decode(coding, encode(coding, "one, ") + encode(coding, "two"));
    if (coding.name == "br") {
      CHECK(twice.state == State::Corrupt);
      CHECK(twice.bytes == "one, ");
    } else {
      CHECK(twice.state == State::End);
      CHECK(twice.bytes == "one, two");
    }
    CHECK(decode(coding, encode(coding, "one") + "garbage").state == State::Corrupt);
  }
}

TEST_CASE("zstd refuses a window of more than 8 MiB") {
  // A frame with one block, the letter "a". The sixth byte is the size of the window.
  const auto frame = [](char window) {
    return std::string("\x28\xB5\x2F\xFD\x00", 5) + window +
           std::string(
               "\x09\x00\x00"
               "a",
               4);
  };
  CHECK(decode(zstd(), frame('\x68')).bytes == "a");             // 8 MiB
  CHECK(decode(zstd(), frame('\x70')).state == State::Corrupt);  // 16 MiB
}

TEST_CASE("levels are checked") {
  for (const int quality : {-1, 12})
    CHECK_THROWS_AS(static_cast<void>(brotli(quality)), std::invalid_argument);
  for (const int level : {0, 20})
    CHECK_THROWS_AS(static_cast<void>(zstd(level)), std::invalid_argument);
  for (const auto& coding : {brotli(0), brotli(11), zstd(1), zstd(19)}) {
    const auto encoded = encode(coding, std::string(1000, 'x'));
    CHECK(encoded.size() < 100);
    CHECK(decode(coding, encoded).bytes == std::string(1000, 'x'));
  }
}
