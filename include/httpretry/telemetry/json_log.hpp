// json_log(): a line of JSON for each send and each call, for collectors of logs.
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
// A URL has neither query nor user and password. `decision` is "retry" or "stop", and null where
// nobody decided after that send: without the middleware retry, or where a middleware below it sent
// again. Other events are "redirect", "shared_state", and of guards "circuit", "pause", "resume",
// "limit" and "refused". `trace_id` is there where the call has a trace. An attempt that ended
// before it was sent has the event "attempt", and the call ends with:
//
//   {"time":…,"event":"call","call":7,"method":"GET","url":…,"endpoint":"items","policy":"careful",
//    "status":200,"error":null,"attempts":2,"stop_reason":"success","elapsed_ms":1312.4,…}
#pragma once

#include <httpretry/chain/observer.hpp>

#include <functional>
#include <memory>
#include <string_view>

namespace httpretry {

// Takes a line without a line break. Called on the threads that drive calls, on several at once: it
// must be quick, and must not throw.
using JsonLineSink = std::function<void(std::string_view line)>;

// An observer. Throws std::invalid_argument without a sink.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<Observer> json_log(JsonLineSink sink);

}  // namespace httpretry
