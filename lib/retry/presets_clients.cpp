#include "lib/retry/presets.hpp"

namespace httpretry::policy {
namespace {

// What clients do today.
constexpr Preset kPresets[] = {
    {"standard", "the default: full jitter, four attempts within a minute, a retry budget per host",
     R"({
  "max_attempts": 4,
  "max_elapsed_time": "60s",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "100ms", "multiplier": 2, "max_interval": "20s",
    "jitter": "full"
  },
  "throttle_backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "20s",
    "jitter": "full"
  },
  "retry_on": {
    "statuses": ["5xx", "!501", "!505", "!507", "!511", 408, 421, 425],
    "throttle_statuses": [429],
    "error_codes": ["aws", "google", "github", "openai", "stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": {
    "kind": "tokens", "capacity": 500, "retry_cost": 14, "throttle_cost": 5,
    "refill_on_success": 1, "scope": "host"
  },
  "attempt_timeout": "none",
  "connect_timeout": "10s",
  "stall_timeout": "30s",
  "server_delay": {
    "headers": [
      "retry-after", "retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after",
      "x-ratelimit-reset", "ratelimit-reset", "ratelimit", "grpc-retry-pushback-ms"
    ],
    "combine": "max", "max": "1m", "over_max": "stop", "spread": 0
  }
})"},
    {"none", "one attempt",
     R"({
  "max_attempts": 1,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": { "kind": "none" },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [],
    "throttle_statuses": [],
    "error_codes": [],
    "transport": []
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"aws-standard", "AWS SDKs, retry mode standard",
     R"({
  "max_attempts": 3,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "20s",
    "jitter": "full"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [500, 502, 503, 504],
    "throttle_statuses": [429],
    "error_codes": ["aws"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": {
    "kind": "tokens", "capacity": 500, "retry_cost": 5, "timeout_cost": 10,
    "refill_on_success": 1, "scope": "host"
  }
})"},
    {"aws-standard-2026", "AWS SDKs, standard mode of 2026 (DynamoDB: initial 25ms, 4 attempts)",
     R"({
  "max_attempts": 3,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "50ms", "multiplier": 2, "max_interval": "20s",
    "jitter": "full"
  },
  "throttle_backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "20s",
    "jitter": "full"
  },
  "retry_on": {
    "statuses": [500, 502, 503, 504],
    "throttle_statuses": [429],
    "error_codes": ["aws"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": {
    "kind": "tokens", "capacity": 500, "retry_cost": 14, "throttle_cost": 5,
    "refill_on_success": 1, "scope": "host"
  },
  "server_delay": { "headers": ["x-amz-retry-after"], "combine": "max", "max_over_own": "5s" }
})"},
    {"aws-adaptive", "AWS SDKs, retry mode adaptive: standard, and a limit on the rate of sends",
     R"({
  "max_attempts": 3,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "20s",
    "jitter": "full"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [500, 502, 503, 504],
    "throttle_statuses": [429],
    "error_codes": ["aws"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": {
    "kind": "tokens", "capacity": 500, "retry_cost": 5, "timeout_cost": 10,
    "refill_on_success": 1, "scope": "host"
  },
  "adaptive": true
})"},
    {"azure", "Azure SDKs: 0.8 s doubled, times 0.8 to 1.3, up to a minute",
     R"({
  "max_attempts": 4,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "800ms", "multiplier": 2, "max_interval": "60s",
    "jitter": "range", "low": 0.8, "high": 1.3, "cap": "after"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [408, 500, 502, 503, 504],
    "throttle_statuses": [429],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"gcs", "Google Cloud Storage: up to 1, 2, 4, ... 30 s, for 15 minutes",
     R"({
  "max_attempts": "unlimited",
  "max_elapsed_time": "15m",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "30s",
    "jitter": "full"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [408, "5xx"],
    "throttle_statuses": [429],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"grpc", "gRPC (A6): 100 ms doubled up to 1 s, a fifth more or less; its token budget",
     R"({
  "max_attempts": 5,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "100ms", "multiplier": 2, "max_interval": "1s",
    "jitter": "range", "low": 0.8, "high": 1.2
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [502, 503, 504],
    "throttle_statuses": [429],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": { "kind": "grpc", "max_tokens": 10, "token_ratio": 0.1, "scope": "host" }
})"},
    {"envoy", "Envoy: one retry after up to 25 ms, retries at most a fifth of the requests",
     R"({
  "max_attempts": 2,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "25ms", "multiplier": 2, "max_interval": "250ms",
    "jitter": "full"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": { "kind": "ratio", "ratio": 0.2, "scope": "host" }
})"},
    {"github", "GitHub: waits as the server says; without a word, a minute doubled",
     R"({
  "max_attempts": 4,
  "max_elapsed_time": "15m",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "60s",
    "jitter": "full"
  },
  "throttle_backoff": {
    "kind": "exponential", "initial": "60s", "multiplier": 2,
    "jitter": "none"
  },
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["github"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none",
  "server_delay": { "combine": "server", "max": "15m" }
})"},
    {"openai", "OpenAI SDKs: 0.5 s doubled up to 8 s, less up to a quarter",
     R"({
  "max_attempts": 3,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "500ms", "multiplier": 2, "max_interval": "8s",
    "jitter": "range", "low": 0.75, "high": 1
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [408, 409, "5xx"],
    "throttle_statuses": [429],
    "error_codes": ["openai"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"stripe", "Stripe SDKs: 1, 2.5, 5 s, less up to a quarter",
     R"({
  "max_attempts": 3,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2.5, "max_interval": "5s",
    "jitter": "range", "low": 0.75, "high": 1
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [409, "5xx"],
    "throttle_statuses": [],
    "error_codes": ["stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"curl", "curl --retry 3: 1, 2, 4, ... s up to 10 minutes, or what Retry-After says",
     R"({
  "max_attempts": 4,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "10m",
    "jitter": "none"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [408, 500, 502, 503, 504, 522, 524],
    "throttle_statuses": [429],
    "error_codes": [],
    "transport": ["resolve", "timeout"]
  },
  "repeat": "safe",
  "budget": "none",
  "server_delay": { "headers": ["retry-after"], "combine": "server" }
})"},
};

}  // namespace

std::span<const Preset> client_presets() { return kPresets; }

}  // namespace httpretry::policy
