// From a request to its exchange: the addresses of its host first, then a Transfer, and between
// the two, where the answer goes to a sink, what brings it there.
#include "loop.hpp"
#include "resolver.hpp"
#include "transfer.hpp"

#include <algorithm>
#include <utility>

namespace httpretry {
namespace {

// As CURLOPT_RESOLVE has it; the plus lets the entry grow old.
std::string resolve_entry(const Url& url, const Addresses& addresses) {
  std::string entry = "+" + url.host() + ":" + std::to_string(url.port()) + ":";
  const char* separator = "";
  for (const auto& address : addresses) {
    const bool six = address.find(':') != std::string::npos;
    entry.append(separator).append(six ? "[" + address + "]" : address);
    separator = ",";
  }
  return entry;
}

// The exchange began with a look-up that took that long.
void add_lookup(Timings& timings, Duration took) {
  for (auto* time : {&timings.resolved, &timings.connected, &timings.secured, &timings.sent,
                     &timings.first_byte}) {
    if (*time != Duration::zero()) *time += took;
  }
  timings.resolved = std::max(timings.resolved, took);
  timings.total += took;
}

}  // namespace

Task<Outcome> LoopTransport::send(Request request, Call& call) {
  const auto& url = request.parsed_url();
  const bool named = url && loop_.needs_addresses(*url);
  return named ? send_to_named(std::move(request), call)
               : exchange(std::move(request), call, nullptr);
}

Task<Outcome> LoopTransport::send_to_named(Request request, Call& call) {
  const Url url = *request.parsed_url();
  const auto began = loop_.now();
  const auto patience = request.options().connect_timeout.value_or(loop_.options().connect_timeout);
  const auto soonest = std::min(request.options().answer_by, later(began, patience));
  const auto limit = std::min(call.deadline(), soonest);
  const auto answer = co_await loop_.resolver().resolve(url.host(), loop_, limit, call.stop());
  const auto took = loop_.now() - began;
  if (!answer.addresses) {
    Error error = answer.addresses.error();
    error.message = about(request, url) + error.message;
    error.exchange.timings.total = took;
    co_return error;
  }
  const auto entry = resolve_entry(url, *answer.addresses);
  const auto sent = exchange(std::move(request), call, &entry);
  Outcome outcome = co_await sent;
  auto& facts = exchange_of(outcome);
  add_lookup(facts.timings, took);
  // Only now is it certain that libcurl has taken them up.
  if (facts.sent != Sent::Never) loop_.facts(url.origin()).addresses_until = answer.use_until;
  co_return outcome;
}

Task<Outcome> LoopTransport::exchange(Request request, Call& call, const std::string* addresses) {
  return request.options().sink ? deliver(std::move(request), call, addresses)
                                : take(std::move(request), call, addresses);
}

Task<Outcome> LoopTransport::take(Request request, Call& call, const std::string* addresses) {
  const auto& url = request.parsed_url();
  if (!url) co_return url.error();
  Transfer transfer(loop_, request, *url, call, addresses);
  Outcome outcome = co_await transfer;
  co_return outcome;
}

Task<Outcome> LoopTransport::deliver(Request request, Call& call, const std::string* addresses) {
  const auto& url = request.parsed_url();
  if (!url) co_return url.error();
  auto opened = Delivery::of(request, call);
  if (!opened) co_return std::move(opened).error();
  auto& delivery = **opened;
  Transfer transfer(loop_, request, *url, call, addresses, &delivery);
  if (!transfer.await_ready()) {
    transfer.start();
    for (;;) {
      Transfer::Leg leg(transfer);
      const bool drain = co_await leg;
      if (!drain) break;
      Result<BodyWriter::Wish> drained = co_await delivery.drain(call);
      transfer.go_on(std::move(drained));
    }
  }
  const bool delivered = transfer.delivers();
  Outcome outcome = transfer.await_resume();
  if (!outcome || !delivered) co_return outcome;
  auto finished = delivery.finish(*outcome);
  if (!finished) co_return transfer.unfinished(std::move(finished).error(), outcome->exchange);
  co_return outcome;
}

}  // namespace httpretry
