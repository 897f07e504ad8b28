#include "connection.hpp"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace httpretry::fleet {
namespace {

// The limits of a reply: its elements, those of its lists included; how deep lists are nested; and
// its bytes, which are those of the longest text that Redis itself allows.
constexpr std::size_t kMostElements = 1'000'000;
constexpr int kMostDepth = 7;
constexpr std::size_t kMostBytes = 512U * 1024 * 1024;

// Stores a part of a reply, which hiredis has just read, by calling `fill` with the Reply for it.
// If the part is an element of a list (task->parent), that is the list's element with its index.
// Otherwise it is a new Reply, which the caller of hiredis owns. Returns that Reply. If memory is
// short, returns nullptr, with which hiredis fails (REDIS_ERR_OOM).
template <class Fill>
void* add_part(const redisReadTask* task, const Fill& fill) {
  try {
    if (task->parent != nullptr) {
      // add_list() has made a Reply for each element.
      auto& list = static_cast<Reply*>(task->parent->obj)->list;
      auto& element = list.at(static_cast<std::size_t>(task->idx));
      fill(element);
      return &element;
    }
    auto reply = std::make_unique<Reply>();
    fill(*reply);
    return reply.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Adds a list with this many elements, which hiredis reads next. Returns nullptr if that exceeds a
// limit, or if the list is not an array. Our commands get arrays only.
void* add_list(const redisReadTask* task, std::size_t size) {
  auto& count = *static_cast<std::size_t*>(task->privdata);  // Connection::element_count_
  if (task->parent == nullptr) count = 0;
  int depth = 0;
  for (const auto* outer = task->parent; outer != nullptr; outer = outer->parent) ++depth;
  if (depth >= kMostDepth || size > kMostElements - count || task->type != REDIS_REPLY_ARRAY) {
    return nullptr;
  }
  count += size;
  return add_part(task, [size](Reply& reply) {
    reply.kind = Reply::Kind::List;
    reply.list.resize(size);
  });
}

// Makes replies fail that have a type of RESP3, which only hiredis 1 knows. Our commands do not get
// such replies.
template <class Functions>
void refuse_resp3_types(Functions& functions) {
  const auto refuse = [](auto...) -> void* { return nullptr; };
  if constexpr (requires { functions.createDouble; }) functions.createDouble = refuse;
  if constexpr (requires { functions.createBool; }) functions.createBool = refuse;
}

// Returns the functions by which hiredis makes a Reply of what it reads.
redisReplyObjectFunctions reply_functions() {
  redisReplyObjectFunctions functions{};
  functions.createString = [](const redisReadTask* task, char* text, std::size_t length) {
    return add_part(task, [&](Reply& reply) {
      const bool is_error = task->type == REDIS_REPLY_ERROR;
      reply.kind = is_error ? Reply::Kind::Error : Reply::Kind::Text;
      reply.text.assign(text, length);
    });
  };
  // The size is an int in hiredis 0, and a std::size_t in hiredis 1.
  functions.createArray = [](const redisReadTask* task, auto size) {
    return add_list(task, static_cast<std::size_t>(size));
  };
  functions.createInteger = [](const redisReadTask* task, long long integer) {
    return add_part(task, [integer](Reply& reply) {
      reply.kind = Reply::Kind::Integer;
      reply.integer = integer;
    });
  };
  functions.createNil = [](const redisReadTask* task) {
    return add_part(task, [](Reply& /*reply*/) {});  // a new Reply is Kind::Nil
  };
  // hiredis frees only the outermost Reply, which owns the others.
  functions.freeObject = [](void* reply) { delete static_cast<Reply*>(reply); };
  refuse_resp3_types(functions);
  return functions;
}

}  // namespace

// Begins to connect to a server, in place of any earlier connection. Returns true if the connection
// may still be established. Returns false if connecting has failed at once, for example because the
// host is unknown; `error_` then has the reason.
bool Connection::open(const std::string& host, int port) {
  static auto functions = reply_functions();
  close("the connection was closed");  // commands without a reply get this reason
  error_.clear();
  context_ = redisConnectNonBlock(host.c_str(), port);
  if (context_ == nullptr || context_->err != 0) {
    close(context_ == nullptr ? "out of memory" : context_->errstr);
    return false;
  }
  context_->reader->fn = &functions;
  context_->reader->privdata = &element_count_;
  return true;
}

void Connection::close(const std::string& why) {
  error_ = why;
  if (context_ != nullptr) redisFree(std::exchange(context_, nullptr));
  connected_ = wants_to_write_ = false;
  for (const auto& done : std::exchange(awaited_, {})) done(Reply::lost_because(why));
}

// Sends a command, which consists of its name and its arguments: {"SELECT", "1"}. Calls `done`
// once: later with the server's reply, or with a lost reply if the connection ends before that.
// Without a connection, or if hiredis is out of memory, `done` gets the lost reply at once.
void Connection::send(const std::vector<std::string>& words, Done done) {
  if (context_ == nullptr) return done(Reply::lost_because(error_));
  // hiredis takes the words as two arrays, and copies the texts.
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const auto& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  const auto count = static_cast<int>(words.size());
  if (redisAppendCommandArgv(context_, count, texts.data(), lengths.data()) != REDIS_OK) {
    return done(Reply::lost_because(context_->errstr));
  }
  wants_to_write_ = true;
  awaited_.push_back(std::move(done));
}

int Connection::descriptor() const { return context_ == nullptr ? -1 : context_->fd; }

short Connection::wanted_events() const {
  if (!connected_) return POLLOUT;
  return static_cast<short>(POLLIN | (wants_to_write_ ? POLLOUT : 0));
}

void Connection::on_events(short events) {
  constexpr short kBroken = POLLERR | POLLHUP;
  if (context_ == nullptr) return;
  if (!connected_) return on_connected();
  if ((events & POLLOUT) != 0) {
    int is_written = 0;
    if (redisBufferWrite(context_, &is_written) != REDIS_OK) return close(context_->errstr);
    wants_to_write_ = is_written == 0;
  }
  if ((events & (POLLIN | kBroken)) != 0) read_replies();
}

// Called when the connection is established or has failed.
void Connection::on_connected() {
  int failure = 0;
  socklen_t size = sizeof failure;
  if (::getsockopt(context_->fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) failure = errno;
  if (failure != 0) return close(std::generic_category().message(failure));
  connected_ = true;
}

// Reads what has arrived, and passes each complete reply to the command that awaits it; replies
// arrive in the order of the commands. Closes the connection if the server has closed it, or if it
// sends a malformed reply, one that is too large, or one that no command awaits.
void Connection::read_replies() {
  if (redisBufferRead(context_) != REDIS_OK) return close(context_->errstr);
  while (context_ != nullptr) {  // the handler below, `done`, may close the connection
    void* object = nullptr;
    if (redisGetReplyFromReader(context_, &object) != REDIS_OK) {
      // hiredis reports "out of memory" if one of our functions that store a reply has returned
      // nullptr: memory was short, or a list was too long or too deep.
      const bool refused = context_->err == REDIS_ERR_OOM;
      return close(refused ? "the server sent a reply that is too large" : context_->errstr);
    }
    const std::unique_ptr<Reply> reply(static_cast<Reply*>(object));
    if (!reply) break;  // the next one is not complete
    if (awaited_.empty()) {
      // A server that has too many clients sends an error without a command.
      const bool is_error = reply->kind == Reply::Kind::Error;
      return close(is_error ? reply->text : "the server sent a reply that belongs to no command");
    }
    const auto done = std::move(awaited_.front());
    awaited_.pop_front();
    done(std::move(*reply));
  }
  // The bytes of an incomplete reply stay in hiredis's buffer.
  if (context_ != nullptr && context_->reader->len > kMostBytes) {
    close("the server sent a reply that is too large");
  }
}

}  // namespace httpretry::fleet
