// Har: what was sent and received, as an HTTP Archive (HAR 1.2), which the developer tools of
// browsers open. An entry for each send; waits and decisions are comments.
//
//   const auto archive = std::make_shared<Har>();
//   options.observers = {archive->observer()};
//   ...
//   std::ofstream("calls.har") << archive->text();
//
// It has no bodies, and no secrets: values of queries are REDACTED, and headers are as
// `shown_value` shows them. It is kept in memory.
#pragma once

#include <httpretry/chain/observer.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace httpretry {

class HTTPRETRY_API Har final {
 public:
  Har();
  ~Har();
  Har(const Har&) = delete;
  Har& operator=(const Har&) = delete;

  // For ClientOptions::observers; of several clients, if you like.
  [[nodiscard]] std::shared_ptr<Observer> observer() const;
  // The archive so far, in the order in which the sends ended.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::size_t entries() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace httpretry
