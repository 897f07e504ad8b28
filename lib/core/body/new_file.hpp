// NewFile: a file that replaces an old one when it is complete. Until then the old file stays.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/http/result.hpp>

#include <sys/types.h>

#include <cstdint>

namespace httpretry {

// Who may read a file. The umask restricts it further, unless it gets the mode of an old file.
enum class FileAccess : std::uint8_t {
  All,          // 0666, or the mode of the old file
  Owner,        // 0600, or the mode of the old file
  AlwaysOwner,  // 0600, even if an old file has another mode
};

class NewFile {
 public:
  // Creates a temporary file beside `target`, or beside the file that `target` links to. A device
  // is written to directly. A pipe is an error, because its reader could block us forever.
  static Result<NewFile> beside(const std::string& target, FileAccess access);
  // Opens "TARGET.part". If it is not committed, it stays, and is appended to when it is opened
  // again. Only one process at a time can open it.
  static Result<NewFile> part(const std::string& target, FileAccess access);

  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&& other) = delete;
  ~NewFile();  // removes a temporary file that was not committed, and an empty "TARGET.part"

  Result<void> write(std::string_view bytes);
  // Truncates the file.
  Result<void> restart();
  // Replaces the target.
  Result<void> commit();

  [[nodiscard]] bool restartable() const { return kind_ != Kind::Device || size_ == 0; }
  // A device is written to directly, and keeps nothing.
  [[nodiscard]] bool is_device() const {
    return kind_ == Kind::Device || kind_ == Kind::NullDevice;
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Returns the file's own name, or the target's if that is written to directly.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  // Part: "TARGET.part".
  enum class Kind { Temporary, Part, Device, NullDevice };
  NewFile(Kind kind, std::string path, std::string target);
  // `mode` is for a new file, with O_CREAT.
  bool open(int flags = 0, mode_t mode = 0);
  Result<bool> open_and_lock(mode_t mode);
  [[nodiscard]] bool set_mode(mode_t mode) const;

  Kind kind_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
  std::string path_;
  std::string target_;
};

}  // namespace httpretry
