#include "file_lock.hpp"

#include "lib/core/base/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace httpretry::batch {
namespace {

struct ::flock whole_file() {
  struct ::flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool is_same(const struct ::stat& a, const struct ::stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Returns the file of a journal's lock. It is the same for all symbolic links to the journal. The
// lock cannot be on the journal itself, because SQLite locks that.
std::string lock_path(const std::string& journal) {
  std::error_code missing;
  const auto itself = std::filesystem::canonical(journal, missing);
  return (missing ? journal : itself.string()) + "-lock";
}

// Returns the number of the process that holds the lock, which it has written to the file; 0 if
// that cannot be read.
std::int64_t read_process(int file) {
  std::array<char, 20> text{};
  const auto size = ::pread(file, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  return to_number<std::int64_t>(std::string_view(text.data(), static_cast<std::size_t>(size)))
      .value_or(0);
}

// Writes the number of this process to the file, for read_process(). Returns false, with the reason
// in `errno`, if that fails.
bool write_this_process(int file) {
  const auto text = std::to_string(::getpid());
  if (::ftruncate(file, 0) != 0) return false;
  const auto written = ::pwrite(file, text.data(), text.size(), 0);
  if (written >= 0) errno = ENOSPC;  // a short write sets no `errno`: the disk is full
  return written == std::ssize(text);
}

bool is_still_there(int file, const std::string& path) {
  struct ::stat opened {};
  return ::fstat(file, &opened) == 0 && leads_to(path, opened);
}

constexpr const char* kPutBack =
    " while it was being written: put it back as it was and run the same command again, or start "
    "over with --fresh";

}  // namespace

bool try_lock(int file) {
  auto lock = whole_file();
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool is_locked(int file) {
  auto lock = whole_file();
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

StoreError file_error(const std::string& what) {
  return StoreError("cannot " + what + ": " + std::generic_category().message(errno));
}

bool leads_to(const std::string& path, const struct ::stat& file) {
  struct ::stat found {};
  return ::stat(path.c_str(), &found) == 0 && is_same(found, file);
}

// Throws StoreError if another program has removed, replaced or shortened a file that this run has
// open, because then no other program would see all that this run writes. `opened` describes the
// file that this run has open. Returns the stat data of the file that `path` leads to now, which
// has at least `least` bytes.
struct ::stat check_in_place(const std::string& path, const struct ::stat& opened,
                             std::uint64_t least) {
  struct ::stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) {
      throw StoreError(path +
                       " was removed while it was being written, and its contents are lost: start "
                       "over with --fresh");
    }
    throw file_error("look at " + path);
  }
  if (!is_same(found, opened)) throw StoreError(path + " was replaced" + kPutBack);
  if (static_cast<std::uint64_t>(found.st_size) < least) {
    throw StoreError(path + " was truncated" + kPutBack);
  }
  return found;
}

// Locks the journal for this process by a lock on a separate file beside it, `path_`. Throws
// StoreError if another process has the lock.
JournalLock::JournalLock(const std::string& journal) : path_(lock_path(journal)) {
  // The owner of a lock removes the file when it ends. If that happens between open_and_lock()'s
  // open and its lock, this process has locked a removed file, which excludes no other process. It
  // then tries again with a new file.
  do open_and_lock(journal);
  while (!is_still_there(file_.get(), path_));
  if (!write_this_process(file_.get())) throw file_error("lock " + journal);
}

// Opens or creates the file and locks it. Throws StoreError, which names the process that has the
// lock if another one has it.
void JournalLock::open_and_lock(const std::string& journal) {
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_.is_open()) throw file_error("lock " + journal);
  if (try_lock(file_.get())) return;
  // try_lock() has set `errno`.
  const bool other_has_lock = errno == EAGAIN || errno == EACCES;
  if (!other_has_lock) throw file_error("lock " + journal);
  const auto owner = read_process(file_.get());  // 0: not known
  throw StoreError(journal + " is in use" +
                   (owner > 0 ? " by process " + std::to_string(owner) : "") +
                   ": wait until it ends, or use another journal");
}

JournalLock::~JournalLock() { ::unlink(path_.c_str()); }

std::optional<std::int64_t> JournalLock::owner(const std::string& journal) {
  const Descriptor file(::open(lock_path(journal).c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open() || !is_locked(file.get())) return std::nullopt;
  return read_process(file.get());
}

}  // namespace httpretry::batch
