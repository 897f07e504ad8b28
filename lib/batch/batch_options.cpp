#include "lib/batch/batch_options.hpp"

namespace httpretry::batch {
namespace {

LineFormat line_format(InputFormat format) { return static_cast<LineFormat>(format); }

}  // namespace

JournalSource source_of(const BatchOptions& options) {
  JournalSource source;
  source.path = options.journal;
  source.import.input = options.input;
  source.import.format = line_format(options.format);
  source.import.bodies_in_files = options.bodies == Bodies::Files;
  source.import.tell = options.on_problem;
  if (!source.import.tell) source.import.tell = [](const Problem& /*problem*/) {};
  source.on_import = options.on_import;
  return source;
}

LineJobsOptions line_jobs_options(const BatchOptions& options, const std::string& token) {
  LineJobsOptions jobs;
  jobs.format = line_format(options.format);
  jobs.bodies = static_cast<LineJobsOptions::Bodies>(options.bodies);
  jobs.directory = options.directory;
  jobs.headers = options.headers;
  jobs.compressed = options.compressed;
  jobs.default_headers = options.default_headers;
  jobs.key_lifetime = options.key_lifetime;
  jobs.token = token;
  return jobs;
}

}  // namespace httpretry::batch
