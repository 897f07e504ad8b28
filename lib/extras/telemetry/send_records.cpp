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

// Completes the record of a send, which exchange_started() began, with the response or the error.
// `number` is that of the exchange in its call. The record stays open until attempt_ended() writes
// it with the decision of the retry middleware. Without that middleware, it is written now.
void SendWriter::exchange_ended(const Call& call, const Request& /*request*/, int number,
                                const Outcome& outcome) noexcept {
  auto* records = call.get<SendRecords>();  // shared by all writers that observe the call
  if (records == nullptr) return;
  // Each writer has its own record of a send.
  const auto found = std::ranges::find_if(records->open, [&](const auto& record) {
    return record->owner == this && record->number == number;
  });
  if (found == records->open.end()) return;  // there was no memory for the record
  auto& record = **found;
  record.ended = true;
  record.exchange = exchange_of(outcome);
  try {
    if (outcome) {
      record.status = outcome->status;
      record.reason = outcome->reason;
      record.http_version = outcome->http_version;
      record.headers = outcome->headers;
      const bool has_body = outcome->delivered == 0;  // otherwise a sink got it
      const bool keeps_body = max_body() > 0 && outcome->body.size() <= max_body();
      if (has_body && keeps_body) record.body = outcome->body;
    } else {
      record.status = outcome.error().status;
      record.error = outcome.error().code;
      record.message = outcome.error().message;
      record.headers = outcome.error().headers;
    }
    const bool has_retry_middleware = record.attempt != 0;
    if (has_retry_middleware) return;  // attempt_ended() writes the record
    // Removes the record, and lets the derived class write it.
    finish(call, static_cast<std::size_t>(found - records->open.begin()), /*attempt=*/nullptr);
  } catch (const std::bad_alloc&) {
    // The record lacks what could not be stored, or is not written.
  }
}

// Removes the record at `index` from the open ones, and lets the derived class write it.
void SendWriter::finish(const Call& call, std::size_t index, const Attempt* attempt) {
  auto& open = call.get<SendRecords>()->open;
  const auto record = std::move(open[index]);
  open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
  on_send_ended(call, *record, attempt);
}

// Writes the records of the attempt's sends that have ended, or calls on_not_sent() if there are
// none. An attempt has several sends if a middleware below the retry middleware sends again, such
// as bearer() after a 401. The decision of the retry middleware, in `attempt`, is about the last of
// them, so only its record gets it.
void SendWriter::attempt_ended(const Call& call, const Request& request,
                               const Attempt& attempt) noexcept {
  try {
    auto* records = call.get<SendRecords>();  // nullptr: nothing was sent in this call
    const auto is_of_attempt = [&](const auto& record) {
      return record->owner == this && record->ended && record->attempt == attempt.number;
    };
    bool was_sent = false;
    while (records != nullptr) {
      const auto found = std::ranges::find_if(records->open, is_of_attempt);
      if (found == records->open.end()) break;
      was_sent = true;
      const bool is_last = std::none_of(found + 1, records->open.end(), is_of_attempt);
      // Guards make a send wait before its exchange begins, so only the attempt has this wait.
      if (is_last && was_held_by_guards(attempt)) add_wait(**found, attempt);
      // Removes the record, so the next iteration finds the next one.
      finish(call, static_cast<std::size_t>(found - records->open.begin()),
             is_last ? &attempt : nullptr);
    }
    if (!was_sent) on_not_sent(call, request, attempt);
  } catch (const std::bad_alloc&) {
    // The record that was removed is lost. call_ended() writes those that are left.
  }
}

// Writes the records of this writer that are left when a call ends, and lets the derived class
// write about the whole call. The records are about sends after which the retry middleware made no
// decision. A send that has not ended was abandoned by a middleware, and counts as canceled. Other
// writers that observe the call write their own records.
void SendWriter::call_ended(const Call& call, const Outcome& outcome) noexcept {
  try {
    auto* records = call.get<SendRecords>();
    for (std::size_t i = 0; records != nullptr && i < records->open.size();) {
      auto& record = *records->open[i];
      if (record.owner != this) {
        ++i;
        continue;
      }
      if (!record.ended) record.error = Errc::Canceled;
      finish(call, i, /*attempt=*/nullptr);  // removes the record, so the next one is at `i`
    }
    on_call_ended(call, outcome);
  } catch (const std::bad_alloc&) {
    // The records that were not written yet are lost, and so is the text about the call.
  }
}

}  // namespace httpretry::telemetry
