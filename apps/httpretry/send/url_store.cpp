#include "send/url_store.hpp"

namespace httpretry::cli {

UrlStore::UrlStore(const std::vector<std::string>& hosts) {
  for (std::size_t i = 0; i < hosts.size(); ++i) queues_[hosts[i]].push_back(i + 1);
  counts_.queued = hosts.size();
}

void UrlStore::take(std::size_t most, const WantsHost& wants, std::vector<batch::Job>& jobs) {
  // One of each host, and again.
  for (bool found = true; found && most > 0;) {
    found = false;
    for (auto& [host, queue] : queues_) {
      if (most == 0) return;
      if (queue.empty() || !wants(host)) continue;
      batch::Job job;
      job.number = queue.front();
      job.host = host;
      queue.pop_front();
      jobs.push_back(std::move(job));
      found = true;
      --most;
    }
  }
}

void UrlStore::give_back(const batch::Job& job) { queues_.at(job.host).push_front(job.number); }

void UrlStore::finish(const batch::Job& /*job*/, batch::JobEnd /*end*/) {
  --counts_.queued;
  ++counts_.done;
}

}  // namespace httpretry::cli
