#include "queue_jobs.hpp"

namespace httpretry::queue {

std::variant<batch::Prepared, batch::JobEnd> QueueJobs::prepare(const batch::Job& job) {
  const auto held = store_.held(job);
  if (held.deliveries > kMostDeliveries) {
    return lines_.give_up(job, "poison",
                          std::to_string(kMostDeliveries) +
                              " workers had it, and none of them said what became of it");
  }
  auto prepared = lines_.prepare(job);
  if (auto* const sent = std::get_if<batch::Prepared>(&prepared)) {
    sent->request.edit_options().context.set(LeaseOfCall{held.lease});
  }
  return prepared;
}

}  // namespace httpretry::queue
