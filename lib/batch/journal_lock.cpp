#include "lib/batch/journal_lock.hpp"

#include "lib/batch/file_lock.hpp"
#include "lib/http/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace httpretry::batch {
namespace {

// A journal has one lock, also where links to it are named. Not on the journal itself: that one is
// SQLite's.
std::string lock_path(const std::string& journal) {
  std::error_code missing;
  const auto itself = std::filesystem::canonical(journal, missing);
  return (missing ? journal : itself.string()) + "-lock";
}

// Who holds it has written its number there.
std::int64_t process_in(int file) {
  std::array<char, 20> text{};
  const auto size = ::pread(file, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  return to_number<std::int64_t>(std::string_view(text.data(), static_cast<std::size_t>(size)))
      .value_or(0);
}

bool is_still_there(int file, const std::string& path) {
  struct ::stat opened {};
  return ::fstat(file, &opened) == 0 && leads_to(path, opened);
}

}  // namespace

JournalLock::JournalLock(const std::string& journal) : path_(lock_path(journal)) {
  for (;;) {
    file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file_.open()) throw file_error("lock " + journal);
    if (try_lock(file_.get())) {
      // Who had it may have removed the file meanwhile.
      if (is_still_there(file_.get(), path_)) break;
      continue;
    }
    if (errno != EAGAIN && errno != EACCES) throw file_error("lock " + journal);
    const auto process = process_in(file_.get());
    throw StoreError(journal + " is in use" +
                     (process > 0 ? " by the process " + std::to_string(process) : "") +
                     ": wait for its end, or name another journal");
  }
  const auto process = std::to_string(::getpid());
  const bool written =
      ::ftruncate(file_.get(), 0) == 0 &&
      ::pwrite(file_.get(), process.data(), process.size(), 0) == std::ssize(process);
  if (!written) throw file_error("lock " + journal);
}

JournalLock::~JournalLock() { ::unlink(path_.c_str()); }

std::optional<std::int64_t> JournalLock::owner(const std::string& journal) {
  const Descriptor file(::open(lock_path(journal).c_str(), O_RDWR | O_CLOEXEC));
  if (!file.open()) return std::nullopt;
  if (!is_locked(file.get())) return std::nullopt;
  return process_in(file.get());
}

}  // namespace httpretry::batch
