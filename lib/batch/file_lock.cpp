#include "lib/batch/file_lock.hpp"

#include <fcntl.h>

#include <cerrno>
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

constexpr const char* kPutBack =
    " while it was written: put it back as it was and start the same command again, or begin anew "
    "with --fresh";

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
  struct ::stat there {};
  return ::stat(path.c_str(), &there) == 0 && is_same(there, file);
}

struct ::stat check_in_place(const std::string& path, const struct ::stat& file,
                             std::uint64_t least) {
  struct ::stat there {};
  if (::stat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) {
      throw StoreError(path +
                       " was removed while it was written, and what it had is lost: begin anew "
                       "with --fresh");
    }
    throw file_error("look at " + path);
  }
  if (!is_same(there, file)) throw StoreError(path + " was replaced" + kPutBack);
  if (static_cast<std::uint64_t>(there.st_size) < least) {
    throw StoreError(path + " was shortened" + kPutBack);
  }
  return there;
}

}  // namespace httpretry::batch
