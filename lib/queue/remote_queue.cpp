#include "remote_queue.hpp"

#include "lib/http/random.hpp"
#include "lib/http/text.hpp"

#include <httpretry/batch/store.hpp>

#include <future>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::StoreError;
using fleet::Command;
using fleet::Reply;

constexpr int kOldestMajor = 6;  // XAUTOCLAIM came with 6.2
constexpr int kOldestMinor = 2;

// The value of a line "name:value\r\n".
std::string_view value_of(std::string_view info, const std::string& name) {
  auto at = info.find("\n" + name + ":");
  if (at == std::string_view::npos) return {};
  at += name.size() + 2;
  return info.substr(at, info.find_first_of("\r\n", at) - at);
}

bool is_too_old(std::string_view version) {
  const auto dot = version.find('.');
  const auto major = to_number<int>(version.substr(0, dot));
  if (!major || dot == std::string_view::npos) return false;
  const auto rest = version.substr(dot + 1);
  const auto minor = to_number<int>(rest.substr(0, rest.find('.'))).value_or(0);
  return std::pair(*major, minor) < std::pair(kOldestMajor, kOldestMinor);
}

}  // namespace

std::string check_server(const std::string& name, std::string_view info, std::string_view save,
                         bool force) {
  const auto version = value_of(info, "redis_version");
  if (is_too_old(version)) {
    throw StoreError(name + " is Redis " + std::string(version) +
                     ", and a queue needs 6.2 or newer");
  }
  const auto policy = value_of(info, "maxmemory_policy");
  if (!force && !policy.empty() && policy != "noeviction") {
    throw StoreError(name + " has maxmemory-policy " + std::string(policy) +
                     ": when its memory is full it deletes jobs. Set it to noeviction, or add "
                     "--force");
  }
  if (value_of(info, "aof_enabled") == "0" && save.empty()) {
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
  if (says_gone(reply)) throw StoreError(name() + ": it was deleted");
  if (reply.failed()) throw StoreError(name() + ": " + reply.text);
  return reply;
}

}  // namespace httpretry::queue
