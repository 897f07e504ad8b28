// Har: records sends and responses as an HTTP Archive (HAR 1.2), which the developer tools of
// browsers can open. Each send is an entry, whose comment describes the decision and the wait.
//
//   const auto archive = std::make_shared<Har>();
//   options.observers = {archive->observer()};
//   ...
//   std::ofstream("calls.har") << archive->text();
//
// The archive has no bodies and no secrets: values of queries are REDACTED, and `shown_value`
// redacts headers. It stays in memory.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/observer.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace httpretry {

// An archive of the sends of one or several clients. All of its functions are thread-safe.
class HTTPRETRY_API Har final {
 public:
  Har();
  ~Har();
  Har(const Har&) = delete;
  Har& operator=(const Har&) = delete;

  // Returns an observer for ClientOptions::observers. It may outlive this object.
  [[nodiscard]] std::shared_ptr<Observer> observer() const;
  // Returns the archive so far, as JSON. Its entries are in the order in which the sends ended.
  [[nodiscard]] std::string text() const;
  // Returns the number of entries so far.
  [[nodiscard]] std::size_t entries() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace httpretry
