#include "credentials.hpp"

#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/http/url.hpp>

namespace httpretry {

OAuth2ClientCredentials::OAuth2ClientCredentials(std::string url, std::string client_id,
                                                 std::string client_secret, std::string scopes)
    : token_url(std::move(url)),
      id(std::move(client_id)),
      secret(std::move(client_secret)),
      scope(std::move(scopes)) {}

// Returns the first member that cannot be used, and why, or nullopt if the credentials are usable.
// Never shows the value of a member, which may be a secret.
std::optional<oauth2::CredentialsProblem> oauth2::find_problem(
    const OAuth2ClientCredentials& credentials) {
  const auto url = Url::parse(credentials.token_url);
  if (!url) return CredentialsProblem{"token_url", "is " + url.error().message};
  if (url->has_userinfo()) {
    return CredentialsProblem{"token_url", "has a name or a password; use \"id\" and \"secret\""};
  }
  if (credentials.id.empty()) return CredentialsProblem{"id", "is empty"};
  if (credentials.secret.empty()) return CredentialsProblem{"secret", "is empty"};
  for (const auto& origin : credentials.origins) {
    const auto parsed = Url::parse(origin);
    if (parsed && parsed->is_origin()) continue;
    return CredentialsProblem{"origins", "has an entry that is not like https://api.example.com"};
  }
  return std::nullopt;
}

namespace {

using namespace policy_file;
using JsonType = JsonNode::Type;
using Parameters = std::vector<std::pair<std::string, std::string>>;

// Unlike the types of a policy file, these do not show a wrong value, which may be a secret.
bool parse_text(const JsonNode& json, std::string& text, Problems& problems) {
  text = json.text;
  return json.is(JsonType::String) || refuse(json, problems, "expected a string");
}

// Parses an object of strings. Returns false, after reporting problems, if any value is not one.
bool parse_parameters(const JsonNode& json, Parameters& parameters, Problems& problems) {
  if (!json.is(JsonType::Object)) return refuse(json, problems, "expected an object of strings");
  bool good = true;
  for (const auto* const each : json.children) {
    auto& [name, value] = parameters.emplace_back(each->key, std::string());
    good = parse_text(*each, value, problems) && good;
  }
  return good;
}

// Parses an array of strings. Only find_problem() checks whether each of them is an origin. An
// empty array is refused: it looks as if no origin may receive the token, but would allow all of
// them.
bool parse_origins(const JsonNode& json, std::vector<std::string>& origins, Problems& problems) {
  if (json.is(JsonType::Array) && json.children.empty()) {
    return refuse(json, problems, "it is empty; leave it out to allow every origin");
  }
  return read_items(json, "an array of strings", problems, [&](const JsonNode& item) {
    return parse_text(item, origins.emplace_back(), problems);
  });
}

constexpr Custom<std::vector<std::string>> kOrigins(parse_origins);
constexpr Custom<std::string> kSecretText(parse_text);
constexpr Custom<Parameters> kParameters(parse_parameters);
// In the order of the enum.
constexpr std::string_view kAuthentications[] = {"basic", "body"};
constexpr Word<OAuth2ClientCredentials::Authentication> kAuthentication{Words(kAuthentications)};

constexpr Key kKeys[] = {
    key<&OAuth2ClientCredentials::token_url>("token_url", kSecretText).needed().not_null(),
    key<&OAuth2ClientCredentials::id>("id", kSecretText).needed().not_null(),
    key<&OAuth2ClientCredentials::secret>("secret", kSecretText).needed().not_null(),
    key<&OAuth2ClientCredentials::scope>("scope", kSecretText),
    key<&OAuth2ClientCredentials::authentication>("authentication", kAuthentication),
    key<&OAuth2ClientCredentials::parameters>("parameters", kParameters),
    key<&OAuth2ClientCredentials::origins>("origins", kOrigins),
};
constexpr Shape kShape{.name = "credentials", .keys = kKeys};

}  // namespace

// Reads credentials from a JSON object. The error has a line for each problem, with its position in
// `file_name`, but without values, which may be secrets.
Result<OAuth2ClientCredentials> parse_oauth2_client_credentials(std::string_view json,
                                                                std::string file_name) {
  Problems problems(std::move(file_name));
  JsonTree tree;
  read_json(json, tree, problems);  // tree.root stays null if the text is not valid JSON
  OAuth2ClientCredentials credentials;
  if (tree.root != nullptr) read_object(*tree.root, kShape, &credentials, "an object", problems);
  if (!problems.failed()) {
    const auto problem = oauth2::find_problem(credentials);
    if (!problem) return credentials;
    problems.error(*tree.root->member(problem->member), "it " + problem->why);
  }
  auto found = problems.take();
  if (tree.root == nullptr) {
    // The messages of read_json() show a part of the text, which may have the secret.
    for (auto& problem : found) problem.message = "this is not valid JSON";
  }
  return Error(Errc::InvalidRequest, error_lines(found));
}

}  // namespace httpretry
