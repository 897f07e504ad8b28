// Where responses go: the names of files.
#pragma once

#include "send/options.hpp"

#include <httpretry/http/response.hpp>

#include <string>

namespace httpretry::cli {

// A file, or "-". With -J, the file if the server gives no name. Throws UsageError.
std::string target_for(const SendOptions& options, std::size_t index, const Request& request);

// Whether the user named standard output with -o.
bool names_stdout(const SendOptions& options, std::size_t index);

// --create-dirs: creates the folder that the file is in. Throws WriteError.
void create_folder_of(const std::string& file);

// Whether a name of the server counts for this URL: -J with -O.
bool may_be_named(const SendOptions& options, std::size_t index);

// The file name that a response gives in Content-Disposition, without folders. Empty if there is
// none that can be used.
std::string name_in(const Headers& headers);

// A new file with the name that the server gave. It is created empty, so that nothing else gets its
// name, and removed again unless it is kept.
class NamedFile {
 public:
  explicit NamedFile(const SendOptions& options) : options_(options) {}
  ~NamedFile();
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  // Empty if `head` gives no name. An error if such a file exists.
  Result<std::string> choose(const Headers& head);
  void keep() { path_.clear(); }

 private:
  const SendOptions& options_;
  std::string path_;  // to be removed
};

}  // namespace httpretry::cli
