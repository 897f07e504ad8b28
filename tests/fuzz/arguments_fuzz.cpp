// Any lines as the words of a command line: they are read, or there is a message for the user.
#include "apps/httpretry/cli/args.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;  // NOLINT

namespace {

// One flag of each kind.
cli::FlagTable table() {
  const auto seconds = [](const std::string& text) {
    if (cli::parse_seconds(text, "--max-time") < Duration::zero()) std::abort();
  };
  const auto bytes = [](const std::string& text) { cli::parse_bytes(text, "--limit-rate"); };
  const auto count = [](const std::string& text) {
    if (cli::parse_count(text, "--retry") < 0) std::abort();
  };
  const auto unit = [](const std::string& text) {
    const auto value = cli::parse_unit(text, "--random");
    if (!(value >= 0 && value <= 1)) std::abort();
  };
  const auto any = [](const std::string&) {};
  return {{"All",
           {cli::help_flag(),
            {'s', "silent", "", "a switch", any},
            {'d', "data", "DATA", "a value", any},
            {'m', "max-time", "SECONDS", "a time", seconds},
            {'\0', "limit-rate", "SPEED", "a size", bytes},
            {'\0', "retry", "N", "a count", count},
            {'\0', "random", "R", "a share", unit},
            {'\0', "report", "[=FILE]", "perhaps a value", any},
            {'\0', "color", "auto|always|never", "a choice", any}}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto flags = table();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find('\n'));
    words.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  try {
    if (cli::parse(words, flags).size() > words.size()) std::abort();
  } catch (const cli::UsageError& wrong) {
    if (std::string_view(wrong.what()).empty()) std::abort();
  } catch (const cli::HelpRequested&) {
  }
  return 0;
}
