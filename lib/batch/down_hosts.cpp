#include <httpretry/batch/down_hosts.hpp>

namespace httpretry::batch {

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
