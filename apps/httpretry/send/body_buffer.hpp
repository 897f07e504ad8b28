// Spool: a body that may not be shown before it is whole. The first 8 MiB are in memory, the rest
// is in a file without a name, in TMPDIR.
#pragma once

#include <httpretry/http/result.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace httpretry::cli {

class Spool {
 public:
  Spool() = default;
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  Result<void> append(std::string_view bytes);
  // Forgets what lies behind the first `size` bytes.
  void cut(std::uint64_t size);
  [[nodiscard]] std::uint64_t size() const { return memory_.size() + in_file_; }
  // All of it, from the beginning. Throws WriteError.
  void read(const std::function<void(std::string_view)>& take) const;

 private:
  Result<void> append_to_file(std::string_view bytes);

  std::string memory_;
  int file_ = -1;
  std::uint64_t in_file_ = 0;
};

}  // namespace httpretry::cli
