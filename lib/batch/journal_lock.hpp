// JournalLock: one process writes to a journal. Its end, also by a crash, ends the lock.
#pragma once

#include "lib/http/descriptor.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry::batch {

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
