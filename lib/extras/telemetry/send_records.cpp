#include "send_records.hpp"

#include "words.hpp"

#include <algorithm>
#include <new>

namespace httpretry::telemetry {

void SendWriter::exchange_started(const Call& call, const Request& request, int number) noexcept {
  try {
    begin(call, request, number);
  } catch (const std::bad_alloc&) {
  }
}

// Adds a record for a send that begins now to the records of the call.
void SendWriter::begin(const Call& call, const Request& request, int number) {
  auto record = std::make_unique<SendRecord>(request);
  record->owner = this;
  record->number = number;
  record->attempt = call.attempt();
  record->at = call.scheduler().wall_now();
  auto* records = call.get<SendRecords>();
  if (records == nullptr) records = &call.set(SendRecords());
  records->open.push_back(std::move(record));
}

void SendWriter::add_wait(SendRecord& record, const Attempt& attempt) {
  auto& exchange = record.exchange;
  exchange.queued_by = attempt.queued_by;
  exchange.timings.queued = attempt.exchange().timings.queued;
  record.at -= std::chrono::duration_cast<WallTime::duration>(exchange.timings.queued);
}

// Completes the record of the exchange. If no retry middleware will judge the send (its attempt is
// 0), writes the record at once; otherwise attempt_ended() does.
void SendWriter::exchange_ended(const Call& call, const Request& /*request*/, int number,
                                const Outcome& outcome) noexcept {
  auto* records = call.get<SendRecords>();
  if (records == nullptr) return;
  const auto found = std::ranges::find_if(records->open, [&](const auto& record) {
    return record->owner == this && record->number == number;
  });
  if (found == records->open.end()) return;
  auto& record = **found;
  record.ended = true;
  record.exchange = exchange_of(outcome);
  try {
    if (outcome) {
      record.status = outcome->status;
      record.reason = outcome->reason;
      record.http_version = outcome->http_version;
      record.headers = outcome->headers;
    } else {
      record.status = outcome.error().status;
      record.error = outcome.error().code;
      record.message = outcome.error().message;
      record.headers = outcome.error().headers;
    }
    if (record.attempt != 0) return;
    finish(call, static_cast<std::size_t>(found - records->open.begin()), /*attempt=*/nullptr);
  } catch (const std::bad_alloc&) {
  }
}

void SendWriter::finish(const Call& call, std::size_t index, const Attempt* attempt) {
  auto& open = call.get<SendRecords>()->open;
  const auto record = std::move(open[index]);
  open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
  on_send_ended(call, *record, attempt);
}

// Writes the records of all sends of the attempt, or calls on_not_sent() if it has none.
void SendWriter::attempt_ended(const Call& call, const Request& request,
                               const Attempt& attempt) noexcept {
  try {
    auto* records = call.get<SendRecords>();
    const auto is_of_attempt = [&](const auto& record) {
      return record->owner == this && record->ended && record->attempt == attempt.number;
    };
    bool was_sent = false;
    while (records != nullptr) {
      const auto found = std::ranges::find_if(records->open, is_of_attempt);
      if (found == records->open.end()) break;
      was_sent = true;
      // If the attempt has several sends, only the last one was judged.
      const bool is_last = std::none_of(found + 1, records->open.end(), is_of_attempt);
      if (is_last && was_held_by_guards(attempt)) add_wait(**found, attempt);
      finish(call, static_cast<std::size_t>(found - records->open.begin()),
             is_last ? &attempt : nullptr);
    }
    if (!was_sent) on_not_sent(call, request, attempt);
  } catch (const std::bad_alloc&) {
  }
}

// Writes the records of this writer that are left: sends that were not judged. Those that have not
// ended were abandoned by a middleware, and count as canceled.
void SendWriter::call_ended(const Call& call, const Outcome& outcome) noexcept {
  try {
    if (auto* records = call.get<SendRecords>(); records != nullptr) {
      for (std::size_t i = 0; i < records->open.size();) {
        if (records->open[i]->owner != this) {
          ++i;
          continue;
        }
        auto& record = *records->open[i];
        if (!record.ended) record.error = Errc::Canceled;
        finish(call, i, /*attempt=*/nullptr);  // removes the record at `i`
      }
    }
    on_call_ended(call, outcome);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace httpretry::telemetry
