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

// Returns the path of `relative` below the directory `root` (empty: the current directory), with
// all symbolic links resolved. Returns an error for a path that leads to a file elsewhere: one with
// ".." or a symbolic link out of `root`. So a line of the input cannot name any file of the
// machine.
Result<std::string> path_below(const std::string& root, const std::string& relative) {
  const auto refused = [&](const std::string& why) {
    Error error(Errc::InvalidRequest, "the file " + printable(relative) + ": " + why);
    error.permanent = true;  // a retry would be refused in the same way
    return error;
  };
  if (!is_plain_relative(relative)) return refused("it is not a relative path without . and ..");
  std::error_code error;
  const auto directory = std::filesystem::canonical(root.empty() ? "." : root, error);
  if (error) return refused(printable(root) + ": " + error.message());
  // The file need not exist yet, so this resolves only the part of the path that does.
  auto resolved = std::filesystem::weakly_canonical(directory / relative, error);
  if (error) return refused(error.message());
  // A symbolic link that is left leads to nothing. Writing the file could create its target.
  if (!begins_with(resolved, directory) || has_link(resolved, directory)) {
    return refused("a symbolic link leads out of the directory " + printable(directory.string()) +
                   ", or to nothing");
  }
  return resolved.string();
}

}  // namespace httpretry::batch
