// What a journal asks of its surroundings, and how to have the k-th time fail. The functions
// themselves are replaced, in this program only, which has one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace httpretry::failures {

enum class What : std::uint8_t {
  Call,          // open, read, write, fsync, ftruncate, rename, unlink: EIO
  FullDisk,      // those that need room: ENOSPC, from then on
  SqliteMemory,  // an allocation of SQLite
  Memory,        // operator new
};
inline constexpr std::array<std::string_view, 4> kNames{"call", "full-disk", "sqlite-memory",
                                                        "memory"};

// Before anything uses SQLite.
void replace_memory_of_sqlite();

// From now on the k-th fails, the others do not. 0: none fails.
void fail_at(What what, long k);
// None fails any more, and none is counted.
void no_failures();
// How often it was asked for since then.
[[nodiscard]] long asked(What what);

}  // namespace httpretry::failures
