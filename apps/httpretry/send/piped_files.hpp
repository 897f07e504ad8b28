// PipedFiles holds copies of certificates, keys and passwords that come from a pipe or a device.
//
// libcurl opens these files itself, for each new connection. With a pipe that would block until a
// writer opens it, and no signal could end the wait. A second connection would find the pipe empty,
// and a device may have no end.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/curl/transport_options.hpp>

#include <string>
#include <vector>

namespace httpretry::cli {

class PipedFiles {
 public:
  // Reads the pipes and devices that `options` names, and replaces their names by those of copies
  // in memory. Without `tls`, skips the files for TLS. Throws ReadError; `cancel` is that of
  // read_whole.
  PipedFiles(TransportOptions& options, bool tls, int cancel);

 private:
  void copy(std::string& path, int cancel);

  std::vector<Descriptor> copies_;
};

}  // namespace httpretry::cli
