#include "lib/retry/presets.hpp"

#include <algorithm>
#include <vector>

namespace httpretry {

std::span<const Preset> presets() {
  static const std::vector<Preset> all = [] {
    const auto clients = policy::client_presets();
    const auto textbook = policy::textbook_presets();
    std::vector<Preset> both(clients.begin(), clients.end());
    both.insert(both.end(), textbook.begin(), textbook.end());
    return both;
  }();
  return all;
}

const Preset* find_preset(std::string_view name) {
  const auto all = presets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Preset& preset) { return preset.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace httpretry
