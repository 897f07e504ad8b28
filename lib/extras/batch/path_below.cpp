#include "path_below.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace httpretry::batch {
namespace {

using std::filesystem::path;

bool begins_with(const path& whole, const path& start) {
  return std::ranges::mismatch(whole, start).in2 == start.end();
}

// Returns whether the path has a symbolic link below `root`. In a resolved path, that is a link
// that leads to nothing.
bool has_link(path whole, const path& root) {
  std::error_code failed;
  for (; whole != root; whole = whole.parent_path()) {
    if (std::filesystem::is_symlink(whole, failed)) return true;
  }
  return false;
}

}  // namespace

bool is_plain_relative(std::string_view path) {
  if (path.empty() || path.back() == '/' || path.find('\0') != std::string_view::npos) return false;
  while (!path.empty()) {
    const auto part = take_until(path, '/');
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

// Returns the whole path. Refuses a path that is not plain, and a symbolic link that leads out of
// the directory, so that a line of the input cannot name a file elsewhere.
Result<std::string> path_below(const std::string& root, const std::string& relative) {
  const auto refused = [&](const std::string& why) {
    Error error(Errc::InvalidRequest, "the file " + printable(relative) + ": " + why);
    error.permanent = true;  // a retry would be refused in the same way
    return error;
  };
  if (!is_plain_relative(relative)) return refused("it is not a relative path without . and ..");
  std::error_code failed;
  const auto base = std::filesystem::canonical(root.empty() ? "." : root, failed);
  if (failed) return refused(printable(root) + ": " + failed.message());
  auto whole = std::filesystem::weakly_canonical(base / relative, failed);
  if (failed) return refused(failed.message());
  if (!begins_with(whole, base) || has_link(whole, base)) {
    return refused("a symbolic link leads out of the directory " + printable(base.string()) +
                   ", or to nothing");
  }
  return whole.string();
}

}  // namespace httpretry::batch
