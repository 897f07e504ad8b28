// Loop as a Transport: looks up the host and carries out the exchange. Also keeps the
// handles and the facts about origins, which later exchanges use again.
#include "content_codings.hpp"
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

// An idle handle takes 7 to 8 KiB, so only a few are kept when no request is in flight. An idle
// connection takes 2.3 KiB, with TLS 35.
constexpr std::size_t kEasiesAtRest = 8;
// A new handle costs a third of the instructions of a small GET, so handles are kept between bursts
// of calls.
constexpr auto kEasiesKept = std::chrono::seconds(1);
// About 100 bytes each. If there are more, all are dropped; new responses soon fill the list again.
constexpr std::size_t kMaxOrigins = 4096;

// For `exchange`: libcurl knows the addresses of the host, or needs none.
constexpr const std::string* kAddressesKnown = nullptr;

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

const OriginInfo& Loop::origin(const Url& url) const {
  static const OriginInfo unknown;
  const auto found = origins_.find(url.origin());
  return found == origins_.end() ? unknown : found->second;
}

OriginInfo& Loop::edit_origin(const Url& url) {
  if (origins_.size() > kMaxOrigins) origins_.clear();
  return origins_[std::string(url.origin())];
}

// Returns a handle that an earlier exchange has returned, or a new one that is connected with the
// loop's share and sockets.
std::unique_ptr<Easy> Loop::acquire_easy() {
  most_in_use_ = std::max(most_in_use_, easies_in_use() + 1);
  if (!easies_.empty()) {
    auto easy = std::move(easies_.back());
    easies_.pop_back();
    return easy;
  }
  auto easy = std::make_unique<Easy>(*options_, may_use_proxy_);
  easy->set(CURLOPT_SHARE, share_.get());
  easy->set(CURLOPT_OPENSOCKETFUNCTION, &on_open);
  easy->set(CURLOPT_OPENSOCKETDATA, easy.get());
  easy->set(CURLOPT_CLOSESOCKETFUNCTION, &on_close);
  easy->set(CURLOPT_CLOSESOCKETDATA, this);
  return easy;
}

void Loop::return_easy(std::unique_ptr<Easy> easy, bool reusable) {
  if (reusable) easies_.push_back(std::move(easy));
  if (easies_.size() > kEasiesAtRest && free_easies_at_ == kNever) {
    free_easies_at_ = now() + kEasiesKept;
  }
}

std::size_t Loop::easies_in_use() const {
  std::size_t in_use = 0;
  for (const auto& shard : shards_) in_use += shard->active.size();
  return in_use;
}

// Frees the idle handles that the busiest moment of the last second did not need.
void Loop::free_unused_easies() {
  const auto kept = std::max(kEasiesAtRest, std::exchange(most_in_use_, easies_in_use()));
  while (easies_.size() + most_in_use_ > kept) easies_.pop_back();
  free_easies_at_ = easies_.size() > kEasiesAtRest ? now() + kEasiesKept : kNever;
}

// Returns the watched connection, or nullptr if its socket is unknown or no thread can be started.
std::shared_ptr<Heartbeat::Watched> Loop::watch_connection(int local_port) {
  const int fd = sockets.find(local_port);
  if (fd < 0) return nullptr;
  try {
    if (!heartbeat_) heartbeat_ = std::make_unique<Heartbeat>();
  } catch (const std::system_error&) {  // no thread, so a flood is noticed only when it ends
    return nullptr;
  }
  return heartbeat_->watch(fd);
}

void Loop::found_http1(int local_port) {
  const int fd = sockets.set_http1(local_port);
  if (fd >= 0 && heartbeat_) heartbeat_->forget(fd);
}

// Carries out the exchange, after a look-up of the host unless it is an IP address or localhost, a
// proxy may look it up, libcurl still has the addresses, or TransportOptions::resolve gives them.
Task<Outcome> Loop::send(Request request, Call& call) {
  if (!request.options().compress_with.empty()) return send_encoded(std::move(request), call);
  const auto& url = request.parsed_url();
  const auto applies = [&](const std::string& entry) { return applies_to(entry, *url); };
  const bool must_look_up = url && url->parts().host_is_name && looks_up_ &&
                            origin(*url).addresses_until <= now() &&
                            std::ranges::none_of(options_->resolve, applies);
  if (must_look_up) return resolve_and_send(std::move(request), call);
  return exchange(std::move(request), call, kAddressesKnown, Pooling::Allowed);
}

// Sends the request with its body encoded (compressed) as RequestOptions::compress_with requests.
// If the server refuses that with 415 (Unsupported Media Type), sends the body as it is. If the
// server refuses that as well, the 415 was about the type of the content; otherwise the loop
// remembers for the origin that it refuses encoded bodies. The outcome counts what both exchanges
// have sent.
Task<Outcome> Loop::send_encoded(Request request, Call& call) {
  const auto url = request.parsed_url();
  // `send` reports a URL that is not valid.
  const bool skips_encoding = !url || origin(*url).refuses_encoded_bodies;
  auto changed =
      skips_encoding ? Result<Request>(request) : encoded(request, options_->content_codings);
  if (!changed) co_return std::move(changed).error();
  // `send` now sends the bodies as they are.
  changed->edit_options().compress_with.clear();
  request.edit_options().compress_with.clear();
  const auto first = send(*changed, call);
  Outcome first_outcome = co_await first;
  // `encoded` leaves some requests as they are, for example one that is already encoded.
  const bool was_encoded = !changed->body().is_same_as(request.body());
  const bool may_refuse_encoding = was_encoded && first_outcome && first_outcome->status == 415;
  if (!may_refuse_encoding || !request.body().replayable()) co_return first_outcome;
  const auto second = send(std::move(request), call);
  Outcome final_outcome = co_await second;
  if (final_outcome && final_outcome->status != 415) {
    edit_origin(*url).refuses_encoded_bodies = true;
  }
  add_first_transfer(exchange_of(final_outcome), exchange_of(first_outcome));
  co_return final_outcome;
}

// Refuses an IP address of the version that the options exclude, because libcurl 8.23 connects to
// an IP address in a URL whatever CURLOPT_IPRESOLVE says.
Result<void> Loop::check_ip_version(const Url& url) const {
  const auto version = options_->ip_version;
  if (version == IpVersion::Any || !looks_up_ || url.parts().host_is_name) return {};
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

// Looks up the host of the request, and then carries out the exchange with the addresses. Returns
// the error of the look-up if that fails or does not end within the connect timeout. The timings of
// the outcome include the look-up.
Task<Outcome> Loop::resolve_and_send(Request request, Call& call) {
  const Url url = *request.parsed_url();  // a copy, because `request` is moved below
  const auto began = now();
  const auto limits = call.limits(request);
  // The time for the look-up is part of the time to connect and of the time for the response.
  const auto timeout =
      std::min(limits.connect_timeout.value_or(options().connect_timeout), limits.response_timeout);
  const auto resolve_by = std::min({call.deadline(), limits.respond_by, later(began, timeout)});
  std::string host(url.host());
  // This token is not requested when the client ends. The wait then ends anyway, with its loop.
  const auto& stop = Call::State::own_stop(call);
  const auto resolved = co_await resolver_->resolve(std::move(host), *this, resolve_by, stop);
  const auto lookup_time = now() - began;
  if (!resolved.addresses) {
    Error error = resolved.addresses.error();
    error.message = about(request, url) + error.message;  // "GET https://host/path: ..."
    error.exchange.timings.total = lookup_time;
    co_return error;
  }
  // `exchange` keeps a pointer to `entry`, which lives until this coroutine ends.
  const auto entry = resolve_entry(url, *resolved.addresses);
  const auto task = exchange(std::move(request), call, &entry, Pooling::Allowed);
  Outcome outcome = co_await task;
  Exchange& facts = exchange_of(outcome);
  add_preceding_step(facts.timings, lookup_time);
  // With a connection from the pool, the exchange looks nothing up and leaves `resolved` at zero.
  facts.timings.resolved = std::max<Duration>(facts.timings.resolved, lookup_time);
  // If anything was sent, libcurl has cached the addresses, so further requests need no look-up
  // until they expire.
  if (facts.sent != Sent::Never) edit_origin(url).addresses_until = resolved.use_until;
  co_return outcome;
}

// Waits until the user's reader has more of the body, or until the exchange is over, and returns
// the reader to the transfer.
Task<> Loop::await_body(Transfer& transfer, const Call& call) {
  const std::stop_source exchange_over;
  Call branch = call.with(call.deadline(), exchange_over.get_token());
  CheckedReader body = transfer.detach_reader(exchange_over);
  const auto task = detail::wait_for_more(body, branch);
  Result<void> ready = co_await task;
  if (exchange_over.stop_requested()) {
    // Perhaps Transfer::conclude has resumed this coroutine, and conclude must return first.
    const ResumeOn later_turn(*this);
    co_await later_turn;
  }
  transfer.reattach_reader(std::move(body), std::move(ready));
}

// Carries out one exchange with libcurl, and returns its response or error. `addresses` are those
// of the host, or nullptr if libcurl knows them; `pool` says whether an idle connection may be
// used. A second transfer replaces the first if the server refused "Expect: 100-continue", or if
// nothing was sent because the idle connection had unread data. The outcome counts what both have
// sent.
Task<Outcome> Loop::exchange(Request request, Call& call, const std::string* addresses,
                             Pooling pool) {
  const auto& url = request.parsed_url();
  if (!url) co_return url.error();
  auto delivery = Delivery::of(request, call);  // writes to the sink; nullptr without a sink
  if (!delivery) co_return std::move(delivery).error();
  Transfer transfer(*this, request, call, *delivery);
  auto started = transfer.start(addresses, pool);
  if (!started) co_return std::move(started).error();
  for (;;) {
    // Continues when the transfer is over or needs something from this coroutine.
    const auto wants = co_await transfer;
    if (wants == Transfer::Wants::End) break;
    if (wants == Transfer::Wants::Body) {  // more of the request's body
      const auto task = await_body(transfer, call);
      co_await task;
    } else if (wants == Transfer::Wants::Drain) {  // the sink can take no more for now
      Result<BodyWriter::Wish> drained = co_await (*delivery)->drain(call);
      // An error of the sink ends the call, so `of_writer` makes it permanent.
      transfer.on_drained(of_writer(std::move(drained)));
    }
  }
  Outcome outcome = transfer.outcome();
  if (!transfer.expect_refused() && !transfer.had_unread()) co_return outcome;
  if (transfer.expect_refused()) {
    // RFC 9110 §10.1.1: a 417 only means that some server on the way does not support Expect.
    request.remove_header("Expect");
    request.edit_options().expect_continue_from.reset();
  }
  // The next connection from the pool may have unread data as well, so a new one is made.
  pool = transfer.had_unread() ? Pooling::Forbidden : Pooling::Allowed;
  // The recursion ends: Expect is refused once at most, and a new connection has no unread data.
  const auto second = exchange(request, call, addresses, pool);
  Outcome final_outcome = co_await second;
  add_first_transfer(exchange_of(final_outcome), exchange_of(outcome));
  co_return final_outcome;
}

}  // namespace httpretry
