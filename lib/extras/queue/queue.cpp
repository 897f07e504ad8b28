#include "queue.hpp"

#include "lib/extras/batch/line_file.hpp"
#include "lib/extras/batch/text.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::StoreError;

constexpr const char* kLinesAtOnce = "500";
constexpr std::int64_t kRetriedAtOnce = 100;

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
  for (const auto& [offset, line] : file.tail()) {
    const auto id = id_of(line, which, token);
    if (id.empty()) {
      throw StoreError(file.path() + ", at byte " + std::to_string(offset) +
                       ": not a line of this queue. Name another file");
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
  for (std::string from = "-";;) {  // "-" and "+" are the beginning and the end of the stream
    const auto page =
        remote.must(plain_command({"XRANGE", stream, from, "+", "COUNT", kLinesAtOnce}));
    for (const auto& entry : page.list) {
      if (entry.list.size() != 2 || entry.list[1].list.size() != 4) {
        throw remote.error(unexpected_reply());
      }
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
               "the URL does not name a queue: add ?job=NAME, as in redis://host/0?job=orders");
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

// Reads the counts of the queue and its workers. XINFO CONSUMERS replies with a list for each
// worker that alternates names and values: ["name", NAME, "pending", JOBS, "idle", MS, …].
QueueStatus read_status(const QueueOptions& options) {
  const auto remote = open_queue(options);
  QueueStatus status{remote->news(), remote->name(), {}};
  const auto workers =
      remote->must(plain_command({"XINFO", "CONSUMERS", remote->key(Key::Entries), "w"}));
  for (const auto& properties : workers.list) {
    QueueStatus::Worker worker;
    for (std::size_t i = 0; i + 1 < properties.list.size(); i += 2) {
      const auto& name = properties.list[i].text;
      const auto& value = properties.list[i + 1];
      if (name == "name") worker.name = value.text;
      if (name == "pending") worker.jobs = static_cast<std::uint64_t>(value.integer);
      if (name == "idle") worker.silent = std::chrono::milliseconds(value.integer);
    }
    status.workers.push_back(std::move(worker));
  }
  return status;
}

// Leaves out a job that has a line in the file, or that has occurred in the stream before. Returns
// how many lines were appended. Throws StoreError if the file has a line of something else.
std::uint64_t write_lines(const QueueOptions& options, Lines which, const std::string& path) {
  const auto remote = open_queue(options);
  batch::LineFile file(path, /*length=*/0);
  auto written_ids = ids_in(file, which, remote->token());
  std::uint64_t written = 0;
  each_page(*remote, which, [&](const auto& entries) {
    std::string lines;
    for (const auto& entry : entries) {
      if (!written_ids.insert(id_in(entry)).second) continue;
      lines += line_in(entry) + "\n";
      ++written;
    }
    // Even without lines, this removes a partial line. The last write, which has no entries, makes
    // the whole file durable.
    file.write(lines, /*sync=*/entries.empty());
    file.count_as_committed(lines.size());
  });
  return written;
}

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

// Reads the unknown jobs page by page with kUnknown, whose reply is [cursor, [[id, line number,
// key, request], …]]. A job may be on two pages.
std::vector<std::string> read_unknown(const QueueOptions& options) {
  const auto remote = open_queue(options);
  std::unordered_set<std::string> ids;
  std::vector<std::pair<std::int64_t, std::string>> numbered_lines;
  std::string cursor = "0";
  do {
    const auto page = remote->must(kUnknown, {kNoConsumer, cursor, kLinesAtOnce});
    if (page.list.size() != 2) throw remote->error(unexpected_reply());
    cursor = page.list[0].text;
    for (const auto& job : page.list[1].list) {
      if (job.list.size() != 4) throw remote->error(unexpected_reply());
      const auto& id = job.list[0].text;
      if (!ids.insert(id).second) continue;
      const auto& key = job.list[2].text;
      const auto& text = job.list[3].text;
      const auto line = batch::stored_line(text, batch::InputFormat::Auto);
      numbered_lines.emplace_back(job.at(1), batch::line_with(text, line, id, key, /*last=*/""));
    }
  } while (cursor != "0");
  std::ranges::sort(numbered_lines);
  std::vector<std::string> lines;
  for (auto& [number, line] : numbered_lines) lines.push_back(std::move(line));
  return lines;
}

// Queues the jobs in small steps until there are as many as were unknown at the beginning, or no
// more are unknown. Throws StoreError with the number so far if a step fails.
std::uint64_t retry_unknown(const QueueOptions& options) {
  const auto remote = open_queue(options);
  // Without this limit, a job that crashes its workers, and so becomes unknown again while this
  // function runs, would be queued again and again.
  const auto unknown = remote->news().counts.unknown;
  std::uint64_t count = 0;
  while (count < unknown) {
    const auto left = static_cast<std::int64_t>(unknown - count);
    const auto most = std::min(left, kRetriedAtOnce);
    const auto reply = remote->ask(kRetry, {kNoConsumer, std::to_string(most)});
    if (reply.failed()) {
      throw StoreError(
          std::string(remote->error(reply).what()) + "; " + std::to_string(count) + " of " +
          std::to_string(unknown) + " unknown jobs were queued again" +
          (reply.lost() ? ", and perhaps up to " + std::to_string(most) + " more" : "") +
          ". Run the same command again for the others");
    }
    if (reply.kind != fleet::Reply::Kind::Integer) throw remote->error(unexpected_reply());
    count += static_cast<std::uint64_t>(reply.integer);
    if (reply.integer < most) break;  // no more are unknown
  }
  return count;
}

}  // namespace httpretry::queue
