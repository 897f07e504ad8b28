#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace httpretry {
namespace {

struct Word {
  std::string_view text;
  Fault fault;
};

// A fault's first word is its own; further ones are only understood.
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

Interim::Interim(int code, Headers fields) : status(code), headers(std::move(fields)) {}

Step::Step(Fault what) : fault(what) {}
Step::Step(int code, std::string content) : status(code), body(std::move(content)) {}
Step::Step(int code, Headers fields, std::string content)
    : status(code), headers(std::move(fields)), body(std::move(content)) {}

Script::Script(std::vector<Step> list) : steps(std::move(list)) {}
Script::Script(std::initializer_list<Step> list) : steps(list) {}

Scenario::Scenario(std::vector<Step> list) : Script(std::move(list)) {}
Scenario::Scenario(std::initializer_list<Step> list) : Script(std::vector<Step>(list)) {}

}  // namespace httpretry
