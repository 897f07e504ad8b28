#include "plan/table.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace httpretry::cli {
namespace {

using Row = std::vector<std::string>;

// Returns the rows as text with a line for each. Columns are as wide as their widest cell and
// aligned to the right, except for the last one, which is aligned to the left. A row may have fewer
// cells than others.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string gap(widths[i] - row[i].size(), ' ');
      const bool is_last_column = i + 1 == widths.size();
      line += is_last_column ? row[i] : gap + row[i];
    }
    // Removes spaces at the end of the line.
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

bool has_hedges(const History& history) {
  return std::any_of(history.attempts.begin(), history.attempts.end(),
                     [](const Attempt& attempt) { return attempt.hedge != nullptr; });
}

// Returns "won; hedge after 200 ms (fixed)", for example.
std::string race_text(const Attempt& attempt) {
  std::string text = attempt.race == Race::Won ? "won" : attempt.race == Race::Lost ? "lost" : "";
  if (!attempt.hedge) return text.empty() ? "-" : text;
  const auto& hedge = *attempt.hedge;
  if (!text.empty()) text += "; ";
  return text + "hedge after " + duration_text(hedge.after) + " (" + hedge.from + ")";
}

// Adds the columns that only hedged calls have: after "at" and before "rule".
void add_race(Row& row, std::string ends, std::string race) {
  row.insert(row.end() - 1, std::move(race));
  row.insert(row.begin() + 2, std::move(ends));
}

// Returns when the attempt was sent: after the time for which a guard held it back.
Duration sent_at(const Attempt& attempt) {
  return attempt.start + attempt.exchange().timings.queued;
}

std::string or_dash(const std::optional<Duration>& time) {
  return time ? duration_text(*time) : "-";
}

std::string rule_text(const Attempt& attempt) {
  return printable(attempt.rule) + (attempt.hedge ? "; " + race_text(attempt) : "");
}

// An event of one of several calls: it sends an attempt, or is refused before its first send.
struct CallEvent {
  std::size_t call;
  Duration at;  // since the first call began
  Duration ends;
  const History* history;
  const Attempt* attempt = nullptr;  // null: refused
};

// Returns an event for each attempt of all calls, and one for each call that was refused before its
// first send, in the order of time. Times count from the start of the first call. The calls must
// share a script, because otherwise `simulated` lacks their starts. The events point into
// `simulated`, which must outlive them.
std::vector<CallEvent> events_of(const SimulatedCalls& simulated) {
  std::vector<CallEvent> events;
  for (std::size_t i = 0; i < simulated.outcomes.size(); ++i) {
    const auto& history = history_of(simulated.outcomes[i]);
    const auto begun = simulated.begun[i];  // when the call began
    for (const auto& attempt : history.attempts) {
      events.push_back({.call = i + 1,
                        .at = begun + sent_at(attempt),
                        .ends = begun + attempt.start + attempt.duration,
                        .history = &history,
                        .attempt = &attempt});
    }
    if (history.attempts.empty()) {
      const auto refused_at = begun + history.elapsed;
      events.push_back({.call = i + 1, .at = refused_at, .ends = refused_at, .history = &history});
    }
  }
  std::ranges::stable_sort(events, /*comp=*/{}, &CallEvent::at);
  return events;
}

std::string held_back(const Attempt& attempt) {
  if (attempt.queued_by == QueuedBy::Nothing) return "-";
  return duration_text(attempt.exchange().timings.queued) + " " +
         std::string(to_string(attempt.queued_by));
}

// Returns the cells of an event in the table of several calls, in this order: call, attempt, at,
// ends, outcome, class, held back, wait, rule. A refused call has no attempt, so most of its cells
// are "-".
Row row_of(const CallEvent& event) {
  const auto call = std::to_string(event.call);
  if (event.attempt == nullptr) {
    return {call, "-",        duration_text(event.at),
            "-",  "not sent", "-",
            "-",  "-",        std::string(stop_reason_text(*event.history))};
  }
  const auto& attempt = *event.attempt;
  return {call,
          std::to_string(attempt.number),
          duration_text(event.at),
          duration_text(event.ends),
          attempt_text(attempt),
          std::string(to_string(attempt.cls)),
          held_back(attempt),
          or_dash(attempt.wait),
          rule_text(attempt)};
}

// Returns a line for each reason why calls or hedges were not sent: "3 not sent: rate_limited
// (...)".
std::string not_sent(const std::vector<Outcome>& outcomes) {
  std::map<std::string, int> counts;
  for (const auto& outcome : outcomes) {
    const auto& history = history_of(outcome);
    if (history.hedge_refused) {
      ++counts["without a hedge: " + std::string(to_string(*history.hedge_refused))];
    }
    if (!history.attempts.empty()) continue;
    ++counts["not sent: " + std::string(stop_reason_text(history)) + " (" + history.detail + ")"];
  }
  std::string text;
  for (const auto& [why, count] : counts) text += std::to_string(count) + " " + why + '\n';
  return text;
}

// Returns "sends in each second: 5 0 3", for at most 20 seconds, with "…" if there are more. The
// events must be in the order of time.
std::string sends_by_second(const std::vector<CallEvent>& events) {
  constexpr std::size_t kMostSeconds = 20;
  std::vector<int> counts;
  bool has_more = false;
  for (const auto& event : events) {
    if (event.attempt == nullptr) continue;
    const auto second = static_cast<std::size_t>(event.at / std::chrono::seconds(1));
    has_more = second >= kMostSeconds;
    if (has_more) break;
    counts.resize(std::max(counts.size(), second + 1));
    ++counts[second];
  }
  std::string text = "sends in each second:";
  for (const auto count : counts) text += " " + std::to_string(count);
  return text + (has_more ? " …\n" : "\n");
}

}  // namespace

std::string hedge_budget_text(const SimulatedCalls& simulated) {
  const auto& use = simulated.hedge_budget;
  if (!use) return {};
  return "hedge budget: " + std::to_string(use->hedges) + " of " + std::to_string(use->most) +
         " used by " + counted(static_cast<std::size_t>(use->calls), "call") + " in 10 s\n";
}

// Returns the table of several calls that share a server: a row for each attempt and each refused
// call in the order of time. Below it are a line for each reason why calls or hedges were not sent,
// the use of the hedge budget, the sends in each second, and the totals.
std::string table_of_calls(const SimulatedCalls& simulated) {
  std::vector<Row> rows{
      {"call", "attempt", "at", "ends", "outcome", "class", "held back", "wait", "rule"}};
  const auto events = events_of(simulated);
  std::size_t attempts = 0;
  for (const auto& event : events) {
    rows.push_back(row_of(event));
    attempts += event.attempt == nullptr ? 0 : 1;  // null: a refused call
  }
  Duration last_end{};
  for (std::size_t i = 0; i < simulated.outcomes.size(); ++i) {
    last_end = std::max<Duration>(last_end,
                                  simulated.begun[i] + history_of(simulated.outcomes[i]).elapsed);
  }
  return aligned(rows) + not_sent(simulated.outcomes) + hedge_budget_text(simulated) +
         sends_by_second(events) + std::to_string(simulated.outcomes.size()) + " calls, " +
         std::to_string(attempts) + " attempts, the last ends at " + duration_text(last_end) + '\n';
}

// Returns a row for each attempt, with the least, mean and most of the wait after it, and lines
// that say why the calls end. A row without a wait ends after the outcome.
std::string table_of_ranges(const RetryPolicy& policy, const Extremes& calls) {
  // The last column is aligned to the left; an empty one keeps the totals aligned to the right.
  std::vector<Row> rows{{"attempt", "outcome", "least", "mean", "most", "total (mean)", ""}};
  for (const auto& [attempt, wait, total] : schedule_of_ranges(policy, calls)) {
    Row row{std::to_string(attempt->number), attempt_text(*attempt)};
    if (attempt->retried) {
      row.insert(row.end(), {duration_text(wait.least), duration_text(wait.mean),
                             duration_text(wait.most), duration_text(total), ""});
    }
    rows.push_back(std::move(row));
  }
  auto text = aligned(rows);
  for (const auto& end : end_lines(calls)) text += end + '\n';
  return text;
}

// Returns the table of one call: a row for each attempt with its outcome and the decision after it,
// and a line that says why the call ends. If a guard held an attempt back, each row has one more
// column: for how long. If an attempt was hedged, each row has two more: when the attempt ends, and
// its race, such as "won; hedge after 200 ms (fixed)". If a hedge was refused, the last line says
// why.
std::string table_of_decisions(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  // A call that was refused before its first send.
  if (history.attempts.empty()) return "ends " + end_text(outcome) + '\n';
  const bool hedged = has_hedges(history);
  std::vector<Row> rows{
      {"attempt", "at", "outcome", "class", "server asks", "backoff", "wait", "budget", "rule"}};
  const bool held = std::ranges::any_of(history.attempts, [](const Attempt& attempt) {
    return attempt.queued_by != QueuedBy::Nothing;
  });
  if (held) rows.back().insert(rows.back().end() - 1, "held back");  // before "rule"
  // add_race inserts one column after "at" and one before "rule".
  if (hedged) add_race(rows.back(), "ends", "race");
  for (const auto& attempt : history.attempts) {
    rows.push_back({std::to_string(attempt.number), duration_text(sent_at(attempt)),
                    attempt_text(attempt), std::string(to_string(attempt.cls)),
                    or_dash(attempt.server_delay), or_dash(attempt.backoff), or_dash(attempt.wait),
                    attempt.budget_left ? std::to_string(*attempt.budget_left) : "-",
                    printable(attempt.rule)});
    if (held) rows.back().insert(rows.back().end() - 1, held_back(attempt));
    if (hedged) {
      add_race(rows.back(), duration_text(attempt.start + attempt.duration), race_text(attempt));
    }
  }
  auto text = aligned(rows) + "ends " + end_text(outcome) + '\n';
  if (history.hedge_refused) {
    text += "no hedge: " + std::string(to_string(*history.hedge_refused)) + '\n';
  }
  return text;
}

}  // namespace httpretry::cli
