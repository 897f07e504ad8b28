#include "connection.hpp"

#include <hiredis/async.h>
#include <poll.h>

#include <utility>

namespace httpretry::fleet {
namespace {

// Converts a reply of hiredis, with the elements of a list. A type that no command of ours has, and
// REDIS_REPLY_NIL, become Kind::Nil.
Reply to_reply(const redisReply& from) {
  Reply reply;
  switch (from.type) {
    case REDIS_REPLY_INTEGER:
      reply.kind = Reply::Kind::Integer;
      reply.integer = from.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      reply.kind = Reply::Kind::Text;
      reply.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ERROR:
      reply.kind = Reply::Kind::Error;
      reply.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ARRAY:
      reply.kind = Reply::Kind::List;
      for (std::size_t index = 0; index < from.elements; ++index) {
        reply.list.push_back(to_reply(*from.element[index]));
      }
      break;
    default: break;
  }
  return reply;
}

}  // namespace

// Sets the callbacks by which hiredis reports what events it wants to wait for, and when the
// connection has been established or has ended.
bool Connection::open(const std::string& host, int port) {
  close("the connection was closed");
  error_.clear();
  connected_ = wants_to_read_ = wants_to_write_ = false;
  context_ = redisAsyncConnect(host.c_str(), port);
  if (context_ == nullptr || context_->err != 0) {
    error_ = context_ == nullptr ? "out of memory" : context_->errstr;
    if (context_ != nullptr) redisAsyncFree(std::exchange(context_, nullptr));
    return false;
  }
  auto& events = context_->ev;
  events.data = this;
  context_->data = this;
  events.addRead = [](void* self) { static_cast<Connection*>(self)->wants_to_read_ = true; };
  events.delRead = [](void* self) { static_cast<Connection*>(self)->wants_to_read_ = false; };
  events.addWrite = [](void* self) { static_cast<Connection*>(self)->wants_to_write_ = true; };
  events.delWrite = [](void* self) { static_cast<Connection*>(self)->wants_to_write_ = false; };
  // hiredis frees the context itself after a connection has failed.
  events.cleanup = [](void* self) { static_cast<Connection*>(self)->context_ = nullptr; };
  redisAsyncSetConnectCallback(context_, on_status);
  redisAsyncSetDisconnectCallback(context_, on_status);
  return true;
}

void Connection::close(const std::string& why) {
  if (context_ == nullptr) return;
  error_ = why;
  redisAsyncFree(context_);
}

// Passes the command to hiredis, which calls on_reply() with its reply, or without one when the
// connection ends. If there is no connection, calls `done` at once with a lost reply.
void Connection::send(const std::vector<std::string>& words, Done done) {
  if (context_ == nullptr) return done(Reply::lost_because(error_));
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const auto& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  auto owned = std::make_unique<Done>(std::move(done));
  const int status =
      redisAsyncCommandArgv(context_, on_reply, owned.get(), static_cast<int>(words.size()),
                            texts.data(), lengths.data());
  if (status == REDIS_OK) {
    static_cast<void>(owned.release());  // on_reply deletes it
  } else {
    (*owned)(Reply::lost_because("the connection is being closed"));
  }
}

int Connection::descriptor() const { return context_ == nullptr ? -1 : context_->c.fd; }

short Connection::wanted_events() const {
  return static_cast<short>((wants_to_read_ ? POLLIN : 0) | (wants_to_write_ ? POLLOUT : 0));
}

void Connection::on_events(short events) {
  constexpr short kBroken = POLLERR | POLLHUP;
  if (context_ != nullptr && (events & (POLLOUT | kBroken)) != 0 && wants_to_write_) {
    redisAsyncHandleWrite(context_);
  }
  if (context_ != nullptr && (events & (POLLIN | kBroken)) != 0) redisAsyncHandleRead(context_);
}

// hiredis calls this when the connection is established, has failed or has ended.
void Connection::on_status(const redisAsyncContext* context, int status) {
  auto& self = *static_cast<Connection*>(context->data);
  self.connected_ = status == REDIS_OK;
  if (!self.connected_) self.error_ = context->errstr;
}

// hiredis calls this once for each command. `reply` is nullptr if the connection ends before the
// reply arrives. `done` is the Done of send().
void Connection::on_reply(redisAsyncContext* context, void* reply, void* done) {
  const std::unique_ptr<Done> owned(static_cast<Done*>(done));
  auto& self = *static_cast<Connection*>(context->data);
  if (reply == nullptr) {
    const auto* why = context->err != 0 ? context->errstr : self.error_.c_str();
    return (*owned)(Reply::lost_because(why));
  }
  (*owned)(to_reply(*static_cast<const redisReply*>(reply)));
}

}  // namespace httpretry::fleet
