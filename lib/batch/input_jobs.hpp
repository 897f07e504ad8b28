// InputJobs: the jobs of an input that was read whole, for a store that is no journal.
#pragma once

#include "lib/batch/open_journal.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace httpretry::batch {

struct InputJob {
  std::uint64_t line = 0;
  std::string id;            // empty: the line has none
  std::string text;          // the request
  std::string key;           // empty: none, or one has to be made
  bool key_is_made = false;  // the line, or its policy, asks for one
  std::optional<WallTime> not_before;
};

class HTTPRETRY_API InputJobs {
 public:
  // nullptr after problems, all of which were told. Throws StoreError.
  static std::unique_ptr<InputJobs> read(const JournalSource& source, LinePolicies& policies);
  ~InputJobs();
  InputJobs(const InputJobs&) = delete;
  InputJobs& operator=(const InputJobs&) = delete;

  // In the order of the input.
  void each(const std::function<void(InputJob job)>& use) const;

 private:
  InputJobs();
  std::unique_ptr<Database> database_;
};

}  // namespace httpretry::batch
