#include "outages.hpp"

#include <httpretry/batch/down_hosts.hpp>

#include <algorithm>
#include <utility>

namespace httpretry::batch {

void Outages::send_began(std::string_view host) {
  auto found = hosts_.find(host);
  if (found == hosts_.end()) found = hosts_.emplace(std::string(host), Host()).first;
  ++found->second.sends;
}

void Outages::send_ended(std::string_view host) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return;
  --found->second.sends;
  forget_if_idle(found);
}

bool Outages::succeeded(std::string_view host) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return false;
  end_outage(found->second);
  found->second.down = false;
  forget_if_idle(found);
  return true;
}

void Outages::will_retry(std::string_view host, const Flight& call) {
  auto& entry = hosts_[std::string(host)];
  if (entry.down || std::ranges::find(entry.in_retry, &call) != entry.in_retry.end()) return;
  entry.in_retry.push_back(&call);
  if (!entry.change) entry.change = std::make_shared<Change>();
}

bool Outages::ended(std::string_view host, const Flight& call, bool gave_up) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return false;
  auto& entry = found->second;
  if (std::ranges::find(entry.in_retry, &call) == entry.in_retry.end()) return false;
  end_outage(entry);
  entry.down = gave_up;
  return gave_up;
}

bool Outages::down(std::string_view host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.down;
}

std::shared_ptr<const Outages::Change> Outages::others_retry(std::string_view host,
                                                             const Flight& call) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return nullptr;
  const auto& in_retry = found->second.in_retry;
  // The first kScouts calls of the list retry, and the others wait. A call that is not in the list
  // does not retry at this host.
  const auto index = std::ranges::find(in_retry, &call) - in_retry.begin();
  const bool must_wait = index >= std::ptrdiff_t{kScouts} && index < std::ssize(in_retry);
  return must_wait ? found->second.change : nullptr;
}

std::vector<std::string> Outages::blocked_hosts() const {
  std::vector<std::string> names;
  for (const auto& [name, host] : hosts_) {
    if (host.in_retry.empty()) continue;
    if (host.sends > 0 || host.in_retry.size() >= kScouts) names.push_back(name);
  }
  return names;
}

// Allows all calls to send again.
void Outages::end_outage(Host& host) {
  host.in_retry.clear();
  if (const auto change = std::exchange(host.change, nullptr)) change->happen();
}

// Bounds the memory of a run that sends to a million hosts.
void Outages::forget_if_idle(Hosts::iterator host) {
  const auto& entry = host->second;
  if (entry.sends == 0 && entry.in_retry.empty() && !entry.down) hosts_.erase(host);
}

DownHosts::~DownHosts() = default;

bool DownHosts::take(const Request& request, const Classified& /*classified*/, Time /*now*/) {
  const auto& url = request.parsed_url();
  if (!url) return true;
  const std::lock_guard lock(mutex_);
  return !hosts_.contains(url->origin());
}

void DownHosts::set(std::string_view host, bool down) {
  const std::lock_guard lock(mutex_);
  if (down) {
    hosts_.emplace(host);
  } else if (const auto found = hosts_.find(host); found != hosts_.end()) {
    hosts_.erase(found);
  }
}

}  // namespace httpretry::batch
