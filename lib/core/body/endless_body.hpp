// EndlessBody: marks a request for an event stream, in the request's context.
#pragma once

namespace httpretry {

// The policy's stall_timeout does not apply to the body of the response. Once the response has
// begun, `retry` does not send the request again; the caller does, with a different Last-Event-ID.
struct EndlessBody {};

}  // namespace httpretry
