// Errc::LocalShortage: what this process, or its machine, has no more of.
#pragma once

#include <cerrno>

namespace httpretry {

// CURLE_OUT_OF_MEMORY
inline constexpr int kOutOfMemory = 27;

// Whether an `errno` of a call that needs a descriptor or memory says that there are no more.
inline bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace httpretry
