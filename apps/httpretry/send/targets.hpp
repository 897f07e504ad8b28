// Chooses the files for the responses.
#pragma once

#include "send/options.hpp"

#include <httpretry/http/response.hpp>

#include <string>

namespace httpretry::cli {

// Returns the file for a response, or "-". With -J, this is the file if the server gives no name.
// Throws UsageError.
std::string target_for(const SendOptions& options, std::size_t index, const Request& request);

// Returns whether a file or a link of this name exists.
bool file_exists(const std::string& path);

// Returns the name for --no-clobber: `target` or, if a file of that name exists or `others` has it,
// `target` with ".1" to ".100" at the end. Throws WriteError if all are taken.
std::string unused_name(const std::string& target, const std::vector<std::string>& others);

// Removes a URL with the file of its -T and the name of its -o.
void remove_url(SendOptions& options, std::size_t index);

// Sets the time of a regular file to the Last-Modified of its response, if it has a valid one.
void set_remote_time(const std::string& file, const Headers& headers);

// Returns whether the user named standard output with -o.
bool names_stdout(const SendOptions& options, std::size_t index);

// Creates the folder of a file, for --create-dirs. Throws WriteError.
void create_folder_of(const std::string& file);

// Returns whether the server may name the file for this URL: with -J and -O.
bool server_may_name_file(const SendOptions& options, std::size_t index);

// Returns the file name in the Content-Disposition of a response, without folders. Empty if it has
// no usable name.
std::string name_in(const Headers& headers);

// NamedFile is a new file with the name that the server gave. It is created empty to reserve the
// name, and its destructor removes it unless `keep` was called.
class NamedFile {
 public:
  explicit NamedFile(const SendOptions& options) : options_(options) {}
  ~NamedFile();
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  // Creates the file and returns its path. Empty if `head` gives no name; an error if the file
  // exists.
  Result<std::string> choose(const Headers& head);
  void keep() { path_.clear(); }

 private:
  const SendOptions& options_;
  std::string path_;  // to remove; empty: none
};

}  // namespace httpretry::cli
