// A server in virtual time that keeps a ledger of what it was sent.
#pragma once

#include <httpretry/chain/transport.hpp>
#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace httpretry {

// How one send ends.
struct HedgedReply {
  Outcome outcome = Response(200);
  Duration after{};
  bool executed = true;  // the server may have carried it out
};

class HedgedServer final : public Transport {
 public:
  explicit HedgedServer(std::function<HedgedReply()> next) : next_(std::move(next)) {}

  // Of the calls whose header X-Call is that.
  struct Entry {
    int sends = 0;  // that have reached the server
    int alive = 0;
    bool executed = false;
    bool sent_beside = false;  // while another was alive, or after one that may have been executed
  };

  Task<Outcome> send(Request request, Call& call) override {
    const std::string name(request.headers().get("X-Call").value_or(""));
    auto& scheduler = call.scheduler();
    auto reply = next_();
    const bool refused = !reply.outcome && reply.outcome.error().code == Errc::Connect;
    {
      auto& entry = ledger_[name];
      if (entry.alive > 0 || entry.executed) entry.sent_beside = true;
      ++entry.alive;
      if (!refused) ++entry.sends;
    }
    if (!refused) ++sends_;
    const auto end = later(scheduler.now(), reply.after);
    const auto until = std::min(end, call.deadline());
    const bool whole = co_await scheduler.sleep_until(until, call.stop());
    auto& entry = ledger_[name];
    --entry.alive;
    const bool came = whole && until == end;
    if (!came) reply.outcome = Error(whole ? Errc::Timeout : Errc::Canceled, "no response");
    entry.executed = entry.executed || reply.executed;
    auto& exchange = exchange_of(reply.outcome);
    exchange.sent = refused ? Sent::Never : reply.outcome ? Sent::Answered : Sent::Maybe;
    exchange.wire_sends = refused ? 0 : 1;
    co_return std::move(reply.outcome);
  }

  [[nodiscard]] std::int64_t sends() const { return sends_; }
  [[nodiscard]] const Entry& entry(const std::string& name) { return ledger_[name]; }
  void forget(const std::string& name) { ledger_.erase(name); }

 private:
  std::function<HedgedReply()> next_;
  std::map<std::string, Entry> ledger_;
  std::int64_t sends_ = 0;
};

}  // namespace httpretry
