// The text of a policy file, and how to see that it may have changed.
#pragma once

#include <cstdint>
#include <string>

namespace httpretry::policy_file {

// What a file system says of a file without reading it. Times alone would not do: a file may change
// twice within a tick of its clock.
struct FileState {
  bool there = false;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified = 0;  // nanoseconds; likewise
  std::int64_t changed = 0;

  friend bool operator==(const FileState&, const FileState&) = default;
};
FileState state_of(const std::string& path);

struct FileText {
  std::string text;
  FileState state;      // before it was read
  std::string problem;  // why there is no text; empty otherwise
};
enum class FileKind : std::uint8_t { Any, Regular };
// Reads no more than a policy file may be long, and one byte.
FileText read_file(const std::string& path, FileKind kind);

}  // namespace httpretry::policy_file
