#include "remote_queue.hpp"

#include "lib/fleet/server_facts.hpp"
#include "lib/http/random.hpp"

#include <httpretry/batch/store.hpp>

#include <future>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::StoreError;
using fleet::Command;
using fleet::Reply;

}  // namespace

std::string check_server(const std::string& name, std::string_view info, std::string_view save,
                         bool force) {
  const auto facts = fleet::read_info(info);
  if (fleet::too_old(facts)) {
    throw StoreError(name + " is Redis " + facts.version + ", and a queue needs 6.2 or newer");
  }
  if (!force && fleet::evicts(facts)) {
    throw StoreError(name + " has maxmemory-policy " + facts.eviction +
                     ": when its memory is full it deletes jobs. Set it to noeviction, or add "
                     "--force");
  }
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

RemoteQueue::RemoteQueue(RemoteOptions options)
    : options_(std::move(options)),
      keys_(keys_of(options_.address.job)),
      link_(link_options(options_)) {}

fleet::Link::Options RemoteQueue::link_options(const RemoteOptions& options) {
  fleet::Link::Options link;
  link.address = options.address;
  link.scripts = queue_scripts();
  link.reply_timeout = options.reply_timeout;
  link.connect_timeout = options.connect_timeout;
  link.first_wait = options.first_wait;
  link.longest_wait = options.longest_wait;
  link.on_change = options.on_change;
  link.on_tick = options.on_tick;
  link.tick = options.tick;
  return link;
}

std::string RemoteQueue::name() const {
  return options_.address.text() + ", queue " + options_.address.job;
}

std::string RemoteQueue::connect() {
  const auto name = options_.address.text();
  if (const auto why = link_.wait_for_first(); !why.empty()) {
    throw StoreError("cannot use " + name + ": " + why);
  }
  const auto info = must(plain_command({"INFO"}));
  // Some servers do not allow it: then we do not know.
  const auto save = ask(plain_command({"CONFIG", "GET", "save"}));
  const bool known = save.list.size() == 2;
  return check_server(name, info.text, known ? save.list[1].text : "unknown", options_.force);
}

bool RemoteQueue::open(bool make, const std::string& policy) {
  auto asked = command(kOpen, {"", policy, make ? "1" : "0"});
  asked.words[keys_.size()] = random_hex(16);
  const auto reply = must(std::move(asked));
  if (reply.list.size() != 2) return false;
  token_ = reply.list[0].text;
  policy_ = reply.list[1].text;
  return true;
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

Reply RemoteQueue::ask(Command command) {
  std::promise<Reply> promise;
  auto reply = promise.get_future();
  link_.post(std::move(command), [&promise](Reply got) { promise.set_value(std::move(got)); });
  return reply.get();
}

Reply RemoteQueue::must(Command command) {
  auto reply = ask(std::move(command));
  if (says_gone(reply)) throw StoreError(name() + " was deleted");
  if (reply.failed()) throw StoreError(name() + ": " + reply.text);
  return reply;
}

}  // namespace httpretry::queue
