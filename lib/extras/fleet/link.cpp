#include "link.hpp"

#include "lib/core/base/random.hpp"
#include "lib/core/base/signals.hpp"

#include <algorithm>
#include <future>
#include <iterator>

namespace httpretry::fleet {
namespace {

// Returns the words of the command that runs a script: EVALSHA with its hash, or EVAL with its text
// if `hash` is nullptr because the server does not have the script.
std::vector<std::string> words_of(const Command& command, const std::string* hash) {
  if (command.script == nullptr) return command.words;
  std::vector<std::string> words;
  words.reserve(command.words.size() + 3);
  words.emplace_back(hash != nullptr ? "EVALSHA" : "EVAL");
  words.push_back(hash != nullptr ? *hash : command.script->text);
  words.push_back(std::to_string(command.keys));
  words.insert(words.end(), command.words.begin(), command.words.end());
  return words;
}

}  // namespace

Link::Link(Options options)
    : options_(std::move(options)),
      host_(options_.address.host),
      port_(options_.address.port),
      wait_(options_.first_wait) {
  thread_ = std::thread([this] {
    block_signals();  // hiredis may raise SIGPIPE
    run();
  });
}

Link::~Link() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.signal();
  thread_.join();
}

// Hands the command to the link's thread, and wakes the thread if it waits in poll().
void Link::post(Command command, Done done) {
  auto posted = std::make_shared<Posted>();
  posted->command = std::move(command);
  posted->done = std::move(done);
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(posted));
    wake = std::exchange(sleeping_, false);
  }
  if (wake) wake_.signal();
}

std::string Link::wait_for_first() {
  first_ended_.wait(false);
  return first_problem_;
}

void Link::flush(Duration limit) {
  // Shared, because the reply may arrive after this function has returned.
  auto over = std::make_shared<std::promise<void>>();
  auto done = over->get_future();
  post({.words = {"PING"}}, [over](const Reply&) { over->set_value(); });
  done.wait_for(limit);
}

// --- the thread ---

// The main function of the link's thread. Each iteration takes the commands that were posted, and
// sends them or, without a connection, reports them as lost. Then it calls on_tick if that is due,
// or waits for the server. When the link is being destroyed, reports all commands without a reply
// as lost.
void Link::run() {
  // Commands that were posted and not sent. They stay here during the first attempt to connect, and
  // while the link reconnects to another node of a cluster.
  Queue outbox;
  auto next_tick = now_is() + options_.tick;
  while (take_posted(outbox)) {  // false: the link is being destroyed
    serve(outbox, now_is());     // connects, sends them, or reports them as lost
    const auto now = now_is();
    if (now >= next_tick) {
      next_tick = now + options_.tick;
      if (options_.on_tick) options_.on_tick();
      continue;  // on_tick may have posted commands
    }
    poll_until(std::min(next_tick, next_deadline()));
    check_deadlines(now_is());
  }
  constexpr const char* kWhy = "the program ends";
  report_lost(outbox, kWhy);   // never sent
  report_lost(resend_, kWhy);  // not sent a second time
  report_lost(sent_, kWhy);    // sent, and without a reply
  connection_.close(kWhy);
}

bool Link::take_posted(Queue& outbox) {
  const std::lock_guard lock(mutex_);
  sleeping_ = false;
  std::move(posted_.begin(), posted_.end(), std::back_inserter(outbox));
  posted_.clear();
  return !stop_;
}

// Does what the state allows: connects, sends a PING, or sends all commands. While there is no
// connection, and none is awaited, reports the commands as lost.
void Link::serve(Queue& outbox, Time now) {
  if (state_ == State::Down && now >= next_try_) connect(now);
  if (state_ == State::Late && now >= next_try_ && sent_.empty()) ping(now);
  if (state_ == State::Up) {
    // Resends go before the commands that were posted later, in their own order.
    std::move(resend_.rbegin(), resend_.rend(), std::front_inserter(outbox));
    resend_.clear();
    for (const auto& posted : std::exchange(outbox, {})) send(posted, now);
  } else if (!awaits_first_ && !moving_) {
    report_lost(std::exchange(resend_, {}), down_why_);
    report_lost(std::exchange(outbox, {}), down_why_);
  }
}

void Link::connect(Time now) {
  state_ = State::Connecting;
  began_ = now;
  problem_.clear();
  if (!connection_.open(host_, port_)) go_down(connection_.error(), now_is());
}

// Sends the first commands of a new connection, the greeting: they authenticate, select the
// database and load the scripts. Does not wait between them. The server replies in the same order,
// so the reply to the last one, a PING, means that all have replies; then calls on_greeted().
void Link::greet() {
  state_ = State::Greeting;
  hashes_.clear();  // this server may not have the scripts
  const auto& address = options_.address;
  // Keeps the first problem. check_deadlines() then closes the connection.
  const auto note_problem = [this](const Reply& reply) {
    if (reply.failed() && problem_.empty()) problem_ = reply.text;
  };
  if (!address.password.empty()) {
    std::vector<std::string> words = {"AUTH"};
    if (!address.user.empty()) words.push_back(address.user);  // otherwise it is the default user
    words.push_back(address.password);
    connection_.send(words, note_problem);
  }
  if (address.database != 0) {
    connection_.send({"SELECT", std::to_string(address.database)}, note_problem);
  }
  for (const auto* script : options_.scripts) {
    connection_.send({"SCRIPT", "LOAD", script->text},
                     [this, script, note_problem](const Reply& reply) {
                       note_problem(reply);
                       // The reply is the hash by which EVALSHA runs the script.
                       if (!reply.failed()) hashes_[script] = reply.text;
                     });
  }
  connection_.send({"PING"}, [this, note_problem](const Reply& reply) {
    note_problem(reply);
    if (!reply.lost()) on_greeted(now_is());  // checks for problems itself
  });
}

// Decides after a greeting without problems whether the link is up, or must first show with a PING
// that it replies in time.
void Link::on_greeted(Time now) {
  if (!problem_.empty()) return;  // check_deadlines handles it
  last_reply_ = now;
  // After a loss, a server that greets slowly stays Late, because calls would wait for it. A PING
  // then measures its replies.
  state_ = State::Late;
  const bool is_fast = now - began_ <= 2 * options_.reply_timeout;  // to connect, and to greet
  if (awaits_first_ || moving_ || is_fast) {
    set_is_up(/*is_up=*/true, {});
  } else {
    next_try_ = now;
  }
}

// Sends a command, and a script by its hash. A resend has the text of its script, because the
// server may not have it.
void Link::send(const std::shared_ptr<Posted>& posted, Time now) {
  const auto hash = hashes_.find(posted->command.script);
  const bool use_hash = hash != hashes_.end() && !posted->is_resend;
  posted->sent = now;
  sent_.push_back(posted);
  connection_.send(words_of(posted->command, use_hash ? &hash->second : nullptr),
                   [this, posted](Reply reply) { on_reply(posted, std::move(reply)); });
}

// Handles the reply to a command. Passes it on to the caller of post(), unless the command must be
// sent once more: with the script's text if the server does not have the script, or to the node of
// a cluster that has the keys. Sends a command twice at most, so a second such reply is passed on.
void Link::on_reply(const std::shared_ptr<Posted>& posted, Reply reply) {
  // Replies arrive in order, so the command is the first one, unless one of them could not be sent.
  if (!sent_.empty() && sent_.front() == posted) sent_.pop_front();
  last_reply_ = now_is();
  auto done = std::exchange(posted->done, nullptr);
  if (!done) return;  // it took too long, so the command was reported as lost already
  const bool lacks_script = reply.kind == Reply::Kind::Error && reply.begins_with("NOSCRIPT");
  const bool moved = reply.kind == Reply::Kind::Error && reply.begins_with("MOVED ");
  if (!posted->is_resend && (lacks_script || (moved && follow_moved(reply)))) {
    posted->is_resend = true;
    posted->done = std::move(done);
    resend_.push_back(posted);
    return;
  }
  done(std::move(reply));
}

// Makes the link reconnect to the node of a cluster that has the keys, which a reply such as "MOVED
// 3999 127.0.0.1:6381" names: sets host_, port_ and moving_. Returns false, and changes nothing, if
// the reply names no node. Also returns false if the nodes only refer to each other; then sets
// problem_, by which check_deadlines() closes the connection.
bool Link::follow_moved(const Reply& reply) {
  if (moving_) return true;  // an earlier reply on this connection has named the node
  const std::string_view text = reply.text;
  const auto space = text.rfind(' ');
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon < space) return false;
  const auto port = to_number<int>(text.substr(colon + 1));
  if (!port) return false;
  const bool has_host = colon > space + 1;  // otherwise the host is the one that replied
  auto host = has_host ? std::string(text.substr(space + 1, colon - space - 1)) : host_;
  // Nodes that name themselves or each other would make the link reconnect without a pause. So it
  // follows only one reply until a connection has lasted, and otherwise connects again later.
  const bool names_itself = host == host_ && *port == port_;
  const bool is_at_other_node = host_ != options_.address.host || port_ != options_.address.port;
  const bool has_lasted = last_reply_ - began_ >= options_.longest_wait;
  if (names_itself || (is_at_other_node && !has_lasted)) {
    problem_ = "its MOVED leads to no node that has the keys";
    return false;
  }
  host_ = std::move(host);
  port_ = *port;
  moving_ = true;
  return true;
}

// Measures how long the server takes to reply while it is Late. A reply in time ends that state.
void Link::ping(Time now) {
  const auto posted = std::make_shared<Posted>();
  posted->command.words = {"PING"};
  posted->done = [this, now](const Reply& reply) {
    if (reply.failed()) return;
    if (now_is() - now <= options_.reply_timeout) set_is_up(/*is_up=*/true, {});
  };
  wait_ = std::min<Duration>(2 * wait_, options_.longest_wait);
  next_try_ = later(now, wait_);
  send(posted, now);
}

// Records whether the server replies in time, and if it does not, the reason. Calls on_change if
// either has changed. The first result also ends wait_for_first().
void Link::set_is_up(bool is_up, const std::string& why) {
  moving_ = false;
  if (is_up) state_ = State::Up;
  const bool other_reason = std::exchange(down_why_, why) != why;
  const bool changed = up_.exchange(is_up, std::memory_order_relaxed) != is_up || other_reason;
  const bool first = std::exchange(awaits_first_, false);
  if (changed && options_.on_change) options_.on_change(is_up, why);
  if (!first) return;
  first_problem_ = why;
  first_ended_ = true;
  first_ended_.notify_all();
}

void Link::report_lost(const Queue& posted, const std::string& why) {
  for (const auto& command : Queue(posted)) {  // a copy, because `done` may post commands
    if (auto done = std::exchange(command->done, nullptr)) done(Reply::lost_because(why));
  }
}

// Closes the connection, reports its commands as lost, and sets when to connect again: after half
// of the current wait, or up to the whole, so that many processes do not reconnect at once.
void Link::go_down(const std::string& why, Time now) {
  connection_.close(why);
  report_lost(sent_, why);
  sent_.clear();
  host_ = options_.address.host;
  port_ = options_.address.port;
  state_ = State::Down;
  next_try_ = later(now, Duration(wait_ * (0.5 + 0.5 * random_number())));
  wait_ = std::min<Duration>(2 * wait_, options_.longest_wait);
  set_is_up(/*is_up=*/false, why);
}

}  // namespace httpretry::fleet
