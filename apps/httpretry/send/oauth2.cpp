#include "send/oauth2.hpp"

#include "cli/input.hpp"
#include "send/data.hpp"

#include <httpretry/oauth2/oauth2.hpp>

namespace httpretry::cli {

std::vector<Flag> oauth2_flags(std::string& file) {
  return {{'\0', "oauth2", "FILE",
           "fetch an access token with the OAuth 2.0 client credentials in FILE, renew it in time, "
           "and send it in the Authorization header; FILE is JSON with \"token_url\", \"id\", "
           "\"secret\" and, if needed, \"scope\", \"parameters\", \"origins\" and "
           "\"authentication\": \"body\"",
           store(file)}};
}

MakeTokens read_oauth2(const std::string& file, bool has_login, int cancel) {
  if (file.empty()) return nullptr;
  if (has_login) throw UsageError("--oauth2 cannot be combined with -u or --oauth2-bearer");
  auto credentials = parse_oauth2_client_credentials(read_named(file, kMaxTextFile, cancel), file);
  if (!credentials) {
    throw UsageError("option --oauth2: the file has errors:\n" + credentials.error().message);
  }
  return [credentials = *std::move(credentials)](ClientOptions token_client) {
    return oauth2_client_credentials(credentials, std::move(token_client));
  };
}

}  // namespace httpretry::cli
