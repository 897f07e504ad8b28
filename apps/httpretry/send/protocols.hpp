// --proto and --proto-redir: which protocols a request may use.
#pragma once

#include <httpretry/chain/middleware.hpp>

#include <string>

namespace httpretry::cli {

struct Protocols {
  bool http = true;
  bool https = true;
  [[nodiscard]] bool all() const { return http && https; }
};

// In curl's syntax, applied to `now`: "=https" allows only these, "-http" forbids, "+https" or
// "https" allows, "all" is every one. Other protocols of curl's are ignored. Throws UsageError.
Protocols parse_protocols(const std::string& text, const std::string& option, Protocols now);

// Ends a request to another protocol before it is sent, with curl's error 1. Must stand between
// `redirect` and `retry` in the chain.
MiddlewarePtr only_protocols(Protocols of_urls, Protocols of_redirects);

}  // namespace httpretry::cli
