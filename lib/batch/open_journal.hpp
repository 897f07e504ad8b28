// Opening the database of a journal: making it from an input, or comparing it with one.
#pragma once

#include "lib/batch/journal.hpp"

#include <httpretry/batch/batch.hpp>

#include <memory>
#include <string>

namespace httpretry::batch {

struct JournalSource {
  std::string path;      // of the journal
  ImportOptions import;  // "-": standard input
  std::function<void(std::uint64_t lines)> on_import;
};

// The database, with all lines of the input in it. nullptr after problems; nothing has changed
// then. Throws StoreError. The lock must be held.
std::unique_ptr<Database> open_journal(const JournalSource& source, LinePolicies& policies);

// Of a journal that is there.
std::unique_ptr<Database> open_database(const std::string& path, Database::Mode mode);

// Reads all lines into `database`, which has the tables. False after problems.
bool import_all(const JournalSource& source, Database& database, LinePolicies& policies);

// For --fresh: renames what is there to "….old".
void put_aside(const std::string& path);

}  // namespace httpretry::batch
