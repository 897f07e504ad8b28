// --oauth2: gets access tokens from an OAuth 2.0 server.
#pragma once

#include "cli/args.hpp"

#include <httpretry/client/client_options.hpp>

#include <functional>
#include <string>
#include <vector>

namespace httpretry::cli {

// Returns the middleware that adds tokens to requests. `token_client` has the options of the client
// that fetches them.
using MakeTokens = std::function<MiddlewarePtr(ClientOptions token_client)>;

#ifdef HTTPRETRY_WITH_OAUTH2
// Returns the flag, which sets `file`.
std::vector<Flag> oauth2_flags(std::string& file);

// Reads the credentials in `file`, and returns an empty function if `file` is empty. `has_login` is
// true if another option sets the Authorization header. Throws UsageError and ReadError; `cancel`
// is that of read_whole.
MakeTokens read_oauth2(const std::string& file, bool has_login, int cancel = -1);
#else
// Without httpretry::oauth2 the option does not exist.
inline std::vector<Flag> oauth2_flags(std::string& /*file*/) { return {}; }
inline MakeTokens read_oauth2(const std::string& /*file*/, bool /*has_login*/,
                              int /*cancel*/ = -1) {
  return nullptr;
}
#endif

}  // namespace httpretry::cli
