// Locks that keep a file to one writer, and what notices other programs.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/batch/store.hpp>

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry::batch {

// Locks the whole of an open file. The lock belongs to the file, whatever name it was opened by,
// and to this descriptor, so it also keeps out other descriptors of this process. Returns false if
// another descriptor has it: then `errno` is EAGAIN or EACCES. Any other `errno` is a failure.
[[nodiscard]] bool try_lock(int file);
[[nodiscard]] bool is_locked(int file);

// Returns "cannot WHAT: " and the cause in `errno`.
[[nodiscard]] StoreError file_error(const std::string& what);

[[nodiscard]] bool leads_to(const std::string& path, const struct ::stat& file);

// Returns what `path` leads to. Throws StoreError if that is no longer `file`, or if it has fewer
// than `least` bytes.
struct ::stat check_in_place(const std::string& path, const struct ::stat& file,
                             std::uint64_t least);

// JournalLock: one process writes to a journal. Its end, also by a crash, ends the lock.
class JournalLock {
 public:
  // Throws StoreError, which names the process that has it.
  explicit JournalLock(const std::string& journal);
  ~JournalLock();
  JournalLock(const JournalLock&) = delete;
  JournalLock& operator=(const JournalLock&) = delete;

  // The process that has the lock of a journal; empty: none has. 0: it is not known.
  static std::optional<std::int64_t> owner(const std::string& journal);

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace httpretry::batch
