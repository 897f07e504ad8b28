#include "keyed_hash.hpp"

#include <bit>

namespace httpretry {
namespace {

// The four words of state of SipHash-2-4 (Aumasson and Bernstein, 2012), there called v0 to v3.
struct SipState {
  std::uint64_t a, b, c, d;

  // Performs rounds of SipRound, the permutation that SipHash is made of.
  void mix(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      a += b;
      b = std::rotl(b, 13) ^ a;
      a = std::rotl(a, 32);
      c += d;
      d = std::rotl(d, 16) ^ c;
      a += d;
      d = std::rotl(d, 21) ^ a;
      c += b;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }
  // Adds eight bytes of the text to the state.
  void add(std::uint64_t word) {
    d ^= word;
    mix(2);
    a ^= word;
  }
};

// Returns the word with the first byte as its lowest, whatever the machine's byte order is.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[index])} << (8 * index);
  }
  return word;
}

}  // namespace

std::uint64_t keyed_hash(std::uint64_t key, std::uint64_t second_key, std::string_view text) {
  // The initial constants of SipHash spell "somepseudorandomlygeneratedbytes".
  SipState state{key ^ 0x736f6d6570736575, second_key ^ 0x646f72616e646f6d,
                 key ^ 0x6c7967656e657261, second_key ^ 0x7465646279746573};
  const auto length = std::uint64_t{text.size()} << 56U;  // the top byte of the last word
  for (; text.size() >= 8; text.remove_prefix(8)) state.add(word_of(text.substr(0, 8)));
  state.add(length | word_of(text));
  state.c ^= 0xff;
  state.mix(4);
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace httpretry
