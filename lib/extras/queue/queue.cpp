#include "queue.hpp"

#include "lib/extras/batch/line_file.hpp"
#include "lib/extras/batch/text.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::StoreError;

// A reply must arrive within seconds, and a line may have a body of 64 KiB (kMostInline).
constexpr const char* kLinesAtOnce = "100";
constexpr std::int64_t kRetriedAtOnce = 100;
// A cursor passes through a set in pages, which may have no new job. This many such pages in a row
// are more than a server sends.
constexpr int kMostEmptyPages = 10'000;

// Connects to a queue that exists. Does so even if the server may delete keys, because the
// functions of this file add no jobs that it could delete.
std::unique_ptr<RemoteQueue> open_queue(const QueueOptions& options) {
  auto connection = remote_options(options);
  connection.force = true;
  auto remote = std::make_unique<RemoteQueue>(std::move(connection));
  const auto warning = remote->connect();
  if (!warning.empty()) options.tell(warning);
  remote->open_existing();
  return remote;
}

// Returns the id in a line of results or dead letters, or an empty string if this queue has not
// written the line.
std::string id_of(const std::string& line, Lines which, const std::string& token) {
  const bool dead = which == Lines::Dead;
  const auto result = batch::read_result_line(dead ? batch::result_in_dead_letter(line) : line);
  return result && result->token == token ? result->id : std::string();
}

// Returns the ids of the lines in the file. Adds these lines to the file's length, so that the next
// write continues behind them and replaces a partial line at the end.
std::unordered_set<std::string> ids_in(batch::LineFile& file, Lines which,
                                       const std::string& token) {
  std::unordered_set<std::string> ids;
  for (const auto& [offset, line] : file.uncommitted_lines()) {
    const auto id = id_of(line, which, token);
    if (id.empty()) {
      throw StoreError(file.path() + ", at byte " + std::to_string(offset) +
                       ": not a line of this queue. Use another file");
    }
    ids.insert(id);
    file.count_as_committed(line.size() + 1);
  }
  return ids;
}

// Calls `use` with the entries of a stream, many at once. The last call has no entries. An entry is
// [entry id, ["i", job id, "l", line]].
void each_page(RemoteQueue& remote, Lines which,
               const std::function<void(const std::vector<fleet::Reply>& entries)>& use) {
  const auto& stream = remote.key(which == Lines::Results ? Key::Results : Key::DeadLetters);
  auto last = order_of("0-0");      // the id of the last entry; the ids grow, so this loop ends
  for (std::string from = "-";;) {  // "-" and "+" are the beginning and the end of the stream
    const auto page =
        remote.must(plain_command({"XRANGE", stream, from, "+", "COUNT", kLinesAtOnce}));
    if (page.kind != fleet::Reply::Kind::List) throw remote.error(unexpected_reply());
    for (const auto& entry : page.list) {
      const bool is_entry = entry.list.size() == 2 && entry.list[1].list.size() == 4;
      const auto before = std::exchange(last, order_of(is_entry ? entry.list[0].text : ""));
      if (last <= before) throw remote.error(unexpected_reply());
    }
    use(page.list);
    if (page.list.empty()) return;
    from = "(" + page.list.back().list[0].text;  // "(": behind this entry
  }
}

const std::string& id_in(const fleet::Reply& entry) { return entry.list[1].list[1].text; }
const std::string& line_in(const fleet::Reply& entry) { return entry.list[1].list[3].text; }

}  // namespace

Result<fleet::Address> parse_queue(std::string_view url) {
  auto address = fleet::parse_address(url);
  if (!address) return address;
  if (!address->job.empty()) return address;
  return Error(Errc::InvalidRequest,
               "the URL does not name a queue: add ?job=NAME, such as ?job=orders");
}

RemoteOptions remote_options(const QueueOptions& options) {
  RemoteOptions remote;
  remote.address = options.address;
  remote.force = options.force;
  return remote;
}

std::string policy_hash(const PolicySet& policies) {
  return std::to_string(batch::hash_line(0, policies.print()));
}

// Returns how many jobs of the queue are in each state, and its workers with the number of jobs
// that each of them has, for `httpretry work --status`. Throws StoreError.
QueueStatus read_status(const QueueOptions& options) {
  const auto remote = open_queue(options);
  QueueStatus status{remote->request_totals(), remote->name(), /*workers=*/{}};
  // The workers are the consumers of the stream in the group "w". The reply has a list for each
  // that alternates names and values: ["name", NAME, "pending", JOBS, "idle", MS, …].
  const auto workers =
      remote->must(plain_command({"XINFO", "CONSUMERS", remote->key(Key::Entries), "w"}));
  for (const auto& properties : workers.list) {
    QueueStatus::Worker worker;
    for (std::size_t i = 0; i + 1 < properties.list.size(); i += 2) {
      const auto& name = properties.list[i].text;
      const auto& value = properties.list[i + 1];
      if (name == "name") worker.name = value.text;
      if (name == "pending") worker.jobs = static_cast<std::uint64_t>(value.integer);
      if (name == "idle") worker.silent = ms_in(properties, i + 1);
    }
    status.workers.push_back(std::move(worker));
  }
  return status;
}

// Appends the results of the queue, or its dead letters, to a file. Leaves out jobs that have a
// line in the file already, so the file can be written again and again. Returns the number of
// appended lines. Throws StoreError if the file has a line that is not from this queue.
std::uint64_t write_lines(const QueueOptions& options, Lines which, const std::string& path) {
  const auto remote = open_queue(options);
  // file.write() replaces what is behind `length`. ids_in() adds the whole lines to `length`.
  batch::LineFile file(path, /*length=*/0);
  auto written_ids = ids_in(file, which, remote->token());
  std::uint64_t written = 0;
  each_page(*remote, which, [&](const auto& entries) {
    std::string lines;
    for (const auto& entry : entries) {
      const bool is_new = written_ids.insert(id_in(entry)).second;
      if (!is_new) continue;
      lines += line_in(entry) + "\n";
      ++written;
    }
    // The last page has no entries. Its write makes the whole file durable. Each write replaces a
    // partial line that an earlier run may have left at the end, even if `lines` is empty.
    const bool is_last_page = entries.empty();
    file.write(lines, /*sync=*/is_last_page);
    file.count_as_committed(lines.size());
  });
  return written;
}

// Passes the results of the queue, or its dead letters, to `print`, many lines at a time. Returns
// the number of lines. Throws StoreError if the server fails.
std::uint64_t print_lines(const QueueOptions& options, Lines which,
                          const std::function<void(const std::string& lines)>& print) {
  const auto remote = open_queue(options);
  std::uint64_t printed = 0;
  each_page(*remote, which, [&](const auto& entries) {
    std::string lines;
    for (const auto& entry : entries) lines += line_in(entry) + "\n";
    print(lines);
    printed += entries.size();
  });
  return printed;
}

// Returns the jobs that are unknown, which means that they may have been executed, as lines of a
// new input. Sorts them by their line numbers in the input that they came from. Throws StoreError.
std::vector<std::string> read_unknown(const QueueOptions& options) {
  enum Part { kId, kLine, kKey, kRequest, kParts };
  const auto remote = open_queue(options);
  std::unordered_set<std::string> ids;
  std::vector<std::pair<std::int64_t, std::string>> numbered_lines;
  std::string cursor = "0";  // stands for the beginning, and in a reply for the end
  int empty_pages = 0;       // in a row
  do {
    const auto ids_before = ids.size();
    // The reply is [next cursor, [job, …]], and each job is a list of the parts named above.
    const auto page = remote->must(kUnknown, {kNoConsumer, cursor, kLinesAtOnce});
    if (page.list.size() != 2) throw remote->error(unexpected_reply());
    cursor = page.list[0].text;
    for (const auto& job : page.list[1].list) {
      if (job.list.size() != kParts) throw remote->error(unexpected_reply());
      const auto& id = job.list[kId].text;
      if (!ids.insert(id).second) continue;  // a job may be on two pages
      const auto& text = job.list[kRequest].text;
      const auto request = batch::stored_line(text, batch::InputFormat::Auto);
      // The line has the id and the key of the job. Only dead letters have a last outcome.
      auto line = batch::line_with(text, request, id, job.list[kKey].text, /*last=*/"");
      numbered_lines.emplace_back(job.at(kLine), std::move(line));
    }
    // Pages without a new job are normal, but an endless series of them is a defect of the server.
    empty_pages = ids.size() == ids_before ? empty_pages + 1 : 0;
    if (empty_pages > kMostEmptyPages) throw remote->error(unexpected_reply());
  } while (cursor != "0");
  std::ranges::sort(numbered_lines);
  std::vector<std::string> lines;
  for (auto& [number, line] : numbered_lines) lines.push_back(std::move(line));
  return lines;
}

// Queues the jobs again that are unknown, which means that they may have been executed, for
// `httpretry work --retry-unknown`. Returns their number. If the server of the queue fails, throws
// a StoreError whose message has the number so far.
std::uint64_t retry_unknown(const QueueOptions& options) {
  const auto remote = open_queue(options);
  // Queues no more jobs than are unknown now. Otherwise a job that crashes its workers, and so
  // becomes unknown again while this function runs, would be queued again and again.
  const auto unknown = remote->request_totals().counts.unknown;
  std::uint64_t queued = 0;
  while (queued < unknown) {
    const auto left = static_cast<std::int64_t>(unknown - queued);
    const auto at_most = std::min(left, kRetriedAtOnce);
    const auto reply = remote->ask(kRetry, {kNoConsumer, std::to_string(at_most)});
    if (reply.failed()) {
      // If only the reply was lost, the server has queued the jobs of this step, too.
      const auto maybe_more = ", and perhaps up to " + std::to_string(at_most) + " more";
      throw StoreError(std::string(remote->error(reply).what()) + "; " + std::to_string(queued) +
                       " of " + std::to_string(unknown) + " unknown jobs were queued again" +
                       (reply.lost() ? maybe_more : "") +
                       ". Run the same command again for the others");
    }
    const bool is_count = reply.kind == fleet::Reply::Kind::Integer && reply.integer >= 0;
    if (!is_count || reply.integer > at_most) throw remote->error(unexpected_reply());
    queued += static_cast<std::uint64_t>(reply.integer);
    if (reply.integer < at_most) break;  // no more are unknown
  }
  return queued;
}

}  // namespace httpretry::queue
