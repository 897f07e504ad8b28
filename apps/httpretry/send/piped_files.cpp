#include "send/piped_files.hpp"

#include "cli/input.hpp"
#include "cli/output.hpp"
#include "send/data.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <cerrno>
#include <system_error>

namespace httpretry::cli {

PipedFiles::PipedFiles(TransportOptions& options, bool tls, int cancel) {
  if (options.netrc) copy(*options.netrc, cancel);
  if (!tls) return;
  copy(options.ca_file, cancel);
  copy(options.pinned_keys, cancel);
  copy(options.client_certificate.file, cancel);
  copy(options.client_certificate.key_file, cancel);
}

void PipedFiles::copy(std::string& path, int cancel) {
  struct ::stat about {};
  if (path.empty() || ::stat(path.c_str(), &about) != 0) return;
  if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) return;
  const auto content = read_named(path, kMaxTextFile, cancel);
  const int copy = ::memfd_create("httpretry", MFD_CLOEXEC);
  if (copy < 0) throw std::system_error(errno, std::generic_category(), "memory for " + path);
  copies_.emplace_back(copy);
  write_all(copy, content, -1, path);
  path = "/proc/self/fd/" + std::to_string(copy);
}

}  // namespace httpretry::cli
