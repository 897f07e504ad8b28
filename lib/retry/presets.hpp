// The two halves of the table of presets.
#pragma once

#include <httpretry/retry/presets.hpp>

namespace httpretry::policy {

std::span<const Preset> client_presets();  // `standard` first
std::span<const Preset> textbook_presets();

}  // namespace httpretry::policy
