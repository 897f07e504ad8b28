// The URLs of a group as a store for the runner of batches: in memory, without a journal.
#pragma once

#include <httpretry/batch/store.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace httpretry::cli {

class UrlStore final : public batch::Store {
 public:
  // The host of each URL.
  explicit UrlStore(const std::vector<std::string>& hosts);

  void take(std::size_t most, const WantsHost& wants, std::vector<batch::Job>& jobs) override;
  void give_back(const batch::Job& job) override;
  void finish(const batch::Job& job, batch::JobEnd end) override;
  [[nodiscard]] batch::Counts counts() const override { return counts_; }

  // Nothing has to be durable, and no call has to wait elsewhere.
  std::vector<const batch::Job*> intend(std::span<const batch::Job* const> /*jobs*/) override {
    return {};
  }
  void wait(const batch::Job& /*job*/, Duration /*time*/, int /*attempts*/,
            std::string_view /*why*/) override {}
  void hold(std::string_view /*host*/, Duration /*time*/) override {}
  std::vector<batch::HeldHost> holds() override { return {}; }
  void commit() override {}
  std::optional<Duration> next_due() override { return std::nullopt; }

 private:
  std::map<std::string, std::deque<std::size_t>> queues_;  // by host: numbers of URLs, from 1
  batch::Counts counts_;
};

}  // namespace httpretry::cli
