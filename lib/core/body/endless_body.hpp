// EndlessBody: in the context of a request for an event stream.
#pragma once

namespace httpretry {

// The stall_timeout of the policy does not apply to the body of the response. Once the response has
// begun, `retry` does not send the request again: the caller does, with another Last-Event-ID.
struct EndlessBody {};

}  // namespace httpretry
