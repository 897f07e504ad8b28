// What failed where there was no response.
#pragma once

#include <httpretry/http/result.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <optional>

namespace httpretry::policy {

// Empty: something of ours, which says nothing about the server.
std::optional<TransportKind> transport_kind(const Error& error);

}  // namespace httpretry::policy
