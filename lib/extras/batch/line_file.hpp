// LineFile is a file of lines. The journal records how many of its bytes are committed. Bytes
// behind these come from a run that ended before it could commit them. An open LineFile has a lock
// on the file itself, so the lock holds under all names of the file.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/export.hpp>

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::batch {
namespace detail {

class HTTPRETRY_API LineFile {
 public:
  // Constructs a LineFile without a file.
  LineFile() = default;
  // Opens or creates the file. `length` is the number of committed bytes. Throws StoreError,
  // including when another LineFile has the file open, or when the file is shorter than `length`.
  LineFile(std::string path, std::uint64_t length);

  [[nodiscard]] bool is_open() const { return file_.is_open(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t length() const { return length_; }

  // Returns the whole lines behind `length`, each with its offset in bytes. Leaves out a partial
  // line at the end.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::string>> uncommitted_lines() const;

  // Replaces everything behind `length` with `lines`. With `sync`, makes that durable. Does not
  // change `length`; `count_as_committed` does. Throws StoreError.
  void write(std::string_view lines, bool sync) const;
  // Adds bytes that are committed to `length`.
  void count_as_committed(std::size_t bytes);
  // Removes everything behind `length`. Throws StoreError.
  void cut() const;
  // Throws StoreError if another program has removed, replaced or shortened the file.
  void check() const;

 private:
  void open_and_lock();
  [[nodiscard]] struct ::stat about() const;

  std::string path_;
  Descriptor file_;
  std::uint64_t length_ = 0;
};

}  // namespace detail
using detail::LineFile;

// Syncs the directory of a file, so that a new name in it is durable. Throws StoreError.
void sync_directory_of(const std::string& path);

}  // namespace httpretry::batch
