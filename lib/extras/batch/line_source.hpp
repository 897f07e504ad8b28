// LineSource reads the lines of a file or of standard input one by one, in little memory.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::batch {

class LineSource {
 public:
  // "-" is standard input. Throws StoreError if it cannot be opened.
  explicit LineSource(std::string path);

  // Returns the next line without its line end ("\n" or "\r\n"), or nullopt at the end of the
  // input. The line is valid until the next call. Throws StoreError.
  std::optional<std::string_view> next();
  // Returns the number of the line that `next` returned last, from 1.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  bool fill();

  std::string name_;
  Descriptor opened_;  // closed for standard input
  int descriptor_;
  std::string buffer_;
  std::size_t begin_ = 0;  // the bytes from here to end_ were read but not returned yet
  std::size_t end_ = 0;
  std::uint64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace httpretry::batch
