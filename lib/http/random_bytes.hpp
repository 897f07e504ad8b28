// Chance that nobody can foresee, from the system.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace httpretry {

// Throws std::system_error where the system gives none.
void fill_random(std::span<unsigned char> bytes);
// Two digits a byte.
std::string random_hex(std::size_t bytes);

}  // namespace httpretry
