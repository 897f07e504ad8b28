// Locks that allow a file only one writer, and checks for changes by other programs.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/batch/store.hpp>

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry::batch {

// Locks a whole open file. The lock belongs to the file, whatever name it was opened by, and to
// this descriptor, so it also excludes other descriptors of this process. Returns false with
// `errno` EAGAIN or EACCES if another descriptor has the lock, and with another `errno` after a
// failure.
[[nodiscard]] bool try_lock(int file);
[[nodiscard]] bool is_locked(int file);

// Returns the error "cannot WHAT: CAUSE", with the cause that `errno` names.
[[nodiscard]] StoreError file_error(const std::string& what);

// Returns whether `path` leads to `file`.
[[nodiscard]] bool leads_to(const std::string& path, const struct ::stat& file);

// Returns the file that `path` leads to. Throws StoreError if it is no longer `opened`, or if it
// has fewer than `least` bytes.
struct ::stat check_in_place(const std::string& path, const struct ::stat& opened,
                             std::uint64_t least);

// JournalLock is the lock of the one process that may write to a journal. The lock ends with the
// process, even after a crash.
class JournalLock {
 public:
  // Throws StoreError if another process has the lock. The message names that process.
  explicit JournalLock(const std::string& journal);
  ~JournalLock();
  JournalLock(const JournalLock&) = delete;
  JournalLock& operator=(const JournalLock&) = delete;

  // Returns the process that has the lock of a journal: nullopt if it is not locked, 0 if the
  // process is not known.
  static std::optional<std::int64_t> owner(const std::string& journal);

 private:
  void open_and_lock(const std::string& journal);

  std::string path_;
  Descriptor file_;
};

}  // namespace httpretry::batch
