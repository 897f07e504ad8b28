#include "lib/batch/journal_lock.hpp"

#include <httpretry/batch/store.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace httpretry::batch {
namespace {

std::string lock_path(const std::string& journal) { return journal + "-lock"; }

// A lock of this kind belongs to a process, and the system says to which. Not on the journal
// itself: closing any descriptor of a file ends these locks, those of SQLite too.
struct ::flock whole_file() {
  struct ::flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::optional<pid_t> owner_of(int file) {
  auto lock = whole_file();
  if (::fcntl(file, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid > 0 ? lock.l_pid : 0;
}

bool is_still_there(int file, const std::string& path) {
  struct ::stat opened {};
  struct ::stat there {};
  return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

}  // namespace

JournalLock::JournalLock(const std::string& journal) : path_(lock_path(journal)) {
  for (;;) {
    file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file_.open()) {
      throw StoreError("cannot lock " + journal + ": " + std::generic_category().message(errno));
    }
    auto lock = whole_file();
    if (::fcntl(file_.get(), F_SETLK, &lock) == 0) {
      // The process that had it may have removed the file meanwhile.
      if (is_still_there(file_.get(), path_)) return;
      continue;
    }
    const auto pid = owner_of(file_.get());
    throw StoreError(journal + " is in use" +
                     (pid && *pid > 0 ? " by the process " + std::to_string(*pid) : "") +
                     ": wait for its end, or name another journal");
  }
}

JournalLock::~JournalLock() { ::unlink(path_.c_str()); }

std::optional<pid_t> JournalLock::owner(const std::string& journal) {
  const Descriptor file(::open(lock_path(journal).c_str(), O_RDWR | O_CLOEXEC));
  return file.open() ? owner_of(file.get()) : std::nullopt;
}

}  // namespace httpretry::batch
