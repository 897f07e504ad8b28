// BodyBuffer holds a response body until it is complete. The first 8 MiB are kept in memory, the
// rest in an unnamed file in TMPDIR.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/http/result.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace httpretry::cli {

class BodyBuffer {
 public:
  Result<void> append(std::string_view bytes);
  void truncate(std::uint64_t size);
  // Removes all bytes and frees the memory.
  void clear();
  [[nodiscard]] std::uint64_t size() const { return memory_.size() + in_file_; }
  // Returns whether `more` bytes can be appended without a file.
  [[nodiscard]] bool fits_in_memory(std::size_t more) const;
  // Passes the whole body to `take`, in pieces. Throws WriteError.
  void read(const std::function<void(std::string_view)>& take) const;

 private:
  Result<void> append_to_file(std::string_view bytes);

  std::string memory_;
  Descriptor file_;
  std::uint64_t in_file_ = 0;
};

}  // namespace httpretry::cli
