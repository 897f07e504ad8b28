// The options of programs that kill httpretry.
#pragma once

#include "ledger_server.hpp"

#include <cstddef>
#include <string>

namespace httpretry::crash {

struct Options {
  std::string program;
  std::string preload;  // a library
  std::size_t lines = 0;
  std::size_t kills = 0;
  unsigned seed = 1;
};

// `options` are the defaults, and `preload` the name of the option for the library.
inline Options parse(int count, char** words, Options options, const std::string& preload) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const std::string value = words[i + 1];
    const auto number = [&] { return static_cast<std::size_t>(std::stoul(value)); };
    if (name == "--program")
      options.program = value;
    else if (name == preload)
      options.preload = value;
    else if (name == "--lines")
      options.lines = number();
    else if (name == "--kills")
      options.kills = number();
    else if (name == "--seed")
      options.seed = static_cast<unsigned>(number());
    else
      fail(name + " is not an option");
  }
  if (options.program.empty()) fail("--program is missing");
  return options;
}

}  // namespace httpretry::crash
