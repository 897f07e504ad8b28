// The files that a run itself reads and writes, which no response body may replace.
#pragma once

#include <httpretry/batch/batch.hpp>

#include <map>
#include <string>

namespace httpretry::batch {

// The purposes of the files, such as "input", by their absolute paths without symbolic links.
using OwnFiles = std::map<std::string, std::string>;

// Returns the input, the journal with the files that SQLite adds to it, the results, the dead
// letters and the `other_files`.
[[nodiscard]] OwnFiles own_files(const BatchOptions& options);

// Returns those of own_files that are below the directory for response bodies. Their paths are
// relative to it, as those of the bodies are.
[[nodiscard]] OwnFiles own_files_below_directory(const BatchOptions& options);

}  // namespace httpretry::batch
