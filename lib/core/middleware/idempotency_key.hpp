#pragma once

#include <httpretry/http/request.hpp>

#include <string>

namespace httpretry {

// The idempotency key that `retry` last sent because a policy asks for one, in the context of the
// call. If the same request comes to `retry` again, resent or redirected, it gets the same key.
struct SentKey {
  Request request;
  std::string value;
  std::string header;       // the header in which the request brought the key; empty if generated
  bool redirected = false;  // the next request with this method is the same one
};

}  // namespace httpretry
