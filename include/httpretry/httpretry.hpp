// All of the library but the test kit (testing.hpp, fault_server.hpp).
#pragma once

#include <httpretry/attempt.hpp>
#include <httpretry/backoff.hpp>
#include <httpretry/body.hpp>
#include <httpretry/budget.hpp>
#include <httpretry/builtin.hpp>
#include <httpretry/call.hpp>
#include <httpretry/classify.hpp>
#include <httpretry/client.hpp>
#include <httpretry/error.hpp>
#include <httpretry/event.hpp>
#include <httpretry/headers.hpp>
#include <httpretry/middleware.hpp>
#include <httpretry/policy_set.hpp>
#include <httpretry/request.hpp>
#include <httpretry/response.hpp>
#include <httpretry/result.hpp>
#include <httpretry/retry.hpp>
#include <httpretry/retry_call.hpp>
#include <httpretry/retry_policy.hpp>
#include <httpretry/scheduler.hpp>
#include <httpretry/server_delay.hpp>
#include <httpretry/task.hpp>
#include <httpretry/time.hpp>
#include <httpretry/transport.hpp>
#include <httpretry/url.hpp>
