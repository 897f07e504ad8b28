#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

struct Word {
  std::string_view text;
  Fault fault;
};

// `to_string` uses the first word of a fault; `parse_fault` accepts all of them.
constexpr std::array<Word, 20> kWords{{
    {"none", Fault::None},
    {"reset", Fault::Reset},
    {"close", Fault::Close},
    {"reset_early", Fault::ResetEarly},
    {"reset_during", Fault::ResetDuring},
    {"truncate", Fault::Truncate},
    {"timeout", Fault::Hang},
    {"hang", Fault::Hang},
    {"drip", Fault::Drip},
    {"garbage", Fault::Garbage},
    {"stale", Fault::Stale},
    {"huge", Fault::Huge},
    {"bad_chunk", Fault::BadChunk},
    {"huge_headers", Fault::HugeHeaders},
    {"endless_interim", Fault::EndlessInterim},
    {"gzip_cut_short", Fault::GzipCutShort},
    {"tls_stall", Fault::TlsStall},
    {"tls", Fault::TlsReset},
    {"refused", Fault::Refused},
    {"resolve", Fault::Resolve},
}};

}  // namespace

std::string_view to_string(Fault fault) {
  const auto* word = std::find_if(kWords.begin(), kWords.end(),
                                  [fault](const Word& known) { return known.fault == fault; });
  return word == kWords.end() ? "" : word->text;
}

std::optional<Fault> parse_fault(std::string_view word) {
  for (const auto& known : kWords) {
    if (known.text == word) return known.fault;
  }
  return std::nullopt;
}

}  // namespace httpretry
