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

// Makes an entry for CURLOPT_RESOLVE. The plus makes it expire.
std::string resolve_entry(const Url& url, const Addresses& addresses) {
  std::string entry = "+";
  entry.append(url.host()).append(":").append(std::to_string(url.port())).append(":");
  const char* separator = "";
  for (const auto& address : addresses) {
    const bool six = address.find(':') != std::string::npos;
    entry.append(separator).append(six ? "[" + address + "]" : address);
    separator = ",";
  }
  return entry;
}

// Adds the time of a step that preceded the exchange.
void add_before(Timings& timings, Duration took) {
  for (auto* time : {&timings.resolved, &timings.connected, &timings.secured, &timings.sent,
                     &timings.first_byte}) {
    if (*time != Duration::zero()) *time += took;
  }
  timings.total += took;
}

// Merges the first transfer into `last`, which replaced it.
void add_first_transfer(Exchange& last, const Exchange& first) {
  add_before(last.timings, first.timings.total);
  if (last.sent == Sent::Never) last.sent = first.sent;
  last.wire_sends += first.wire_sends;
}

// Returns whether an entry of TransportOptions::resolve applies to the URL's host and port.
bool is_for(std::string_view entry, const Url& url) {
  const auto host = take_until(entry, ':');
  return take_until(entry, ':') == std::to_string(url.port()) &&
         (host == "*" || equal_ignoring_case(host, url.host()));
}

}  // namespace

Task<Outcome> Loop::send(Request request, Call& call) {
  // No look-up for an IP address or localhost, with a proxy, while libcurl still has the addresses,
  // or if TransportOptions::resolve gives them.
  const auto& url = request.parsed_url();
  const bool unknown = url && url->parts().named && looks_up_ &&
                       origin(*url).addresses_until <= now() &&
                       std::ranges::none_of(options_->resolve,
                                            [&](const auto& entry) { return is_for(entry, *url); });
  return unknown ? resolve_and_send(std::move(request), call)
                 : exchange(std::move(request), call, nullptr, false);
}

// libcurl 8.23 connects to an IP address in a URL whatever CURLOPT_IPRESOLVE says.
Result<void> Loop::check_ip_version(const Url& url) const {
  const auto wanted = options_->ip_version;
  if (wanted == IpVersion::Any || !looks_up_) return {};
  const auto host = url.host();
  const bool other = wanted == IpVersion::V4 ? host.starts_with('[') : is_digit(host.front());
  if (!other || url.parts().named) return {};
  return permanent_error(
      Errc::Resolve,
      "the host " + std::string(host) + " is an address of the IP version that ip_version excludes",
      CURLE_COULDNT_RESOLVE_HOST);
}

void Loop::renew_addresses(const Url& url) {
  edit_origin(url).addresses_until = Time();
  resolver_->renew(std::string(url.host()), now());
}

Task<Outcome> Loop::resolve_and_send(Request request, Call& call) {
  const Url url = *request.parsed_url();
  const auto began = now();
  const auto limits = call.limits(request);
  const auto timeout =
      std::min(limits.connect_timeout.value_or(options().connect_timeout), limits.response_timeout);
  const auto limit = std::min({call.deadline(), limits.respond_by, later(began, timeout)});
  std::string host(url.host());
  const auto found =
      co_await resolver_->resolve(std::move(host), *this, limit, Call::State::own_stop(call));
  const auto took = now() - began;
  if (!found.addresses) {
    Error error = found.addresses.error();
    error.message = about(request, url) + error.message;
    error.exchange.timings.total = took;
    co_return error;
  }
  const auto entry = resolve_entry(url, *found.addresses);
  const auto sent = exchange(std::move(request), call, &entry, false);
  Outcome outcome = co_await sent;
  auto& what = exchange_of(outcome);
  add_before(what.timings, took);
  what.timings.resolved = std::max(what.timings.resolved, took);
  // A send proves that libcurl has taken the addresses.
  if (what.sent != Sent::Never) {
    edit_origin(url).addresses_until = found.use_until;
  }
  co_return outcome;
}

Task<> Loop::await_body(Transfer& transfer, const Call& call) {
  const std::stop_source over;
  Call branch = call.with(call.deadline(), over.get_token());
  CheckedReader body = transfer.lend_body(over);
  const auto waiting = wait_for_more(body, branch);
  Result<void> ready = co_await waiting;
  if (over.stop_requested()) {  // perhaps called from Transfer::conclude, which must return first
    const ResumeOn later(*this);
    co_await later;
  }
  transfer.take_body(std::move(body), std::move(ready));
}

Task<Outcome> Loop::exchange(Request request, Call& call, const std::string* addresses,
                             bool fresh) {
  const auto& url = request.parsed_url();
  if (!url) co_return url.error();
  auto delivery = Delivery::of(request, call);
  if (!delivery) co_return std::move(delivery).error();
  Transfer transfer(*this, request, call, *delivery);
  auto started = transfer.start(addresses, fresh);
  if (!started) co_return std::move(started).error();
  for (;;) {
    const auto wants = co_await transfer;
    if (wants == Transfer::Wants::End) break;
    if (wants == Transfer::Wants::Body) {
      const auto waiting = await_body(transfer, call);
      co_await waiting;
    } else if (wants == Transfer::Wants::Drain) {
      Result<BodyWriter::Wish> drained = co_await (*delivery)->drain(call);
      transfer.go_on(std::move(drained));
    }
  }
  Outcome outcome = transfer.outcome();
  if (transfer.expect_refused()) {
    // RFC 9110 §10.1.1: a 417 only means that some server on the way does not support Expect.
    request.remove_header("Expect");
    request.edit_options().expect_continue_from.reset();
  } else if (!transfer.had_unread()) {
    co_return outcome;
  }
  const auto again = exchange(request, call, addresses, transfer.had_unread());
  Outcome last = co_await again;
  add_first_transfer(exchange_of(last), exchange_of(outcome));
  co_return last;
}

}  // namespace httpretry
