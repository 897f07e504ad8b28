// Errc::LocalShortage: this process or its machine has run out of something.
#pragma once

#include <cerrno>

namespace httpretry {

// The value of CURLE_OUT_OF_MEMORY.
inline constexpr int kOutOfMemory = 27;

// Returns whether the `errno` of a call that needs a descriptor or memory means that none are left.
inline bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace httpretry
