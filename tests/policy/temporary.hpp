// A file of its own for a test, in a folder that goes with it.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace httpretry {

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text = {}) {
    auto name = (std::filesystem::temp_directory_path() / "httpretry-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
    if (!text.empty()) write(text);
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] std::string path() const { return folder_ / "policy.json"; }
  [[nodiscard]] std::filesystem::path folder() const { return folder_; }
  // In place: the file is cut to nothing, then written.
  void write(std::string_view text) const { std::ofstream(path(), std::ios::binary) << text; }
  // Written beside, and renamed.
  void replace(std::string_view text) const {
    const auto beside = folder_ / "beside";
    std::ofstream(beside, std::ios::binary) << text;
    std::filesystem::rename(beside, path());
  }
  void remove() const { std::filesystem::remove(path()); }

 private:
  std::filesystem::path folder_;
};

}  // namespace httpretry
