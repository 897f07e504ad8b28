#include "lib/retry/presets.hpp"

namespace httpretry::policy {
namespace {

// The algorithms of articles, manuals and standards.
constexpr Preset kPresets[] = {
    {"constant", "a second between attempts",
     R"({
  "max_attempts": 3,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": { "kind": "constant", "interval": "1s" },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["aws", "google", "github", "openai", "stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"exponential", "1, 2, 4, ... seconds up to 10, without jitter",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "10s",
    "jitter": "none"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["aws", "google", "github", "openai", "stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"full-jitter", "anything between nothing and 1, 2, 4, ... seconds up to 10",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "10s",
    "jitter": "full"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["aws", "google", "github", "openai", "stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"equal-jitter", "half of 1, 2, 4, ... seconds up to 10, and anything up to the other half",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "10s",
    "jitter": "equal"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["aws", "google", "github", "openai", "stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"decorrelated-jitter", "between a second and three times the wait before, up to 10 s",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": { "kind": "decorrelated", "initial": "1s", "multiplier": 3, "max_interval": "10s" },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["aws", "google", "github", "openai", "stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"truncated-binary", "anything up to 19.5 ms, doubled until the tenth wait: up to 10 s",
     R"({
  "max_attempts": "unlimited",
  "max_elapsed_time": "15m",
  "elapsed_rule": "include_wait",
  "backoff": { "kind": "truncated_binary", "max_interval": "10s", "steps": 10 },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["aws", "google", "github", "openai", "stripe"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"csma-cd", "Ethernet (IEEE 802.3): 0 to 2^n - 1 slots of 51.2 us, 16 attempts",
     R"({
  "max_attempts": 16,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": { "kind": "slots", "slot": "51.2us", "truncate": 10, "abort": 16 },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["4xx", "5xx"],
    "throttle_statuses": [429],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "safe",
  "budget": "none"
})"},
    {"aws-general",
     "AWS General Reference, Error Retries: 100 ms doubled, no jitter; 202 is polled",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "100ms", "multiplier": 2, "max_interval": "20s",
    "jitter": "none"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["aws"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"],
    "pending": {
      "statuses": [202], "max": 6,
      "backoff": {
        "kind": "exponential", "initial": "100ms", "multiplier": 2, "max_interval": "20s",
        "jitter": "none"
      }
    }
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"aws-simpledb", "Amazon SimpleDB developer guide: up to 100 ms * 4^n",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "400ms", "multiplier": 4,
    "jitter": "full"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"google-http-client",
     "google-http-java-client: 0.5 s * 1.5^n, half more or less, for 15 minutes",
     R"({
  "max_attempts": "unlimited",
  "max_elapsed_time": "15m",
  "elapsed_rule": "before_wait",
  "backoff": {
    "kind": "exponential", "initial": "500ms", "multiplier": 1.5, "max_interval": "60s",
    "jitter": "proportional", "randomization": 0.5
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"google-http-client-1.15",
     "google-http-java-client 1.15: the same for 500 and 503, 10 attempts",
     R"({
  "max_attempts": 10,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "500ms", "multiplier": 1.5, "max_interval": "60s",
    "jitter": "proportional", "randomization": 0.5
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [500, 503],
    "throttle_statuses": [],
    "error_codes": [],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"google-drive", "Google Drive: 1, 2, 4, ... s and up to a second more, 64 s at most",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1s", "multiplier": 2, "max_interval": "64s",
    "jitter": "additive", "add": "1s", "cap": "after"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": ["5xx"],
    "throttle_statuses": [429],
    "error_codes": ["google"],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
    {"google-drive-1", "the older Drive page: 1, 2, 4, ... ms and up to a second more, for 403",
     R"({
  "max_attempts": 6,
  "max_elapsed_time": "none",
  "elapsed_rule": "include_wait",
  "backoff": {
    "kind": "exponential", "initial": "1ms", "multiplier": 2,
    "jitter": "additive", "add": "1s"
  },
  "throttle_backoff": "none",
  "retry_on": {
    "statuses": [403],
    "throttle_statuses": [],
    "error_codes": [
      { "status": [403], "json": "/error/errors/*/reason", "as": "permanent",
        "in": ["dailyLimitExceeded", "insufficientPermissions", "domainPolicy", "authError"] }],
    "transport": ["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"]
  },
  "repeat": "always",
  "budget": "none"
})"},
};

}  // namespace

std::span<const Preset> textbook_presets() { return kPresets; }

}  // namespace httpretry::policy
