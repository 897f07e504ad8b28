#include "new_file.hpp"

#include "lib/core/base/random.hpp"
#include "lib/core/base/regular_file.hpp"
#include "lib/core/base/shortage.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace httpretry {
namespace {

Error write_error(Errc code, std::string message) {
  Error error(code, std::move(message));
  error.permanent = true;
  error.curl_code = 23;  // CURLE_WRITE_ERROR
  return error;
}

Error cannot_write(const std::string& path, int cause, Errc code = Errc::Internal) {
  return write_error(code, "cannot write " + path + ": " + std::generic_category().message(cause));
}

// Blames the request, which names a file that cannot be written to, unless the process lacks a
// descriptor.
Error cannot_open(const std::string& path, int cause) {
  const bool shortage = is_shortage(cause);
  auto error = cannot_write(path, cause, shortage ? Errc::LocalShortage : Errc::InvalidRequest);
  error.permanent = !shortage;
  if (shortage) error.curl_code = 0;  // none
  return error;
}

// Returns the file to which the path leads through all links, whether or not that file exists.
Result<std::string> follow_links(const std::string& link) {
  if (link.empty()) return write_error(Errc::InvalidRequest, "the file to write to has no name");
  if (link.find('\0') != link.npos) {
    return write_error(Errc::InvalidRequest, "the name of the file to write to has a NUL byte");
  }
  constexpr int kMaxLinks = 40;  // as in Linux
  std::error_code error;
  auto path = link;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    if (links == kMaxLinks) return cannot_open(link, ELOOP);
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) break;  // the link is gone or unreadable; the caller uses `path` as it is
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

Error written_by_another(const std::string& path) {
  return write_error(Errc::InvalidRequest, path + " is being written by another process");
}

Error not_regular(const std::string& path) {
  return write_error(Errc::InvalidRequest,
                     path + " is not a regular file, and cannot keep a partial body; remove it");
}

bool is_same_file(const struct ::stat& a, const struct ::stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

constexpr mode_t kMode = 07777;  // the permissions

mode_t mode_of(FileAccess access) { return access == FileAccess::All ? 0666 : 0600; }

// Returns a name that begins with the target's own name if that is not too long.
std::string name_beside(const std::string& target) {
  constexpr std::size_t kMostBytes = 230;  // NAME_MAX is 255, and 21 bytes are added
  const std::filesystem::path path(target);
  const bool fits = path.filename().native().size() <= kMostBytes;
  const auto stem = fits ? target : (path.parent_path() / ".httpretry").string();
  return stem + "." + random_hex(8) + ".tmp";
}

}  // namespace

// Does not open the file yet, so that memory is allocated before there is a descriptor to close.
NewFile::NewFile(Kind kind, std::string path, std::string target)
    : kind_(kind), path_(std::move(path)), target_(std::move(target)) {}

bool NewFile::open(int flags, mode_t mode) {
  fd_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | flags, mode));
  return fd_.is_open();
}

NewFile::~NewFile() {
  const bool keeps_nothing = kind_ == Kind::Temporary || (kind_ == Kind::Part && size_ == 0);
  if (fd_.is_open() && keeps_nothing) ::unlink(path_.c_str());
}

// Succeeds without a change if the file already has the mode, because it may be another user's.
bool NewFile::set_mode(mode_t mode) const {
  struct ::stat about {};
  if (::fstat(fd_.get(), &about) != 0) return false;
  return (about.st_mode & kMode) == (mode & kMode) || ::fchmod(fd_.get(), mode & kMode) == 0;
}

// Creates a temporary file in the folder of `target`; `commit` later renames it to `target`. The
// file gets the permissions of an existing target, unless `access` is AlwaysOwner. A device such as
// /dev/null is not replaced: it is opened itself. Returns an error for a target that can be neither
// replaced nor opened.
Result<NewFile> NewFile::beside(const std::string& target, FileAccess access) {
  const auto path = follow_links(target);
  if (!path) return path.error();
  struct ::stat old {};  // the existing target, if `exists`
  const bool exists = ::stat(path->c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) return cannot_open(target, EISDIR);
  if (exists && (S_ISFIFO(old.st_mode) || S_ISSOCK(old.st_mode))) {
    return write_error(Errc::InvalidRequest,
                       "cannot write " + target +
                           ": it is a pipe or a socket, and waiting for its reader could block "
                           "forever; expected a file or a device");
  }
  if (exists && !S_ISREG(old.st_mode)) {  // a device
    NewFile file(is_null_device(old) ? Kind::NullDevice : Kind::Device, *path, *path);
    if (!file.open()) return cannot_open(target, errno);
    return file;
  }
  // A rename would replace even a file that we are not allowed to write to.
  if (exists && ::access(path->c_str(), W_OK) != 0) return cannot_open(target, errno);
  NewFile file(Kind::Temporary, name_beside(*path), *path);
  if (!file.open(O_CREAT | O_EXCL, mode_of(access))) return cannot_open(target, errno);
  const bool keeps_mode = exists && access != FileAccess::AlwaysOwner;
  if (keeps_mode && !file.set_mode(old.st_mode)) return cannot_write(target, errno);
  return file;
}

// Opens or creates "TARGET.part", in which a partial body stays for a later call, and locks it
// against other processes. Returns an error if another process has locked it. A target that is not
// a regular file, such as a device, is opened with `beside` and keeps no partial body.
Result<NewFile> NewFile::part(const std::string& target, FileAccess access) {
  constexpr int kTries = 100;
  const auto path = follow_links(target);
  if (!path) return path.error();
  struct ::stat old {};  // the existing target, if `exists`
  const bool exists = ::stat(path->c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) return beside(target, access);
  // A rename would replace even a file that we are not allowed to write to.
  if (exists && ::access(path->c_str(), W_OK) != 0) return cannot_open(target, errno);
  // Another process may finish the file, and rename it, after we have opened it and before we lock
  // it. Then our descriptor refers to the finished file, which must not be written to. In this case
  // `open_and_lock` returns false, and the next try creates a new "TARGET.part".
  for (int tries = 0; tries < kTries; ++tries) {
    NewFile file(Kind::Part, *path + ".part", *path);
    // The mode is for a new file. No caller passes AlwaysOwner as `access`, so the mode of an
    // existing target takes precedence.
    const auto locked = file.open_and_lock(exists ? old.st_mode & 0777U : mode_of(access));
    const bool is_ours = locked && *locked;
    // The file on disk may belong to another process. Closed here, it survives the destructor of
    // `file`, which removes an empty file that is still open.
    if (!is_ours) file.fd_.close();
    if (!locked) return locked.error();
    if (!is_ours) continue;
    // The umask may have removed some of the permissions that the target has.
    if (exists && !file.set_mode(old.st_mode)) return cannot_write(target, errno);
    return file;
  }
  // At each try, another process has finished the file just before we locked it.
  return written_by_another(*path + ".part");
}

// Opens the file at `path_`, or creates it with this mode; locks it against other processes, and
// continues at its end. Returns true if it is locked. Returns false if another process renamed the
// file before it was locked, so the caller must try again. Returns an error if another process
// holds the lock, or if the file is not a regular one.
Result<bool> NewFile::open_and_lock(mode_t mode) {
  // Without O_NONBLOCK, opening a pipe would wait for a reader.
  if (!open(O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode)) {
    return errno == ENXIO ? not_regular(path_) : cannot_open(path_, errno);  // ENXIO: a pipe
  }
  struct ::stat opened {};
  struct ::stat named {};  // the file that has the name now
  if (::fstat(fd_.get(), &opened) != 0) return cannot_write(path_, errno);
  if (!S_ISREG(opened.st_mode)) return not_regular(path_);
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) return written_by_another(path_);
  // Again, because the file may have grown before it was locked.
  if (::fstat(fd_.get(), &opened) != 0) return cannot_write(path_, errno);
  if (::lstat(path_.c_str(), &named) != 0 || !is_same_file(opened, named)) return false;
  size_ = static_cast<std::uint64_t>(opened.st_size);
  if (::lseek(fd_.get(), 0, SEEK_END) < 0) return cannot_write(path_, errno);
  return true;
}

// Writes all of the bytes; the system may write them in several parts.
Result<void> NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_write(path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    size_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

// Truncates the file. A null device has nothing to truncate; other devices cannot be truncated.
Result<void> NewFile::restart() {
  if (size_ == 0) return {};
  if (kind_ == Kind::Device) return cannot_write(path_, ESPIPE);
  const bool is_empty = kind_ == Kind::NullDevice ||
                        (::ftruncate(fd_.get(), 0) == 0 && ::lseek(fd_.get(), 0, SEEK_SET) == 0);
  if (!is_empty) return cannot_write(path_, errno);
  size_ = 0;
  return {};
}

// Gives the file the target's name.
Result<void> NewFile::commit() {
  // A network file system reports some errors only at close. So a copy of the descriptor is closed
  // first: after an error the old file still exists, and a partial file is still locked.
  const int copy = ::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) return cannot_write(target_, errno);
  if (!is_device() && ::rename(path_.c_str(), target_.c_str()) != 0) {
    return cannot_write(target_, errno);
  }
  fd_.close();
  return {};
}

}  // namespace httpretry
