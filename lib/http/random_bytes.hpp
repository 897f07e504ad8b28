// Random bytes from the system, which nobody can predict.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace httpretry {

// Throws std::system_error if getrandom fails.
void fill_random(std::span<unsigned char> bytes);
// Two digits for each byte.
std::string random_hex(std::size_t bytes);

}  // namespace httpretry
