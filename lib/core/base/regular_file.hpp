// Reading files that cannot make us wait: opening a pipe waits for somebody who writes, and nothing
// would end the wait of a loop.
#pragma once

#include <string>

struct stat;

namespace httpretry {

// /dev/null: it keeps nothing, and is read as an empty file.
bool is_null_device(const struct stat& about);

// Whether the file exists, and is neither a regular file, a directory nor /dev/null.
bool could_make_wait(const std::string& path);
inline constexpr const char* kCouldMakeWait =
    "it is not a regular file, and could make us wait for ever";

// Why the file cannot be read as a regular file: what the system says, or that it is none. Empty if
// it can be. /dev/null is as good as an empty file.
std::string cannot_read(const std::string& path);

}  // namespace httpretry
