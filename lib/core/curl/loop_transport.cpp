// Loop as a Transport: looks up the host and carries out the exchange.
#include "resolver.hpp"
#include "transfer.hpp"
#include "url_parts.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/flow/resume_on.hpp"

#include <algorithm>

namespace httpretry {
namespace {

constexpr const std::string* kAddressesKnown = nullptr;  // by libcurl, or it needs none

// Makes an entry for CURLOPT_RESOLVE: "+HOST:PORT:ADDRESS,ADDRESS". The plus makes it expire.
std::string resolve_entry(const Url& url, const Addresses& addresses) {
  std::string entry = "+";
  entry.append(url.host()).append(":").append(std::to_string(url.port())).append(":");
  const char* separator = "";
  for (const auto& address : addresses) {
    const bool is_ipv6 = address.find(':') != std::string::npos;
    entry.append(separator).append(is_ipv6 ? "[" + address + "]" : address);
    separator = ",";
  }
  return entry;
}

// Adds the time of a step that preceded the exchange. A time of zero means that the exchange did
// not come that far, so it stays zero.
void add_preceding_step(Timings& timings, Duration step) {
  for (auto* time : {&timings.resolved, &timings.connected, &timings.secured, &timings.sent,
                     &timings.first_byte}) {
    if (*time != Duration::zero()) *time += step;
  }
  timings.total += step;
}

// Merges the first transfer into `last`, which replaced it.
void add_first_transfer(Exchange& last, const Exchange& first) {
  add_preceding_step(last.timings, first.timings.total);
  if (last.sent == Sent::Never) last.sent = first.sent;
  last.wire_sends += first.wire_sends;
}

// Returns whether an entry of TransportOptions::resolve, "HOST:PORT:ADDRESS", applies to the URL's
// host and port.
bool applies_to(std::string_view entry, const Url& url) {
  const auto host = take_until(entry, ':');
  return take_until(entry, ':') == std::to_string(url.port()) &&
         (host == "*" || equal_ignoring_case(host, url.host()));
}

}  // namespace

// Carries out the exchange, after a look-up of the host unless it is an IP address or localhost, a
// proxy may look it up, libcurl still has the addresses, or TransportOptions::resolve gives them.
Task<Outcome> Loop::send(Request request, Call& call) {
  const auto& url = request.parsed_url();
  const auto applies = [&](const std::string& entry) { return applies_to(entry, *url); };
  const bool must_look_up = url && url->parts().named && looks_up_ &&
                            origin(*url).addresses_until <= now() &&
                            std::ranges::none_of(options_->resolve, applies);
  if (must_look_up) return resolve_and_send(std::move(request), call);
  return exchange(std::move(request), call, kAddressesKnown, Pooling::Allowed);
}

// Refuses an IP address of the version that the options exclude, because libcurl 8.23 connects to
// an IP address in a URL whatever CURLOPT_IPRESOLVE says.
Result<void> Loop::check_ip_version(const Url& url) const {
  const auto version = options_->ip_version;
  if (version == IpVersion::Any || !looks_up_ || url.parts().named) return {};
  const auto host = url.host();
  const bool excluded = version == IpVersion::V4 ? host.starts_with('[') : is_digit(host.front());
  if (!excluded) return {};
  return permanent_error(
      Errc::Resolve,
      "the host " + std::string(host) + " is an address of the IP version that ip_version excludes",
      CURLE_COULDNT_RESOLVE_HOST);
}

void Loop::renew_addresses(const Url& url) {
  edit_origin(url).addresses_until = Time();
  resolver_->renew(std::string(url.host()), now());
}

// Looks up the host, within the connect timeout, and carries out the exchange with its addresses.
// The timings of the outcome include the look-up.
Task<Outcome> Loop::resolve_and_send(Request request, Call& call) {
  const Url url = *request.parsed_url();
  const auto began = now();
  const auto limits = call.limits(request);
  const auto timeout =
      std::min(limits.connect_timeout.value_or(options().connect_timeout), limits.response_timeout);
  const auto resolve_by = std::min({call.deadline(), limits.respond_by, later(began, timeout)});
  std::string host(url.host());
  const auto resolved =
      co_await resolver_->resolve(std::move(host), *this, resolve_by, Call::State::own_stop(call));
  const auto lookup_time = now() - began;
  if (!resolved.addresses) {
    Error error = resolved.addresses.error();
    error.message = about(request, url) + error.message;
    error.exchange.timings.total = lookup_time;
    co_return error;
  }
  const auto entry = resolve_entry(url, *resolved.addresses);
  const auto task = exchange(std::move(request), call, &entry, Pooling::Allowed);
  Outcome outcome = co_await task;
  auto& facts = exchange_of(outcome);  // what was sent, and when
  add_preceding_step(facts.timings, lookup_time);
  facts.timings.resolved = std::max(facts.timings.resolved, lookup_time);
  // A send proves that libcurl has stored the addresses.
  if (facts.sent != Sent::Never) edit_origin(url).addresses_until = resolved.use_until;
  co_return outcome;
}

// Waits until the user's reader has more of the body, or until the exchange is over, and returns
// the reader to the transfer.
Task<> Loop::await_body(Transfer& transfer, const Call& call) {
  const std::stop_source exchange_over;
  Call branch = call.with(call.deadline(), exchange_over.get_token());
  CheckedReader body = transfer.detach_reader(exchange_over);
  const auto task = wait_for_more(body, branch);
  Result<void> ready = co_await task;
  if (exchange_over.stop_requested()) {
    // Perhaps Transfer::conclude has resumed this coroutine, and it must return first.
    const ResumeOn later_turn(*this);
    co_await later_turn;
  }
  transfer.reattach_reader(std::move(body), std::move(ready));
}

// Carries out one transfer, and a second one if the server refused Expect or the pooled connection
// turned out to be unusable before anything was sent.
Task<Outcome> Loop::exchange(Request request, Call& call, const std::string* addresses,
                             Pooling pool) {
  const auto& url = request.parsed_url();
  if (!url) co_return url.error();
  auto delivery = Delivery::of(request, call);
  if (!delivery) co_return std::move(delivery).error();
  Transfer transfer(*this, request, call, *delivery);
  auto started = transfer.start(addresses, pool);
  if (!started) co_return std::move(started).error();
  for (;;) {
    const auto wants = co_await transfer;
    if (wants == Transfer::Wants::End) break;
    if (wants == Transfer::Wants::Body) {
      const auto task = await_body(transfer, call);
      co_await task;
    } else if (wants == Transfer::Wants::Drain) {
      Result<BodyWriter::Wish> drained = co_await (*delivery)->drain(call);
      transfer.on_drained(std::move(drained));
    }
  }
  Outcome outcome = transfer.outcome();
  if (!transfer.expect_refused() && !transfer.had_unread()) co_return outcome;
  if (transfer.expect_refused()) {
    // RFC 9110 §10.1.1: a 417 only means that some server on the way does not support Expect.
    request.remove_header("Expect");
    request.edit_options().expect_continue_from.reset();
  }
  pool = transfer.had_unread() ? Pooling::Forbidden : Pooling::Allowed;
  const auto second = exchange(request, call, addresses, pool);
  Outcome last = co_await second;
  add_first_transfer(exchange_of(last), exchange_of(outcome));
  co_return last;
}

}  // namespace httpretry
