#include "connection.hpp"

#include <hiredis/async.h>
#include <poll.h>

#include <utility>

namespace httpretry::fleet {
namespace {

// Converts a reply from hiredis's type to our own. Calls itself for the elements of a list.
Reply to_reply(const redisReply& source) {
  Reply reply;
  switch (source.type) {
    case REDIS_REPLY_INTEGER:
      reply.kind = Reply::Kind::Integer;
      reply.integer = source.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:  // a short text such as "OK"
      reply.kind = Reply::Kind::Text;
      reply.text.assign(source.str, source.len);
      break;
    case REDIS_REPLY_ERROR:
      reply.kind = Reply::Kind::Error;
      reply.text.assign(source.str, source.len);
      break;
    case REDIS_REPLY_ARRAY:
      reply.kind = Reply::Kind::List;
      for (std::size_t index = 0; index < source.elements; ++index) {
        reply.list.push_back(to_reply(*source.element[index]));
      }
      break;
    case REDIS_REPLY_NIL:
    default:
      // A new Reply is Kind::Nil. Other types, such as maps and doubles, exist only in RESP3, a
      // newer form of the protocol that our connections do not select.
      break;
  }
  return reply;
}

}  // namespace

// Begins to connect to a server, in place of any earlier connection. Returns false if that fails at
// once, for example because the host is unknown; `error_` then has the reason. True means begun,
// not connected: hiredis calls on_status() when the connection is established or has failed.
bool Connection::open(const std::string& host, int port) {
  close("the connection was closed");  // commands without a reply get this reason
  error_.clear();
  connected_ = wants_to_read_ = wants_to_write_ = false;
  context_ = redisAsyncConnect(host.c_str(), port);
  if (context_ == nullptr || context_->err != 0) {
    error_ = context_ == nullptr ? "out of memory" : context_->errstr;
    if (context_ != nullptr) redisAsyncFree(std::exchange(context_, nullptr));
    return false;
  }
  context_->data = this;  // for on_status() and on_reply()
  // Through these callbacks, hiredis reports which events of the socket it wants to wait for.
  auto& events = context_->ev;
  events.data = this;  // the callbacks get it as `self`
  events.addRead = [](void* self) { static_cast<Connection*>(self)->wants_to_read_ = true; };
  events.delRead = [](void* self) { static_cast<Connection*>(self)->wants_to_read_ = false; };
  events.addWrite = [](void* self) { static_cast<Connection*>(self)->wants_to_write_ = true; };
  events.delWrite = [](void* self) { static_cast<Connection*>(self)->wants_to_write_ = false; };
  // Called before the context is freed: by close(), or by hiredis itself after the connection has
  // failed or ended.
  events.cleanup = [](void* self) { static_cast<Connection*>(self)->context_ = nullptr; };
  // This calls addWrite, so it comes after the callbacks above have been set.
  redisAsyncSetConnectCallback(context_, on_status);
  redisAsyncSetDisconnectCallback(context_, on_status);
  return true;
}

void Connection::close(const std::string& why) {
  if (context_ == nullptr) return;
  error_ = why;
  redisAsyncFree(context_);
}

// Sends a command, which consists of its name and its arguments: {"SELECT", "1"}. Calls `done`
// once: later with the server's reply, or with a lost reply if the connection ends before that.
// Without a connection, `done` gets the lost reply at once.
void Connection::send(const std::vector<std::string>& words, Done done) {
  if (context_ == nullptr) return done(Reply::lost_because(error_));
  // hiredis takes the words as two arrays, and copies the texts.
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const auto& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  auto callback = std::make_unique<Done>(std::move(done));
  const int status =
      redisAsyncCommandArgv(context_, on_reply, callback.get(), static_cast<int>(words.size()),
                            texts.data(), lengths.data());
  if (status == REDIS_OK) {
    // on_reply() deletes the callback. hiredis calls on_reply() exactly once for each command that
    // it has accepted, even if the connection ends without a reply.
    static_cast<void>(callback.release());
  } else {
    (*callback)(Reply::lost_because("the connection is being closed"));
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
