// Bytes that come from files and from standard input.
#pragma once

#include <stdexcept>
#include <string>

namespace httpretry::cli {

// what() is the cause alone: exit status 26.
struct ReadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All of a file; "-" is standard input, which gives the same bytes however often it is asked.
std::string read_whole(const std::string& path);

// Throws ReadError where the file cannot be opened for reading, or is a directory.
void demand_readable(const std::string& path);

}  // namespace httpretry::cli
