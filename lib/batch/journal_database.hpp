// Opening the database of a journal: making it from an input, or comparing it with one.
#pragma once

#include "lib/batch/import.hpp"

#include <memory>
#include <string>

namespace httpretry::batch {

// Returns the database of the journal, with all lines of the input in it. Returns nullptr after
// problems; nothing has changed then. Throws StoreError. The lock must be held.
std::unique_ptr<Database> open_journal(const BatchOptions& options);

// Opens the database of a journal that exists.
std::unique_ptr<Database> open_database(const std::string& path, Database::Mode mode);

// Counts the jobs in each state.
[[nodiscard]] Counts count_states(const Database& database);

}  // namespace httpretry::batch
