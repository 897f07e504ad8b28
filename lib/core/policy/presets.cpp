#include <httpretry/policy/presets.hpp>

#include "lib/core/policy/detail/keys.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace httpretry {
namespace policy_file {
namespace {

// The values that most presets share, and the order of the keys. null stands for a key that a
// preset does not state. A preset with another kind of backoff removes the keys that it lacks.
constexpr std::string_view kBase = R"({
    "max_attempts": null, "max_elapsed_time": "none", "elapsed_rule": "include_wait",
    "backoff": {"kind": "exponential", "initial": null, "multiplier": 2, "max_interval": null,
        "jitter": "full"},
    "throttle_backoff": "none",
    "retry_on": {"statuses": ["5xx"], "throttle_statuses": [429], "error_codes": [],
        "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol",
                      "partial"],
        "pending": null},
    "repeat": "safe", "idempotency_key": null, "budget": "none", "server_delay": {"combine": "max"}, "adaptive": null})";

// A preset as a patch (RFC 7396) of the preset `below`, or of kBase if `below` is empty.
struct Patch {
  std::string_view name;
  std::string_view description;
  std::string_view below;
  std::string_view json;
};

constexpr Patch kPatches[] = {
    // Presets of existing clients.
    {"none", "one attempt", "", R"({"max_attempts": 1,
         "backoff": {"kind": "none", "multiplier": null, "jitter": null},
         "retry_on": {"statuses": [], "throttle_statuses": [], "transport": []}})"},
    {"aws-standard", "AWS SDKs, retry mode standard", "", R"({"max_attempts": 3,
         "backoff": {"initial": "1s", "max_interval": "20s"},
         "retry_on": {"statuses": [500, 502, 503, 504], "error_codes": ["aws"]},
         "repeat": "always",
         "budget": {"kind": "tokens", "capacity": 500, "retry_cost": 5, "timeout_cost": 10,
             "refill_on_success": 1, "scope": "host"}})"},
    {"aws-standard-2026", "AWS SDKs, standard mode of 2026 (DynamoDB: initial 25ms, 4 attempts)",
     "", R"({"max_attempts": 3,
         "backoff": {"initial": "50ms", "max_interval": "20s"},
         "throttle_backoff": {"kind": "exponential", "initial": "1s", "multiplier": 2,
             "max_interval": "20s", "jitter": "full"},
         "retry_on": {"statuses": [500, 502, 503, 504], "error_codes": ["aws"]},
         "repeat": "always",
         "budget": {"kind": "tokens", "capacity": 500, "retry_cost": 14, "throttle_cost": 5,
             "refill_on_success": 1, "scope": "host"},
         "server_delay": {"headers": ["x-amz-retry-after"], "max_over_own": "5s"}})"},
    {"aws-adaptive", "AWS SDKs, retry mode adaptive: standard, and a limit on the rate of sends",
     "aws-standard", R"({"adaptive": true})"},
    {"azure", "Azure SDKs: 0.8 s doubled, times 0.8 to 1.3, up to a minute", "",
     R"({"max_attempts": 4,
         "backoff": {"initial": "800ms", "max_interval": "60s", "jitter": "range", "low": 0.8,
             "high": 1.3, "cap": "after"},
         "retry_on": {"statuses": [408, 500, 502, 503, 504]},
         "repeat": "always"})"},
    {"gcs", "Google Cloud Storage: up to 1, 2, 4, ... 30 s, for 15 minutes", "",
     R"({"max_attempts": "unlimited", "max_elapsed_time": "15m",
         "backoff": {"initial": "1s", "max_interval": "30s"},
         "retry_on": {"statuses": [408, "5xx"]},
         "repeat": "always", "idempotency_key": "X-Goog-Gcs-Idempotency-Token"})"},
    {"grpc", "gRPC (A6): 100 ms doubled up to 1 s, a fifth more or less; its token budget", "",
     R"({"max_attempts": 5,
         "backoff": {"initial": "100ms", "max_interval": "1s", "jitter": "range", "low": 0.8,
             "high": 1.2},
         "retry_on": {"statuses": [502, 503, 504]},
         "budget": {"kind": "grpc", "max_tokens": 10, "token_ratio": 0.1, "scope": "host"}})"},
    {"envoy", "Envoy: one retry after up to 25 ms, retries at most a fifth of the requests", "",
     R"({"max_attempts": 2,
         "backoff": {"initial": "25ms", "max_interval": "250ms"},
         "retry_on": {"throttle_statuses": []},
         "budget": {"kind": "ratio", "ratio": 0.2, "scope": "host"}})"},
    {"github", "GitHub: waits as the server says; without a word, a minute doubled", "",
     R"({"max_attempts": 4, "max_elapsed_time": "15m",
         "backoff": {"initial": "1s", "max_interval": "60s"},
         "throttle_backoff": {"kind": "exponential", "initial": "60s", "multiplier": 2,
             "jitter": "none"},
         "retry_on": {"error_codes": ["github"]},
         "server_delay": {"combine": "server", "max": "15m"}})"},
    {"openai", "OpenAI SDKs: 0.5 s doubled up to 8 s, less up to a quarter", "",
     R"({"max_attempts": 3,
         "backoff": {"initial": "500ms", "max_interval": "8s", "jitter": "range", "low": 0.75,
             "high": 1},
         "retry_on": {"statuses": [408, 409, "5xx"], "error_codes": ["openai"]},
         "repeat": "always"})"},
    {"stripe",
     "Stripe SDKs: 1, 2.5, 5 s, less up to a quarter; a 429 only if Stripe-Should-Retry says so",
     "", R"({"max_attempts": 3,
         "backoff": {"initial": "1s", "multiplier": 2.5, "max_interval": "5s", "jitter": "range",
             "low": 0.75, "high": 1},
         "retry_on": {"statuses": [409, "5xx"], "throttle_statuses": [],
             "error_codes": ["stripe"]},
         "repeat": "always", "idempotency_key": "Idempotency-Key"})"},
    {"curl", "curl --retry 3: 1, 2, 4, ... s up to 10 minutes, or as long as Retry-After says", "",
     R"({"max_attempts": 4,
         "backoff": {"initial": "1s", "max_interval": "10m", "jitter": "none"},
         "retry_on": {"statuses": [408, 500, 502, 503, 504, 522, 524],
             "transport": ["resolve", "timeout"]},
         "server_delay": {"headers": ["retry-after"], "combine": "server", "max": "none"}})"},
    {"otlp", "OpenTelemetry's exporters (OTLP over HTTP): up to 1, 2, 4, ... 30 s, for a minute",
     "",
     R"({"max_attempts": "unlimited", "max_elapsed_time": "1m",
         "backoff": {"initial": "1s", "max_interval": "30s"},
         "retry_on": {"statuses": [502, 503, 504]},
         "repeat": "always"})"},

    // Presets of algorithms in articles, manuals and standards.
    {"constant", "a second between attempts", "", R"({"max_attempts": 3,
         "backoff": {"kind": "constant", "interval": "1s", "multiplier": null, "jitter": null},
         "retry_on": {"error_codes": ["aws", "google", "github", "openai", "stripe"]}})"},
    {"exponential", "1, 2, 4, ... seconds up to 10, without jitter", "", R"({"max_attempts": 6,
         "backoff": {"initial": "1s", "max_interval": "10s", "jitter": "none"},
         "retry_on": {"error_codes": ["aws", "google", "github", "openai", "stripe"]}})"},
    {"full-jitter", "anything between nothing and 1, 2, 4, ... seconds up to 10", "exponential",
     R"({"backoff": {"jitter": "full"}})"},
    {"equal-jitter", "half of 1, 2, 4, ... seconds up to 10, and anything up to the other half",
     "exponential", R"({"backoff": {"jitter": "equal"}})"},
    {"decorrelated-jitter", "between a second and three times the wait before, up to 10 s",
     "exponential", R"({"backoff": {"kind": "decorrelated", "multiplier": 3, "jitter": null}})"},
    {"truncated-binary", "anything up to 19.5 ms, doubled until the tenth wait: up to 10 s",
     "exponential", R"({"max_attempts": "unlimited", "max_elapsed_time": "15m",
         "backoff": {"kind": "truncated_binary", "initial": null, "multiplier": null,
             "jitter": null, "steps": 10}})"},
    {"csma-cd", "Ethernet (IEEE 802.3): 0 to 2^n - 1 slots of 51.2 us, 16 attempts", "",
     R"({"max_attempts": 16,
         "backoff": {"kind": "slots", "slot": "51.2us", "truncate": 10, "abort": 16,
             "multiplier": null, "jitter": null},
         "retry_on": {"statuses": ["4xx", "5xx"]}})"},
    {"aws-general",
     "AWS General Reference, Error Retries: 100 ms doubled, no jitter; 202 is polled", "",
     R"({"max_attempts": 6,
         "backoff": {"initial": "100ms", "max_interval": "20s", "jitter": "none"},
         "retry_on": {"error_codes": ["aws"], "pending": {"statuses": [202], "max": 6,
             "backoff": {"kind": "exponential", "initial": "100ms", "multiplier": 2,
             "max_interval": "20s", "jitter": "none"}}},
         "repeat": "always"})"},
    {"aws-simpledb", "Amazon SimpleDB developer guide: up to 100 ms * 4^n", "",
     R"({"max_attempts": 6,
         "backoff": {"initial": "400ms", "multiplier": 4},
         "retry_on": {"throttle_statuses": []},
         "repeat": "always"})"},
    {"google-http-client",
     "google-http-java-client: 0.5 s * 1.5^n, half more or less, for 15 minutes", "",
     R"({"max_attempts": "unlimited", "max_elapsed_time": "15m",
         "elapsed_rule": "before_wait",
         "backoff": {"initial": "500ms", "multiplier": 1.5, "max_interval": "60s",
             "jitter": "proportional", "randomization": 0.5},
         "retry_on": {"throttle_statuses": []},
         "repeat": "always"})"},
    {"google-http-client-1.15",
     "google-http-java-client 1.15: the same for 500 and 503, 10 attempts", "google-http-client",
     R"({"max_attempts": 10, "max_elapsed_time": "none", "elapsed_rule": "include_wait",
         "retry_on": {"statuses": [500, 503]}})"},
    {"google-drive", "Google Drive: 1, 2, 4, ... s and up to a second more, 64 s at most", "",
     R"({"max_attempts": 6,
         "backoff": {"initial": "1s", "max_interval": "64s", "jitter": "additive", "add": "1s",
             "cap": "after"},
         "retry_on": {"error_codes": ["google"]},
         "repeat": "always"})"},
    {"google-drive-1", "the older Drive page: 1, 2, 4, ... ms and up to a second more, for 403", "",
     R"({"max_attempts": 6,
         "backoff": {"initial": "1ms", "jitter": "additive", "add": "1s"},
         "retry_on": {"statuses": [403], "throttle_statuses": [],
             "error_codes": [{"status": [403], "json": "/error/errors/*/reason",
             "as": "permanent", "in": ["dailyLimitExceeded", "insufficientPermissions",
             "domainPolicy", "authError"]}]},
         "repeat": "always"})"},
};

}  // namespace
}  // namespace policy_file

std::span<const Preset> presets() {
  using namespace policy_file;
  static const auto* const list = [] {
    // `standard` has the numbers of a default-constructed RetryPolicy.
    const RetryPolicy standard;
    std::map<std::string_view, OrderedJson> made{{"", OrderedJson::parse(kBase)}};
    static auto* const texts = new std::deque<std::string>;  // lives as long as the program
    auto* const all = new std::vector<Preset>;
    const auto add = [&](std::string_view name, std::string_view description,
                         const OrderedJson& json) {
      all->push_back({name, description, texts->emplace_back(json_text(json, 1))});
    };
    add("standard",
        "the default: equal jitter, five attempts within a minute, a retry budget per host",
        write_object(kPolicy, &standard));
    for (const auto& [name, description, below, patch] : kPatches) {
      auto& json = made[name] = made.at(below);
      json.merge_patch(OrderedJson::parse(patch));
      auto stated = OrderedJson::object();
      stated.merge_patch(json);  // leaves out null
      add(name, description, stated);
    }
    return all;
  }();
  return *list;
}

const Preset* find_preset(std::string_view name) {
  const auto all = presets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Preset& preset) { return preset.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace httpretry
