// QueueJobs: the jobs of a queue as LineJobs has them, each with its lease.
#pragma once

#include "queue_store.hpp"

#include "lib/batch/line_jobs.hpp"

namespace httpretry::queue {

// A job that so many workers took, of which none said what became of it, is dead.
inline constexpr std::int64_t kMostDeliveries = 5;

class QueueJobs final : public batch::Jobs {
 public:
  QueueJobs(const QueueStore& store, batch::LineJobs& lines) : store_(store), lines_(lines) {}

  [[nodiscard]] std::variant<batch::Prepared, batch::JobEnd> prepare(
      const batch::Job& job) override;
  [[nodiscard]] batch::Verdict judge(const batch::Job& job, const batch::Prepared& sent,
                                     Outcome outcome) override {
    return lines_.judge(job, sent, std::move(outcome));
  }

 private:
  const QueueStore& store_;
  batch::LineJobs& lines_;
};

}  // namespace httpretry::queue
