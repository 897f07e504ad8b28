// Reading files without blocking: opening a pipe waits for a writer, and nothing would end that
// wait of a loop.
#pragma once

#include <string>

struct stat;

namespace httpretry {

// Returns whether the file is /dev/null, which drops what is written and is read as an empty file.
bool is_null_device(const struct stat& about);

// Returns whether the file exists and is neither a regular file, a directory nor /dev/null.
bool could_block(const std::string& path);
inline constexpr const char* kCouldBlock =
    "it is not a regular file, and reading it could block forever";

// Returns why the file cannot be read as a regular file: the system's error text, or
// kCouldBlock. Returns "" if it can. /dev/null counts as an empty file.
std::string read_problem(const std::string& path);

}  // namespace httpretry
