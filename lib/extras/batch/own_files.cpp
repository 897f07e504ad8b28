#include "own_files.hpp"

#include <filesystem>
#include <system_error>

namespace httpretry::batch {
namespace {

// Returns the absolute path of a file that need not exist, with all symbolic links resolved.
std::filesystem::path resolved(const std::string& path) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored);
  const auto canonical = std::filesystem::weakly_canonical(absolute, ignored);
  return canonical.empty() ? absolute.lexically_normal() : canonical;
}

}  // namespace

// Returns the files that a run itself reads and writes, which no response body may replace, with
// the purpose of each. They need not exist.
OwnFiles own_files(const BatchOptions& options) {
  OwnFiles files;
  const auto add = [&files](const std::string& purpose, const std::string& path) {
    // "-" is standard input.
    if (!path.empty() && path != "-") files.emplace(resolved(path).string(), purpose);
  };
  add("input", options.input);
  auto journal = options.journal;
  // The default, as in Batch::open().
  if (journal.empty() && !options.input.empty()) journal = options.input + ".httpretry.db";
  if (!journal.empty()) {
    // SQLite adds the files -wal and -shm, and JournalLock adds -lock. If the journal is a symbolic
    // link, they are beside its target; but --fresh replaces the link.
    const auto target = resolved(journal).string();
    for (const auto* suffix : {"", "-wal", "-shm", "-lock"}) {
      add("journal", journal + suffix);
      add("journal", target + suffix);
    }
  }
  add("results", options.results);
  add("dead letters", options.dead);
  for (const auto& [purpose, path] : options.other_files) add(purpose, path);
  return files;
}

OwnFiles own_files_below_directory(const BatchOptions& options) {
  auto start = resolved(options.directory.empty() ? "." : options.directory).string();
  if (!start.ends_with('/')) start += '/';
  OwnFiles below;
  for (const auto& [path, purpose] : own_files(options)) {
    if (path.starts_with(start)) below.emplace(path.substr(start.size()), purpose);
  }
  return below;
}

}  // namespace httpretry::batch
