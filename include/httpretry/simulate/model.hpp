// The parts of a simulation besides its policies: the model of a server and its network, the load,
// and the triggers that disturb them. These are plain data, which can be read from JSON.
//
// lib/extras/simulate/README.md, "Models", describes each key with its default.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/result.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// The distribution of a random duration.
struct HTTPRETRY_API Distribution {
  // Normal takes the absolute value, because a duration is never negative. Lognormal has the median
  // `mean`; `sigma` is the standard deviation of the logarithm. Mix draws from one of `parts`.
  // Empirical draws one of `values`.
  enum class Kind : std::uint8_t { Constant, Exponential, Normal, Lognormal, Mix, Empirical };
  struct Part;

  Distribution();
  explicit Distribution(Duration constant);
  Distribution(Kind which, Duration average, Duration spread = Duration());

  Kind kind = Kind::Constant;
  Duration mean{};
  Duration deviation{};          // Normal
  double sigma = 0;              // Lognormal
  std::vector<Part> parts;       // Mix
  std::vector<Duration> values;  // Empirical
};
// One of the distributions that a Mix draws from, and its weight.
struct HTTPRETRY_API Distribution::Part {
  Part() = default;
  double weight = 1;
  Distribution of;
};
// Defined here because they need the complete type Part.
inline Distribution::Distribution() = default;
inline Distribution::Distribution(Duration constant) : mean(constant) {}
inline Distribution::Distribution(Kind which, Duration average, Duration spread)
    : kind(which), mean(average), deviation(spread) {}

// A disturbance that lasts for a time: the server loses capacity, fails requests, or gets more
// calls.
struct HTTPRETRY_API Trigger {
  Trigger() = default;
  Trigger(Duration from, Duration length) : at(from), lasts(length) {}
  [[nodiscard]] Duration end() const { return at + lasts; }

  Duration at{};  // its beginning, since the start of the run
  Duration lasts{};
  std::optional<double> capacity;  // the share that is left: 0.2 is 20 %
  std::optional<double> fail;      // the share of requests that fail at once
  std::optional<double> load;      // multiplies the rate at which calls begin
  int status = 503;                // of the requests that `fail` fails
  Duration retry_after{};          // in these responses; zero: no Retry-After
};

// An attempt from a recorded report, for the model `trace`.
struct HTTPRETRY_API RecordedAttempt {
  RecordedAttempt() = default;
  Duration duration{};
  int status = 0;  // 0: no response, but `error`
  Errc error = Errc::Receive;
  Duration retry_after{};  // of the response; zero: none
};

// A server and the network in front of it.
struct HTTPRETRY_API ServerModel {
  // Fail: each request fails with a fixed probability, whatever the load. Capacity: the server
  // serves `rate` requests per second and rejects the others at once. Queue: workers behind a
  // queue. Slope: response times grow with the number of requests in flight. Occ: one row that all
  // clients update with optimistic concurrency control. Trace: the responses of a recorded run.
  enum class Kind : std::uint8_t { Fail, Capacity, Queue, Slope, Occ, Trace };
  enum class Reject : std::uint8_t { Unavailable, TooMany, Drop };  // 503, 429, no response

  ServerModel() = default;
  explicit ServerModel(Kind which);

  Kind kind = Kind::Fail;
  // The time that one message takes. A request and its response are two messages; a transaction of
  // Occ has four.
  Distribution network{std::chrono::milliseconds(5)};
  double probability = 0.5;                               // Fail
  int status = 500;                                       // Fail
  double rate = 1000;                                     // Capacity, in requests per second
  Duration window = std::chrono::milliseconds(100);       // Capacity: the rate counts per window
  Reject reject = Reject::Unavailable;                    // Capacity, and Queue when it is full
  Duration retry_after{};                                 // of a rejection; zero: no Retry-After
  int servers = 100;                                      // Queue: workers
  Distribution service{std::chrono::milliseconds(50)};    // Queue: time that a worker needs
  int queue = 1000;                                       // Queue: most requests that wait
  bool timeout_work = true;                               // Queue: serves requests even after
                                                          // their client has given up
  Duration base = std::chrono::milliseconds(50);          // Slope: time of a single request
  Duration per_request = std::chrono::microseconds(500);  // Slope: added for each other request
  int above = 0;                                          // Slope: this many others add nothing
  std::string file;                                       // Trace: its path
  std::vector<RecordedAttempt> recorded;                  // Trace: the attempts in the file

  // Services between the clients and the server. Each calls the next one under its own policy; a
  // layer without a policy uses that of the run.
  std::vector<std::optional<PolicySet>> layers;
  std::vector<Trigger> triggers;
};

// Returns the word that stands for the kind in JSON, for example "fail" or "constant".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(ServerModel::Kind kind);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Distribution::Kind kind);

// The times at which calls begin.
struct HTTPRETRY_API Load {
  // Open: calls begin at a rate that does not depend on how earlier calls end. Closed: each client
  // begins its next call some time after its last one has ended. Once: each client makes one call,
  // at the beginning.
  enum class Kind : std::uint8_t { Open, Closed, Once };
  // The times between calls: exponentially distributed, or all the same.
  enum class Arrivals : std::uint8_t { Poisson, Even };
  // The rate of calls per second at a time, for `curve`.
  struct Point {
    Duration at{};
    double rate = 0;
  };

  Load() = default;

  Kind kind = Kind::Open;
  double rate = 1000;  // Open: of all clients together, in calls per second
  Arrivals arrivals = Arrivals::Poisson;
  std::vector<Point> curve;  // Open: replaces `rate`; the rate is interpolated between the points
  Distribution think{std::chrono::seconds(1)};  // Closed: from the end of a call to the next one
};

// Each parses `text`, which has one of the forms that the command line accepts: "NAME",
// "NAME:key=value,…" or the text of a JSON file. `file_name` appears in messages. Returns
// Errc::InvalidRequest with one line per problem, each with its position. Paths of traces and
// policy files are relative to the current directory.
[[nodiscard]] HTTPRETRY_API Result<ServerModel> parse_model(std::string_view text,
                                                            const std::string& file_name);
[[nodiscard]] HTTPRETRY_API Result<Load> parse_load(std::string_view text,
                                                    const std::string& file_name);
// Here `text` is "at=20s,for=10s,capacity=0.2", or a JSON object with these keys.
[[nodiscard]] HTTPRETRY_API Result<Trigger> parse_trigger(std::string_view text,
                                                          const std::string& file_name);

}  // namespace httpretry
