// Includes the common headers of the core. Include the other headers of the core (such as
// client/event_loop.hpp, client/event_stream.hpp and flow/when_any.hpp) and those of the extras
// (batch, compression, fleet, oauth2, paging, simulate, spdlog, telemetry, testing) yourself.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/body/awaited_body.hpp>
#include <httpretry/body/sink.hpp>
#include <httpretry/chain/call.hpp>
#include <httpretry/chain/middleware.hpp>
#include <httpretry/chain/observer.hpp>
#include <httpretry/chain/shared.hpp>
#include <httpretry/chain/transport.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/client/report.hpp>
#include <httpretry/curl/cookies.hpp>
#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/flow/start.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/guard/shared_state.hpp>
#include <httpretry/http/attempt.hpp>
#include <httpretry/http/body.hpp>
#include <httpretry/http/context.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/http/result.hpp>
#include <httpretry/http/shown_value.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/http/url.hpp>
#include <httpretry/json/problem.hpp>
#include <httpretry/log/log.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/middleware/retry_call.hpp>
#include <httpretry/policy/endpoint.hpp>
#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_import.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>
#include <httpretry/policy/policy_test.hpp>
#include <httpretry/policy/presets.hpp>
#include <httpretry/retry/backoff.hpp>
#include <httpretry/retry/budget.hpp>
#include <httpretry/retry/classify.hpp>
#include <httpretry/retry/decide.hpp>
#include <httpretry/retry/guard_policy.hpp>
#include <httpretry/retry/retry_policy.hpp>
#include <httpretry/retry/server_delay.hpp>
