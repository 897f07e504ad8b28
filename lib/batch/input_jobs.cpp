#include "lib/batch/input_jobs.hpp"

namespace httpretry::batch {

InputJobs::InputJobs() : database_(std::make_unique<Database>("", Database::Mode::Create)) {
  database_->execute("PRAGMA journal_mode = OFF; PRAGMA cache_size = -32000; BEGIN");
}
InputJobs::~InputJobs() = default;

std::unique_ptr<InputJobs> InputJobs::read(const JournalSource& source, LinePolicies& policies) {
  std::unique_ptr<InputJobs> jobs(new InputJobs());
  create_tables(*jobs->database_, source.import.input, source.import.format);
  if (!import_all(source, *jobs->database_, policies)) return nullptr;
  return jobs;
}

void InputJobs::each(const std::function<void(InputJob job)>& use) const {
  auto row = database_->prepare(
      "SELECT line, id, key, input, until FROM job LEFT JOIN state USING(line) ORDER BY line");
  while (row.step()) {
    InputJob job;
    job.line = static_cast<std::uint64_t>(row.number(0));
    job.id = row.text(1);
    job.key_is_made = row.is_number(2);
    if (!job.key_is_made) job.key = row.text(2);
    job.text = row.text(3);
    if (!row.is_null(4)) job.not_before = WallTime(std::chrono::milliseconds(row.number(4)));
    use(std::move(job));
  }
}

}  // namespace httpretry::batch
