// For LD_PRELOAD: keeps what a failure of the power would leave of the files of a folder. That is
// each file as it was when it was last synced, under the names that the folder had when that was.
//
//   SYNCED_FOLDER  the folder
//   SYNCED_COPIES  another one on the same file system: a copy `i<inode>` of each file, and `names`
//
// Copies are made before the sync returns, so the program never relies on one that is missing.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "synced_copies: %s: %s\n", what.c_str(), std::strerror(errno));
  std::abort();
}

// A file that is there as a whole or not at all, whenever this process is killed.
class WholeFile {
 public:
  explicit WholeFile(std::string path)
      : path_(std::move(path)), file_(std::fopen(unfinished().c_str(), "w")) {
    if (file_ == nullptr) give_up(path_);
  }
  void write(const char* bytes, std::size_t count) {
    if (std::fwrite(bytes, 1, count, file_) != count) give_up(path_);
  }
  void finish() {
    if (std::fclose(file_) != 0 || std::rename(unfinished().c_str(), path_.c_str()) != 0)
      give_up(path_);
  }

 private:
  [[nodiscard]] std::string unfinished() const { return path_ + ".new"; }
  std::string path_;
  std::FILE* file_;
};

std::string number_of(const struct stat& about) { return std::to_string(about.st_ino); }

std::string pin_of(const struct stat& about, const std::string& copies) {
  return copies + "/p" + number_of(about);
}

// A second name keeps the number of a file from being given to another one.
void pin(const std::string& path, const std::string& copies, const struct stat& about) {
  static_cast<void>(::link(path.c_str(), pin_of(about, copies).c_str()));
}

void keep_file(const std::string& path, const std::string& copies) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (file < 0 || ::fstat(file, &about) != 0) give_up(path);
  pin(path, copies, about);
  WholeFile copy(copies + "/i" + number_of(about));
  std::array<char, 65536> block{};
  for (ssize_t count = 0; (count = ::read(file, block.data(), block.size())) > 0;) {
    copy.write(block.data(), static_cast<std::size_t>(count));
  }
  ::close(file);
  copy.finish();
}

void keep_names(const std::string& folder, const std::string& copies) {
  WholeFile names(copies + "/names");
  DIR* const listing = ::opendir(folder.c_str());
  if (listing == nullptr) give_up(folder);
  while (const auto* entry = ::readdir(listing)) {
    const auto path = folder + "/" + entry->d_name;
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    pin(path, copies, about);
    const auto line = number_of(about) + " " + entry->d_name + "\n";
    names.write(line.data(), line.size());
  }
  ::closedir(listing);
  names.finish();
}

void keep(int descriptor) {
  static const auto folder = from_environment("SYNCED_FOLDER");
  static const auto copies = from_environment("SYNCED_COPIES");
  std::array<char, 4096> path{};
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  const auto size = ::readlink(link.c_str(), path.data(), path.size());
  if (folder.empty() || copies.empty() || size < 0) return;
  const std::string name(path.data(), static_cast<std::size_t>(size));
  const std::lock_guard lock(mutex);
  if (name == folder) {
    keep_names(folder, copies);
  } else if (name.starts_with(folder + "/") && name.find(" (deleted)") == std::string::npos) {
    keep_file(name, copies);
  }
}

int sync_by(const char* function, int descriptor) {
  using Sync = int (*)(int);
  const auto sync = reinterpret_cast<Sync>(::dlsym(RTLD_NEXT, function));
  const int result = sync(descriptor);
  if (result == 0) keep(descriptor);
  return result;
}

}  // namespace

extern "C" {
// Leaves the second name out of the count, because a journal with several names is refused.
int stat(const char* path, struct stat* about) {
  using Stat = int (*)(const char*, struct stat*);
  static const auto real = reinterpret_cast<Stat>(::dlsym(RTLD_NEXT, "stat"));
  static const auto copies = from_environment("SYNCED_COPIES");
  const int result = real(path, about);
  if (result == 0 && about->st_nlink > 1 && ::access(pin_of(*about, copies).c_str(), F_OK) == 0) {
    --about->st_nlink;
  }
  return result;
}
int fsync(int descriptor) { return sync_by("fsync", descriptor); }
int fdatasync(int descriptor) { return sync_by("fdatasync", descriptor); }
}
