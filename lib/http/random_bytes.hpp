// Random bytes from the system, which nobody can predict.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace httpretry {

// At most 256 bytes. Throws std::system_error if the system has none.
void fill_random(std::span<unsigned char> bytes);
// Two digits for each byte.
std::string random_hex(std::size_t bytes);

}  // namespace httpretry
