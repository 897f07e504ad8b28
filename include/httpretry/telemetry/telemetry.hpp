// Metrics, traces, JSON logs and HTTP archives: observers for ClientOptions::observers. Link
// httpretry::telemetry. httpretry.hpp does not include them. A client without them pays nothing.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/telemetry/har.hpp>
#include <httpretry/telemetry/json_log.hpp>
#include <httpretry/telemetry/metrics.hpp>
#include <httpretry/telemetry/otlp.hpp>
#include <httpretry/telemetry/trace_context.hpp>
#include <httpretry/telemetry/traces.hpp>
