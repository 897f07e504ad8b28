#include "remote_queue.hpp"

#include "lib/core/base/random.hpp"
#include "lib/core/base/text.hpp"
#include "lib/extras/fleet/server_facts.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::StoreError;
using fleet::Command;
using fleet::Reply;

// The limits of a search for names of queues.
constexpr int kMostScans = 20;
constexpr const char* kKeysAtOnce = "500";
constexpr std::size_t kMostNames = 5;

// The size of a reply to kReadTotals.
constexpr std::size_t kTotalsSize = 11;

constexpr Duration kCheckEvery = std::chrono::milliseconds(50);
// How long `ask` waits after it was stopped, because the reply usually arrives in a moment.
constexpr Duration kLastWait = std::chrono::seconds(1);

}  // namespace

std::string check_server(const std::string& name, std::string_view info, std::string_view save,
                         bool force) {
  const auto facts = fleet::detail::read_info(info);
  if (fleet::detail::too_old(facts)) {
    throw StoreError(name + " is Redis " + facts.version + ", but a queue needs 6.2 or later");
  }
  if (!force && fleet::detail::evicts(facts)) {
    throw StoreError(
        name + " has maxmemory-policy " + facts.eviction +
        ": when its memory is full, it evicts jobs. Set it to noeviction, or add --force");
  }
  // Neither a log of the writes nor snapshots. If a setting is not known, there is no warning.
  if (facts.appends == false && save.empty()) {
    return name +
           " keeps its data in memory only: a restart loses the queue. Set appendonly to yes";
  }
  return {};
}

Command plain_command(std::vector<std::string> words) {
  Command command;
  command.words = std::move(words);
  return command;
}

bool says_gone(const Reply& reply) {
  return reply.kind == Reply::Kind::Error &&
         (reply.begins_with("UNBLOCKED") || reply.text.find("GONE ") != std::string::npos ||
          reply.text.find("NOGROUP") != std::string::npos);
}

// Matches unexpected_reply() and two errors of Redis itself.
bool says_damaged(const Reply& reply) {
  return reply.kind == Reply::Kind::Error &&
         (reply.begins_with("ODD") || reply.text.find("WRONGTYPE") != std::string::npos ||
          reply.text.find("hash value is not an integer") != std::string::npos);
}

// Reads a reply to the script kReadTotals: how many jobs of a queue are in each state, how many
// results were late, and so on. Returns nullopt if the reply has another form.
std::optional<Totals> read_totals(const Reply& reply) {
  if (reply.list.size() != kTotalsSize) return std::nullopt;
  // The integers are read one after another, in the order of the reply.
  std::size_t index = 0;
  const auto next = [&] { return reply.at(index++); };
  // A counter is negative if a person has changed it on the server.
  const auto next_count = [&] {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(next(), 0));
  };
  Totals totals;
  totals.counts.queued = next_count();
  totals.counts.sending = next_count();
  totals.counts.waiting = next_count();
  totals.counts.done = next_count();
  totals.counts.dead = next_count();
  totals.counts.unknown = next_count();
  totals.late = next_count();    // results that were filed after another worker had taken the job
  totals.poison = next_count();  // jobs that several workers took, and none of them filed a result
  // The time from now until a waiting job is due; -1 if no job waits.
  if (reply.at(index) >= 0) totals.next_due = ms_in(reply, index);
  ++index;
  totals.time = ms_in(reply, index++);  // since 1970, by the server's clock
  totals.damaged = next() == 1;         // keys were lost or changed
  return totals;
}

std::pair<std::uint64_t, std::uint64_t> order_of(std::string_view entry) {
  const auto ms = take_until(entry, '-');
  return {to_number<std::uint64_t>(ms).value_or(0), to_number<std::uint64_t>(entry).value_or(0)};
}

Duration ms_in(const Reply& reply, std::size_t index) {
  constexpr std::int64_t most = Duration::max() / std::chrono::milliseconds(1) / 2;
  return std::chrono::milliseconds(std::clamp<std::int64_t>(reply.at(index), 0, most));
}

Reply unexpected_reply() {
  Reply reply;
  reply.kind = Reply::Kind::Error;
  reply.text = "ODD the reply does not fit a queue. Does another program use its keys?";
  return reply;
}

RemoteQueue::RemoteQueue(RemoteOptions options)
    : options_(std::move(options)), keys_(keys_of(options_.address.job)), link_([this] {
        fleet::Link::Options link = options_;
        link.scripts = queue_scripts();
        return link;
      }()) {}

std::string RemoteQueue::name() const {
  return options_.address.text() + ", queue " + options_.address.job;
}

// Throws StoreError if the server cannot be reached or cannot hold a queue. A warning that is
// returned means that the server may lose the queue when it restarts.
std::string RemoteQueue::connect() {
  const auto name = options_.address.text();
  if (const auto why = link_.wait_for_first(); !why.empty()) {
    throw StoreError("cannot use " + name + ": " + printable(why));
  }
  const auto info = must(plain_command({"INFO"}));
  // The reply is ["save", VALUE]. Some servers do not allow this command, and then it is not known
  // whether they save their data.
  const auto save = ask(plain_command({"CONFIG", "GET", "save"}));
  const bool known = save.list.size() == 2;
  return check_server(name, info.text, known ? save.list[1].text : "unknown", options_.force);
}

// Opens the queue with kOpen, and notes its token and policy. A missing queue is created with a new
// random token, or is an error.
void RemoteQueue::open(IfMissing if_missing, const std::string& policy) {
  const bool create = if_missing == IfMissing::Create;
  auto open_command = command(kOpen, {kNoConsumer, policy, create ? "1" : "0"});
  const auto token_index = keys_.size();  // the first argument follows the keys
  open_command.words[token_index] = random_hex(16);
  const auto reply = must(std::move(open_command));
  if (reply.kind == Reply::Kind::Nil) {
    throw StoreError("there is no queue " + options_.address.job + " on " +
                     options_.address.text() + list_some_queues());
  }
  if (reply.list.size() != 2) throw error(unexpected_reply());
  token_ = reply.list[0].text;
  policy_ = reply.list[1].text;
}

// Returns the names of some queues that the server has, to complete the message that there is no
// such queue: "; queues there: invoices, orders". Returns an empty string if none is found.
std::string RemoteQueue::list_some_queues() {
  std::string text;
  std::size_t count = 0;
  for (const auto& name : find_some_queues()) {
    if (count++ == kMostNames) return text + ", …";
    text += (text.empty() ? "; queues there: " : ", ") + name;
  }
  return text;
}

// Searches the keys of the server for queues: each queue has a key "{hr:NAME}:m". Returns their
// names. Does not search all keys of a large server, nor other nodes of a cluster, and ends early
// if a command fails, because the names only help the user.
std::set<std::string> RemoteQueue::find_some_queues() {
  constexpr std::string_view prefix = "{hr:";
  constexpr std::string_view suffix = "}:m";
  std::set<std::string> names;
  std::string cursor = "0";  // stands for the beginning, and in a reply for the end
  for (int i = 0; i < kMostScans && names.size() < kMostNames; ++i) {
    // The reply is [next cursor, [key, …]].
    const auto page =
        ask(plain_command({"SCAN", cursor, "MATCH", "{hr:*}:m", "COUNT", kKeysAtOnce}));
    if (page.list.size() != 2) break;
    for (const auto& key : page.list[1].list) {
      if (key.text.size() <= prefix.size() + suffix.size()) continue;
      const auto name_size = key.text.size() - prefix.size() - suffix.size();
      names.insert(printable(key.text.substr(prefix.size(), name_size)));
    }
    cursor = page.list[0].text;
    if (cursor == "0") break;
  }
  return names;
}

Command RemoteQueue::command(const Script& script, std::vector<std::string> arguments) const {
  Command command;
  command.script = &script;
  command.keys = keys_.size();
  command.words = keys_;
  command.words.push_back(token_);
  std::move(arguments.begin(), arguments.end(), std::back_inserter(command.words));
  return command;
}

// Posts the command and blocks until its reply arrives. Does not throw: the reply may be an error,
// or lost. Once `stopped` returns true, waits at most kLastWait longer, and then returns a lost
// reply. An empty `stopped` never ends the wait.
Reply RemoteQueue::ask(Command command, const Stopped& stopped) {
  // Shared with the callback, because the reply may arrive after this function has returned.
  const auto promise = std::make_shared<std::promise<Reply>>();
  auto reply = promise->get_future();
  link_.post(std::move(command), [promise](Reply got) { promise->set_value(std::move(got)); });
  if (!stopped) return reply.get();
  const auto arrives_within = [&](Duration time) {
    return reply.wait_for(time) == std::future_status::ready;
  };
  while (!arrives_within(kCheckEvery)) {
    if (!stopped()) continue;
    if (arrives_within(kLastWait)) break;
    return Reply::lost_because("no response yet");
  }
  return reply.get();
}

Reply RemoteQueue::ask_repeatedly(const Command& command, Duration limit, const Stopped& stopped,
                                  bool& was_repeated) {
  was_repeated = false;
  const auto until = later(std::chrono::steady_clock::now(), limit);
  for (;;) {
    auto reply = ask(command, stopped);
    const bool is_over = std::chrono::steady_clock::now() >= until;
    if (!reply.lost() || stopped() || is_over) return reply;
    was_repeated = true;
    // While the server is away, `ask` returns at once.
    std::this_thread::sleep_for(kCheckEvery);
  }
}

Totals RemoteQueue::request_totals() {
  auto totals = read_totals(must(kReadTotals, {kNoConsumer}));
  if (!totals) throw error(unexpected_reply());
  return *totals;
}

StoreError RemoteQueue::error(const Reply& reply) const {
  if (says_gone(reply)) return StoreError(name() + " was deleted");
  return StoreError(name() + ": " + printable(reply.text));
}

Reply RemoteQueue::must(Command command) {
  auto reply = ask(std::move(command));
  if (reply.failed()) throw error(reply);
  return reply;
}

}  // namespace httpretry::queue
