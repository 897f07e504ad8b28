#include "send/body_buffer.hpp"

#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <system_error>

namespace httpretry::cli {
namespace {

constexpr std::size_t kMaxInMemory = 8U << 20U;  // as documented: "beyond 8 MiB"

std::string folder() {
  const auto named = environment_variable("TMPDIR");
  return named.empty() ? "/tmp" : named;
}

// Opens a file that no other process can open, and that is deleted when it is closed.
int open_unnamed_file() {
  const int file = ::open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  auto path = folder() + "/httpretry.XXXXXX";  // for file systems without O_TMPFILE
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

Error write_error(int number) {
  return permanent_error(Errc::Internal,
                         "cannot write the response to a temporary file in " + folder() + ": " +
                             std::generic_category().message(number) +
                             "; set TMPDIR to another folder, or use -o FILE",
                         23);  // CURLE_WRITE_ERROR
}

}  // namespace

Result<void> BodyBuffer::append(std::string_view bytes) {
  const auto space = in_file_ == 0 ? kMaxInMemory - memory_.size() : 0;
  memory_.append(bytes.substr(0, space));
  bytes.remove_prefix(std::min(space, bytes.size()));
  return bytes.empty() ? Result<void>() : append_to_file(bytes);
}

// Writes at `in_file_` and not at the end of the file, because `truncate` leaves old bytes there.
Result<void> BodyBuffer::append_to_file(std::string_view bytes) {
  if (!file_.is_open()) file_ = Descriptor(open_unnamed_file());
  if (!file_.is_open()) return write_error(errno);
  while (!bytes.empty()) {
    const auto count =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<::off_t>(in_file_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return write_error(errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    in_file_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

void BodyBuffer::truncate(std::uint64_t size) {
  if (size >= this->size()) return;
  in_file_ = size > memory_.size() ? size - memory_.size() : 0;
  memory_.resize(std::min<std::uint64_t>(size, memory_.size()));
}

void BodyBuffer::clear() {
  in_file_ = 0;
  memory_ = std::string();
}

bool BodyBuffer::fits_in_memory(std::size_t more) const {
  return in_file_ == 0 && more <= kMaxInMemory - memory_.size();
}

void BodyBuffer::read(const std::function<void(std::string_view)>& take) const {
  if (!memory_.empty()) take(memory_);
  std::string piece(in_file_ > 0 ? 1U << 20U : 0U, '\0');
  for (std::uint64_t at = 0; at < in_file_;) {
    const auto wanted = std::min<std::uint64_t>(piece.size(), in_file_ - at);
    const auto count = ::pread(file_.get(), piece.data(), wanted, static_cast<::off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw WriteError(write_error(count == 0 ? EIO : errno).message);
    take(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
    at += static_cast<std::uint64_t>(count);
  }
}

}  // namespace httpretry::cli
