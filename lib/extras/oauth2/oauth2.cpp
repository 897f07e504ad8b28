#include "credentials.hpp"

#include "lib/core/base/encoding.hpp"
#include "lib/core/base/redacted.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/json/detail/json.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/client/report.hpp>
#include <httpretry/middleware/builtin.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace httpretry {
namespace {

constexpr std::uint64_t kLargestResponse = std::uint64_t{1} << 20U;  // of a token server

// Returns the request by which a program gets an access token with its own credentials, as RFC
// 6749, section 4.4 defines it. `from.authentication` says where the token server expects the id
// and the secret: in the body, or in an Authorization header.
Request token_request(const OAuth2ClientCredentials& from) {
  using Authentication = OAuth2ClientCredentials::Authentication;
  UrlEncoded form;
  form.add("grant_type", "client_credentials");
  if (!from.scope.empty()) form.add("scope", from.scope);
  for (const auto& [name, value] : from.parameters) form.add(name, value);
  if (from.authentication == Authentication::Body) {
    form.add("client_id", from.id).add("client_secret", from.secret);
  }
  auto request = Request::post(from.token_url, form).header("Accept", "application/json");
  auto& options = request.edit_options();
  options.repeatable = true;  // a retry may be sent, because a second token does no harm
  options.max_body = kLargestResponse;
  if (from.authentication == Authentication::Basic) {
    // RFC 6749, section 2.3.1 requires the encoding, which plain Basic authentication does not
    // have.
    options.credentials.emplace(Credentials::Scheme::Basic, percent_encode(from.id),
                                percent_encode(from.secret));
  }
  return request;
}

// Returns the secret as it is, and in the two encodings in which a request has it.
std::vector<std::string> forms_of_secret(const OAuth2ClientCredentials& from) {
  const auto encoded = percent_encode(from.secret);
  return {from.secret, encoded, encode_base64(percent_encode(from.id) + ':' + encoded)};
}

// Returns the lifetime of the token, "expires_in". Some servers send it as a string or a fraction.
// Returns kForever if the response has none: the token is then used until a 401.
Duration lifetime(const Response& response) {
  constexpr double kLongest = 1e9;  // seconds
  const auto value = response.json_at("/expires_in");
  if (!value) return kForever;
  std::optional<std::int64_t> whole;
  if (const auto* number = std::get_if<std::int64_t>(&*value)) whole = *number;
  if (const auto* text = std::get_if<std::string>(&*value)) {
    whole = to_number<std::int64_t>(text->substr(0, text->find('.')));
  }
  const auto* fraction = std::get_if<double>(&*value);
  if (!whole && fraction == nullptr) return kForever;
  const auto seconds = whole ? static_cast<double>(*whole) : *fraction;
  return std::chrono::duration<double>(std::clamp(seconds, 0.0, kLongest));
}

// TokenServer fetches tokens with its own client. Several calls may use it at once.
class TokenServer {
 public:
  TokenServer(const OAuth2ClientCredentials& credentials, ClientOptions options)
      : request_(token_request(credentials)),
        url_(request_.parsed_url()->without_secrets()),
        secrets_(forms_of_secret(credentials)),
        client_(std::move(options)) {}

  // Returns a new token, or an error if none arrives by the deadline of the call.
  Task<Result<BearerToken>> fetch(Call& call) {
    CallOptions options;
    options.stop = call.stop();
    options.deadline = call.deadline();
    Outcome outcome = co_await client_.co_send(request_, options);
    Result<BearerToken> token = token_in(outcome);
    co_return token;
  }

 private:
  // Returns the token in a response of the token server, with its lifetime. Returns an error if
  // there is no response, or if it has no valid bearer token. error() puts the URL of the server
  // before the text.
  [[nodiscard]] Result<BearerToken> token_in(const Outcome& outcome) const {
    if (!outcome) return not_reached(outcome.error());
    const Response& response = *outcome;
    if (!response.is_2xx() || !response.json_text("/error").empty()) return refused(outcome);
    const auto found = response.json_at("/access_token");
    if (!found) return error(Errc::Protocol, found.error().message);
    auto token = response.json_text("/access_token");  // empty if the value is not a string
    if (token.empty()) return error(Errc::Protocol, "its \"access_token\" is not a string");
    if (!valid_header_value(token)) {
      return error(Errc::Protocol, "its \"access_token\" contains a control byte");
    }
    // RFC 6749 requires the type, but some servers leave it out.
    const auto type = response.json_text("/token_type");
    if (!type.empty() && !equal_ignoring_case(type, "Bearer")) {
      return error(Errc::Protocol, "the token has the type \"" + shown(type) + "\", not Bearer");
    }
    return BearerToken(std::move(token), lifetime(response));
  }

  // Returns the error of a call without a response. Leaves out its exchange and its history,
  // because they are not those of the request that needs the token.
  [[nodiscard]] Error not_reached(const Error& from) const {
    const bool names_url = from.message.find(url_) != std::string::npos;
    Error made(from.code, (names_url ? "" : url_ + ": ") + from.message);
    made.curl_code = from.curl_code;
    made.permanent = from.permanent;
    return made;
  }

  // Returns the error for a response without a token, such as "https://login.example.com/token:
  // invalid_client: unknown client (status 401)".
  [[nodiscard]] Error refused(const Outcome& outcome) const {
    const auto status = std::to_string(outcome->status);
    const auto code = outcome->json_text("/error");
    const auto description = outcome->json_text("/error_description");
    auto problem = shown(code) + (description.empty() ? "" : ": ") + shown(description) +
                   " (status " + status + ")";
    if (code.empty()) problem = succeeded(outcome) ? "the status is " + status : describe(outcome);
    auto made = error(Errc::Status, problem);
    made.permanent = outcome->history.stop_reason == Reason::NotRetryable;
    return made;
  }

  [[nodiscard]] Error error(Errc code, const std::string& problem) const {
    return Error(code, url_ + ": " + problem);
  }

  // Returns a text of the server on one line, without the secret.
  [[nodiscard]] std::string shown(std::string text) const {
    for (const auto& secret : secrets_) {
      for (auto at = text.find(secret); at != text.npos;
           at = text.find(secret, at + kRedacted.size())) {
        text.replace(at, secret.size(), kRedacted);
      }
    }
    return one_line(text);
  }

  const Request request_;
  const std::string url_;
  const std::vector<std::string> secrets_;
  Client client_;
};

}  // namespace

MiddlewarePtr oauth2_client_credentials(OAuth2ClientCredentials credentials,
                                        ClientOptions token_client) {
  if (const auto problem = oauth2::find_problem(credentials)) {
    throw std::invalid_argument("OAuth2ClientCredentials::" + std::string(problem->member) + " " +
                                problem->why);
  }
  auto server = std::make_shared<TokenServer>(credentials, std::move(token_client));
  return bearer([server](Call& call) { return server->fetch(call); }, credentials.origins);
}

}  // namespace httpretry
