#include "queue.hpp"
#include "remote_queue.hpp"

#include "lib/batch/line_file.hpp"
#include "lib/batch/line_jobs.hpp"
#include "lib/batch/text.hpp"
#include "lib/json/json.hpp"

#include <unordered_set>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::StoreError;

constexpr const char* kLinesAtOnce = "500";

std::unique_ptr<RemoteQueue> open_queue(const QueueOptions& options) {
  RemoteOptions its;
  its.address = options.address;
  its.force = true;  // it only reads
  auto remote = std::make_unique<RemoteQueue>(std::move(its));
  const auto warning = remote->connect();
  if (!warning.empty()) options.tell(warning);
  if (!remote->open(false, "")) throw StoreError(remote->name() + ": there is no such queue");
  return remote;
}

std::string text_of(const JsonNode& object, std::string_view name) {
  const auto* const member = object.member(name);
  const bool text = member != nullptr && member->is(JsonNode::Type::String);
  return text ? std::string(member->text) : std::string();
}

// The id of a line of this queue; empty: it is none.
std::string id_of(const std::string& line, Lines which, const std::string& token) {
  const auto result = which == Lines::Dead ? batch::result_in_dead_letter(line) : line;
  JsonTree tree;
  Problems problems("");
  read_json(result, tree, problems);
  if (tree.root == nullptr || problems.failed() || !tree.root->is(JsonNode::Type::Object))
    return {};
  return text_of(*tree.root, "run") == token ? text_of(*tree.root, "id") : std::string();
}

// The ids that the file has already. A last half line is written over.
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
    file.accept(line.size() + 1);
  }
  return ids;
}

// The next entry of a stream.
std::string after(const std::string& entry) { return "(" + entry; }

}  // namespace

Result<fleet::Address> parse_queue(std::string_view url) {
  auto address = fleet::parse_address(url);
  if (!address) return address;
  if (!address->job.empty()) return address;
  return Error(Errc::InvalidRequest,
               "the URL does not name a queue: add ?job=NAME, as in redis://host/0?job=orders");
}

std::string policy_hash(const PolicySet& policies) {
  return std::to_string(batch::hash_line(0, policies.print()));
}

QueueStatus read_status(const QueueOptions& options) {
  const auto remote = open_queue(options);
  const auto news = remote->must(kNews, {""});
  const auto count = [&](std::size_t index) { return static_cast<std::uint64_t>(news.at(index)); };
  QueueStatus status;
  status.name = remote->name();
  status.counts.queued = count(0);
  status.counts.sending = count(1);
  status.counts.waiting = count(2);
  status.counts.done = count(3);
  status.counts.dead = count(4);
  status.counts.unknown = count(5);
  status.late = count(6);
  status.poison = count(7);
  if (news.at(8) >= 0) status.next_due = std::chrono::milliseconds(news.at(8));
  const auto workers = remote->must(plain_command({"XINFO", "CONSUMERS", remote->key(0), "w"}));
  for (const auto& one : workers.list) {
    QueueStatus::Worker worker;
    for (std::size_t i = 0; i + 1 < one.list.size(); i += 2) {
      const auto& name = one.list[i].text;
      const auto& value = one.list[i + 1];
      if (name == "name") worker.name = value.text;
      if (name == "pending") worker.jobs = static_cast<std::uint64_t>(value.integer);
      if (name == "idle") worker.silent = std::chrono::milliseconds(value.integer);
    }
    status.workers.push_back(std::move(worker));
  }
  return status;
}

std::uint64_t write_lines(const QueueOptions& options, Lines which, const std::string& path) {
  const auto remote = open_queue(options);
  batch::LineFile file(path, 0);
  auto known = ids_in(file, which, remote->token());
  const auto& stream = remote->key(which == Lines::Results ? 3 : 4);
  std::uint64_t written = 0;
  for (std::string from = "-";;) {
    const auto page =
        remote->must(plain_command({"XRANGE", stream, from, "+", "COUNT", kLinesAtOnce}));
    std::string lines;
    for (const auto& entry : page.list) {
      if (entry.list.size() != 2 || entry.list[1].list.size() != 4) continue;
      const auto& fields = entry.list[1].list;
      if (!known.insert(fields[1].text).second) continue;
      lines += fields[3].text + "\n";
      ++written;
    }
    const bool last = page.list.empty();
    // Also where there is nothing: a half line goes.
    file.write(lines, last);
    file.accept(lines.size());
    if (last) return written;
    from = after(page.list.back().list.at(0).text);
  }
}

}  // namespace httpretry::queue
