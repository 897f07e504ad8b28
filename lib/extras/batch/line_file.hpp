// LineFile: a file of lines, of which the journal knows how many bytes are good. What stands behind
// them was written by a run that ended before it could say so. The file is locked while a LineFile
// has it open, under all of its names.
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

class HTTPRETRY_API LineFile {
 public:
  // None: nothing is written.
  LineFile() = default;
  // Throws StoreError; also where another LineFile has the file, or it is shorter than `length`.
  LineFile(std::string path, std::uint64_t length);

  [[nodiscard]] bool open() const { return file_.open(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t length() const { return length_; }

  // The whole lines behind `length`, with the place of each. A last half line is left out.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::string>> tail() const;

  // Writes behind `length`, in place of what is there, and with `sync` makes that durable. `length`
  // is as before, until `accept`. Throws StoreError.
  void write(std::string_view lines, bool sync) const;
  void accept(std::size_t bytes);
  // Removes what is behind `length`. Throws StoreError.
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

// Makes a new name in the directory of the file durable.
void sync_directory_of(const std::string& path);

}  // namespace httpretry::batch
