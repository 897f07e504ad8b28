// json_log(): an observer that writes a line of JSON for each send and each call, for log
// collectors.
//
//   {"time":"2026-11-24T05:04:48.250Z","event":"send","call":7,"exchange":1,"attempt":1,
//    "method":"GET","url":"https://api.example.com/v1/items","peer":"192.0.2.1:443","status":503,
//    "error":null,"http_version":"2","timings_ms":{"queued":0,"resolved":0.2,"connected":12.1,
//    "secured":30.5,"sent":30.7,"first_byte":41.2,"total":41.3},"queued_by":null,
//    "reused_connection":false,"body_sent":0,"body_received":4,"sent":"answered",
//    "class":"transient","rule":"status 503","decision":"retry","wait_ms":731.2,
//    "backoff_ms":731.2,"server_delay_ms":null,"budget_left":495,
//    "trace_id":"0af7651916cd43dd8448eb211c80319c"}
//
// URLs are logged without query, user and password. `decision` is "retry" or "stop", or null if
// there was no decision after that send: without the retry middleware, or if a middleware below it
// sent again. Other events are "redirect", "hedge", "hedge_refused", "shared_state", and from
// guards "circuit", "pause", "resume", "limit", "held_back" and "refused". `trace_id` is present if
// the call has a trace. An attempt that ended before it was sent has the event "attempt". The last
// line of a call is:
//
//   {"time":…,"event":"call","call":7,"method":"GET","url":…,"endpoint":"items","policy":"careful",
//    "status":200,"error":null,"attempts":2,"stop_reason":"success","elapsed_ms":1312.4,…}
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/observer.hpp>

#include <functional>
#include <memory>
#include <string_view>

namespace httpretry {

// Receives a line, without a line break. It runs on the threads that drive calls, and several of
// them may call it at once. It must be quick and must not throw.
using JsonLineSink = std::function<void(std::string_view line)>;

// Returns the observer. Throws std::invalid_argument without a sink.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<Observer> json_log(JsonLineSink sink);

}  // namespace httpretry
