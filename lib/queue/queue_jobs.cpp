#include "queue_jobs.hpp"

namespace httpretry::queue {
namespace {

batch::Job with_line(batch::Job job, const QueueStore::Held& held) {
  job.number = held.line;
  return job;
}

}  // namespace

std::variant<batch::Prepared, batch::JobEnd> QueueJobs::prepare(const batch::Job& job) {
  const auto held = store_.held(job);
  if (held.deliveries > kMostDeliveries) {
    return lines_.give_up(with_line(job, held), "poison",
                          std::to_string(kMostDeliveries) +
                              " workers had it, and none of them said what became of it");
  }
  auto prepared = lines_.prepare(with_line(job, held));
  if (auto* const sent = std::get_if<batch::Prepared>(&prepared)) {
    sent->request.edit_options().context.set(LeaseOfCall{held.lease});
  }
  return prepared;
}

batch::Verdict QueueJobs::judge(const batch::Job& job, const batch::Prepared& sent,
                                Outcome outcome) {
  return lines_.judge(with_line(job, store_.held(job)), sent, std::move(outcome));
}

}  // namespace httpretry::queue
