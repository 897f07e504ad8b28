// Classifies responses by the rules of retry_on.error_codes and retry_on.pending, and errors by
// what has failed.
#pragma once

#include <httpretry/retry/classify.hpp>

namespace httpretry::policy {

// A response without its body.
struct ResponseHead {
  int status;
  const Headers& headers;
  WallTime wall_now;
};

// Returns what failed if there was no response. Returns nullopt for an error of the library itself,
// such as a cancellation, which says nothing about the server.
std::optional<TransportKind> transport_kind(const Error& error);

// Sets the class, the rule and the server delay of `result`. Returns false if no rule matches.
bool classify_by_codes(const RetryOn& retry_on, const ResponseHead& head, std::string_view text,
                       Classified& result);

// Returns whether the body of a response with this status and these headers must be read before the
// response counts as a success.
bool must_read_body(const RetryOn& retry_on, int status, const Headers& headers);

}  // namespace httpretry::policy
