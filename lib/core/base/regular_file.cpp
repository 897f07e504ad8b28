#include "regular_file.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace httpretry {

bool is_null_device(const struct stat& about) {
  return S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3);  // its numbers on Linux
}

namespace {

bool could_block(const struct stat& about) {
  return !S_ISDIR(about.st_mode) && !S_ISREG(about.st_mode) && !is_null_device(about);
}

}  // namespace

bool could_block(const std::string& path) {
  struct ::stat about {};
  return ::stat(path.c_str(), &about) == 0 && could_block(about);
}

std::string read_problem(const std::string& path) {
  if (path.find('\0') != path.npos) return "its name has a NUL byte";
  struct ::stat about {};
  if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &about) != 0) {
    return std::generic_category().message(errno);
  }
  if (S_ISDIR(about.st_mode)) return std::generic_category().message(EISDIR);
  return could_block(about) ? kCouldBlock : "";
}

}  // namespace httpretry
