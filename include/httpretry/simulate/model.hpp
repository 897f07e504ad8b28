// What a simulation is made of besides policies: the model of a server and its network, the load,
// and what goes wrong in between. Data only; it can be read from JSON.
//
// lib/extras/simulate/README.md, "Models", describes each key with its default.
#pragma once

#include <httpretry/http/result.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// A random time.
struct HTTPRETRY_API Distribution {
  // Normal takes the absolute value: no time is negative. Lognormal has the median `mean`, and
  // `sigma` is the deviation of the logarithm. Mix draws from one of `parts`, Empirical draws one
  // of `values`.
  enum class Kind : std::uint8_t { Constant, Exponential, Normal, Lognormal, Mix, Empirical };
  struct Part;

  Distribution();
  explicit Distribution(Duration constant);
  Distribution(Kind which, Duration average, Duration spread = Duration());

  Kind kind = Kind::Constant;
  Duration mean{};
  Duration deviation{};  // Normal
  double sigma = 0;      // Lognormal
  std::vector<Part> parts;
  std::vector<Duration> values;
};
struct HTTPRETRY_API Distribution::Part {
  Part() = default;
  double weight = 1;
  Distribution of;
};
// Not before: they need a whole Part.
inline Distribution::Distribution() = default;
inline Distribution::Distribution(Duration constant) : mean(constant) {}
inline Distribution::Distribution(Kind which, Duration average, Duration spread)
    : kind(which), mean(average), deviation(spread) {}

// For a time, the server has only a share of its capacity, fails, or gets more calls.
struct HTTPRETRY_API Trigger {
  Trigger() = default;
  Trigger(Duration from, Duration length) : at(from), lasts(length) {}
  [[nodiscard]] Duration end() const { return at + lasts; }

  Duration at{};
  Duration lasts{};
  std::optional<double> capacity;  // the share that is left: 0.2
  std::optional<double> fail;      // the share of requests that fail at once
  std::optional<double> load;      // the factor by which more calls begin
  int status = 503;                // of `fail`
  Duration retry_after{};          // of `fail`; zero: no Retry-After
};

// An attempt of a recorded report, for the model `trace`.
struct HTTPRETRY_API RecordedAttempt {
  RecordedAttempt() = default;
  Duration duration{};
  int status = 0;  // 0: `error`
  Errc error = Errc::Receive;
  Duration retry_after{};
};

// A server and the network before it.
struct HTTPRETRY_API ServerModel {
  // Fail: each request fails with a probability, whatever the load. Capacity: so many requests in a
  // second, the others are rejected at once. Queue: workers with a queue before them. Slope: the
  // more requests at once, the slower. Occ: a row that all clients update with optimistic
  // concurrency. Trace: what a recorded run got.
  enum class Kind : std::uint8_t { Fail, Capacity, Queue, Slope, Occ, Trace };
  enum class Reject : std::uint8_t { Unavailable, TooMany, Drop };  // 503, 429, no response

  ServerModel() = default;
  explicit ServerModel(Kind which);

  Kind kind = Kind::Fail;
  // Of one message. A request and its response are two, an occ transaction has four.
  Distribution network{std::chrono::milliseconds(5)};
  double probability = 0.5;                               // Fail
  int status = 500;                                       // Fail
  double rate = 1000;                                     // Capacity, in requests per second,
  Duration window = std::chrono::milliseconds(100);       // counted in windows of this length
  Reject reject = Reject::Unavailable;                    // Capacity, and Queue when it is full
  Duration retry_after{};                                 // with a rejection; zero: none
  int servers = 100;                                      // Queue
  Distribution service{std::chrono::milliseconds(50)};    // Queue
  int queue = 1000;                                       // Queue: most requests that wait
  bool timeout_work = true;                               // Queue: requests whose client has left
                                                          // are carried out all the same
  Duration base = std::chrono::milliseconds(50);          // Slope: of a request that is alone
  Duration per_request = std::chrono::microseconds(500);  // Slope: longer for each other one
  int above = 0;                                          // Slope: of which so many do not count
  std::string file;                                       // Trace
  std::vector<RecordedAttempt> recorded;                  // Trace: what is in the file

  // Services between the clients and the server. Each calls the next one with its own policy; a
  // layer without one has the policy of the run.
  std::vector<std::optional<PolicySet>> layers;
  std::vector<Trigger> triggers;
};

// The words of a file: "fail", "constant", …
[[nodiscard]] HTTPRETRY_API std::string_view to_string(ServerModel::Kind kind);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Distribution::Kind kind);

// When calls begin.
struct HTTPRETRY_API Load {
  // Open: at a rate, whatever becomes of them. Closed: each client begins the next call some time
  // after its last one has ended. Once: each client makes one call, at the beginning.
  enum class Kind : std::uint8_t { Open, Closed, Once };
  enum class Arrivals : std::uint8_t { Poisson, Even };
  struct Point {
    Duration at{};
    double rate = 0;
  };

  Load() = default;

  Kind kind = Kind::Open;
  double rate = 1000;  // Open: of all clients together, in calls per second
  Arrivals arrivals = Arrivals::Poisson;
  std::vector<Point> curve;  // Open: the rate at these times and on the lines between them
  Distribution think{std::chrono::seconds(1)};  // Closed: from the end of a call to the next
};

// Each reads what the command line takes, "NAME", "NAME:key=value,…" or the text of a JSON file;
// `file_name` is for messages. Errc::InvalidRequest with a line and its position for each problem.
// A trace and the policies of layers are read from files whose paths are as they are written.
[[nodiscard]] HTTPRETRY_API Result<ServerModel> parse_model(std::string_view text,
                                                            const std::string& file_name);
[[nodiscard]] HTTPRETRY_API Result<Load> parse_load(std::string_view text,
                                                    const std::string& file_name);
// "at=20s,for=10s,capacity=0.2", or a JSON object with these keys.
[[nodiscard]] HTTPRETRY_API Result<Trigger> parse_trigger(std::string_view text,
                                                          const std::string& file_name);

}  // namespace httpretry
