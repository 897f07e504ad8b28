// PipedFiles: copies of certificates, keys and passwords that are read from a pipe or a device.
//
// libcurl opens these files itself, for each new connection. Opening a pipe waits for somebody who
// writes, which no signal could end; a second connection would find it empty; and a device may have
// no end.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/curl/transport_options.hpp>

#include <string>
#include <vector>

namespace httpretry::cli {

class PipedFiles {
 public:
  // Reads the pipes and devices that `options` names, and names copies in memory instead. Without
  // `tls` only those that are needed without TLS. Throws ReadError; `cancel` as for read_whole.
  PipedFiles(TransportOptions& options, bool tls, int cancel);

 private:
  void keep(std::string& path, int cancel);

  std::vector<Descriptor> copies_;
};

}  // namespace httpretry::cli
