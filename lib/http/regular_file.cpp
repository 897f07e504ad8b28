#include "regular_file.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace httpretry {

bool is_null_device(const struct stat& about) {
  return S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3);
}

std::string cannot_read(const std::string& path) {
  struct ::stat about {};
  if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &about) != 0) {
    return std::generic_category().message(errno);
  }
  if (S_ISDIR(about.st_mode)) return std::generic_category().message(EISDIR);
  if (S_ISREG(about.st_mode) || is_null_device(about)) return {};
  return "it is not a regular file, and could make us wait for ever";
}

}  // namespace httpretry
