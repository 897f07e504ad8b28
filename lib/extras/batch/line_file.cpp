#include "line_file.hpp"

#include "file_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace httpretry::batch {
namespace {

// Returns the error "cannot ACTION PATH: CAUSE" with the cause that `errno` names, and with advice
// if the disk is full.
StoreError failed(const std::string& action, const std::string& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  const auto error = file_error(action + " " + path);
  if (!full) return error;
  return StoreError(std::string(error.what()) + "; free some space and run the same command again");
}

// Returns the bytes of a file from an offset to its end. Throws StoreError.
std::string bytes_from(std::uint64_t offset, int file, const std::string& path) {
  std::string bytes;
  std::string block(256 * 1024, '\0');
  for (;;) {
    const auto count =
        ::pread(file, block.data(), block.size(), static_cast<off_t>(offset + bytes.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failed("read", path);
    if (count == 0) return bytes;
    bytes.append(block, 0, static_cast<std::size_t>(count));
  }
}

}  // namespace

LineFile::LineFile(std::string path, std::uint64_t length)
    : path_(std::move(path)), length_(length) {
  // Another run may rename the file between the open and the lock, so the path is checked again.
  do open_and_lock();
  while (!leads_to(path_, about()));
  const auto size = static_cast<std::uint64_t>(about().st_size);
  if (size >= length_) return;
  throw StoreError(path_ + " has " + std::to_string(size) + " bytes, but the journal has written " +
                   std::to_string(length_) +
                   " to it: it was truncated. Put it back as it was, or start over with --fresh");
}

// Opens or creates the file. Throws StoreError if it is not a regular file, or if another run has
// it locked.
void LineFile::open_and_lock() {
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_.is_open()) throw failed("write to", path_);
  if (!S_ISREG(about().st_mode)) {
    throw StoreError(path_ + " is not a regular file, so it could not be continued after a crash");
  }
  if (try_lock(file_.get())) return;
  if (errno != EAGAIN && errno != EACCES) throw failed("lock", path_);
  throw StoreError(path_ +
                   " is being written by another run: wait until that ends, or use another file");
}

struct ::stat LineFile::about() const {
  struct ::stat about {};
  if (::fstat(file_.get(), &about) != 0) throw failed("look at", path_);
  return about;
}

void LineFile::check() const {
  if (file_.is_open()) check_in_place(path_, about(), length_);
}

// Returns the lines that a run wrote but did not commit, each with its offset in the file: reads
// everything behind the committed bytes (`length_`) and splits it. Leaves out a partial line at the
// end. Throws StoreError if the file cannot be read, or if another program seems to have written
// it.
std::vector<std::pair<std::uint64_t, std::string>> LineFile::uncommitted_lines() const {
  const auto bytes = bytes_from(length_, file_.get(), path_);
  std::vector<std::pair<std::uint64_t, std::string>> lines;
  for (std::size_t begin = 0;;) {
    const auto end = bytes.find('\n', begin);
    if (end == std::string::npos) {
      // The rest is a partial line, or nothing. The next write replaces it, which must not destroy
      // a file that the user has named by mistake. If the whole file is one partial line of ours,
      // it begins with the brace of a JSON object, or with NUL, which a power failure may leave.
      const bool is_whole_file = length_ + begin == 0;
      if (is_whole_file && !bytes.empty() && bytes[0] != '{' && bytes[0] != '\0') {
        throw StoreError(path_ + ", at byte 0: not a line that httpretry wrote. Use another file");
      }
      return lines;
    }
    lines.emplace_back(length_ + begin, bytes.substr(begin, end - begin));
    begin = end + 1;
  }
}

// Writes the lines at `length_`, and cuts the file behind them, because a run that crashed may have
// left more bytes there.
void LineFile::write(std::string_view lines, bool sync) const {
  check();
  auto offset = length_;
  while (!lines.empty()) {
    const auto count =
        ::pwrite(file_.get(), lines.data(), lines.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failed("write to", path_);
    offset += static_cast<std::uint64_t>(count);
    lines.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::ftruncate(file_.get(), static_cast<off_t>(offset)) != 0) throw failed("write to", path_);
  if (sync && ::fdatasync(file_.get()) != 0) throw failed("write to", path_);
}

void LineFile::count_as_committed(std::size_t bytes) { length_ += bytes; }

void LineFile::cut() const {
  if (file_.is_open() && ::ftruncate(file_.get(), static_cast<off_t>(length_)) != 0) {
    throw failed("write to", path_);
  }
}

void sync_directory_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  const Descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened.is_open() || ::fsync(opened.get()) != 0)
    throw failed("write to the directory of", path);
}

}  // namespace httpretry::batch
