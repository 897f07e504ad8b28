// NewFile: a file that takes another one's place when it is whole. Until then the old one stays.
#pragma once

#include <httpretry/http/result.hpp>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry {

class NewFile {
 public:
  // A file of its own beside `target` (where that is a link, beside what it leads to). It has the
  // mode of the old file, or else `mode` as far as the process's umask lets it; `mode` of 0600
  // holds always. What is no regular file (a device, a pipe) is written to directly.
  static Result<NewFile> beside(const std::string& target, mode_t mode);
  // "TARGET.part", which stays where it is not committed, and is gone on with when it is opened
  // again. One process at a time has it.
  static Result<NewFile> part(const std::string& target);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();  // removes it, where it was not committed and is no part

  Result<void> write(std::string_view bytes);
  // Empties it.
  Result<void> restart();
  Result<void> commit();

  [[nodiscard]] bool restartable() const { return kind_ != Kind::Direct || size_ == 0; }
  // A device or a pipe, which keeps nothing.
  [[nodiscard]] bool direct() const { return kind_ == Kind::Direct || kind_ == Kind::Nowhere; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Its own name; the target's where that is written to directly.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  enum class Kind { Aside, Part, Direct, Nowhere };
  NewFile(Kind kind, std::string path, std::string target);
  bool open(int flags, mode_t mode = 0);
  void close();

  Kind kind_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::string path_;
  std::string target_;
};

}  // namespace httpretry
