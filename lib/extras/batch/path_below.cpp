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

// Returns whether `whole`, a path below `root`, has a symbolic link below `root`.
bool has_link(path whole, const path& root) {
  std::error_code ignored;
  for (; whole != root; whole = whole.parent_path()) {
    if (std::filesystem::is_symlink(whole, ignored)) return true;
  }
  return false;
}

}  // namespace

bool detail::is_plain_relative(std::string_view path) {
  if (path.empty() || path.back() == '/' || path.find('\0') != std::string_view::npos) return false;
  while (!path.empty()) {
    const auto part = take_until(path, '/');
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

// Returns the absolute path of `root`/`relative`, with all symbolic links resolved. An empty `root`
// is the current directory. Keeps untrusted input from reaching files outside `root`: returns an
// error if `relative` is absolute, has "..", or leads out of `root` through a symbolic link. The
// file need not exist yet.
Result<std::string> detail::path_below(const std::string& root, const std::string& relative) {
  const auto refusal = [&](const std::string& why) {
    Error error(Errc::InvalidRequest, "the file " + printable(relative) + ": " + why);
    error.permanent = true;  // a retry would be refused in the same way
    return error;
  };
  if (!is_plain_relative(relative)) return refusal("it is not a relative path without . and ..");
  std::error_code code;
  const auto directory = std::filesystem::canonical(root.empty() ? "." : root, code);
  if (code) return refusal(printable(root) + ": " + code.message());
  // Resolves the part of the path that exists, and appends the rest.
  auto resolved = std::filesystem::weakly_canonical(directory / relative, code);
  if (code) return refusal(code.message());
  // weakly_canonical leaves a dangling symbolic link unresolved. Writing the file would create the
  // link's target, possibly outside the directory.
  if (!begins_with(resolved, directory) || has_link(resolved, directory)) {
    return refusal("a symbolic link leads out of the directory " + printable(directory.string()) +
                   ", or to nothing");
  }
  return resolved.string();
}

}  // namespace httpretry::batch
