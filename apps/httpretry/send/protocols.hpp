// --proto and --proto-redir: the protocols that requests may use.
#pragma once

#include <httpretry/chain/middleware.hpp>

#include <string>

namespace httpretry::cli {

struct Protocols {
  bool http = true;
  bool https = true;
  [[nodiscard]] bool all() const { return http && https; }
};

// Applies a list in curl's syntax to `now`: "=https" allows only these, "-http" forbids, "+https"
// or "https" allows, and "all" means every protocol. curl's other protocols are ignored. Throws
// UsageError.
Protocols parse_protocols(const std::string& text, const std::string& option, Protocols now);

// Ends a request with another protocol before it is sent, with curl's error 1. Must be between
// `redirect` and `retry` in the chain.
MiddlewarePtr only_protocols(Protocols of_urls, Protocols of_redirects);

}  // namespace httpretry::cli
