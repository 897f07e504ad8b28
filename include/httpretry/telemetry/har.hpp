// Har: records sends and responses as an HTTP Archive (HAR 1.2), which the developer tools of
// browsers can open. Each send is an entry, whose comment describes the decision and the wait.
//
//   const auto archive = std::make_shared<Har>();
//   options.observers = {archive->observer()};
//   ...
//   std::ofstream("calls.har") << archive->text();
//
// The archive has no secrets: values of queries are REDACTED, and `shown_value` redacts headers. It
// has bodies only if HarOptions::max_body says so. It stays in memory. libcurl does not report when
// a request has been sent, so the time "wait" of an entry includes the sending.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/observer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace httpretry {

// The options of an archive.
struct HTTPRETRY_API HarOptions {
  HarOptions() = default;

  // The maximum size of the response bodies that the archive has, in bytes. A server or a test that
  // replays the archive needs them (testing.hpp). They may contain secrets, which are not redacted.
  // A larger body is left out, and so is one that goes to a sink; on_request can remove the sink
  // from each send, and the client then passes the body to the sink at the end of the call.
  //
  // Default: 0, no bodies
  std::uint64_t max_body = 0;
};

// An archive of the sends of one or several clients. All of its functions are thread-safe.
class HTTPRETRY_API Har final {
 public:
  explicit Har(HarOptions options = HarOptions());
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
