// Checks credentials from a program or from a file.
#pragma once

#include <httpretry/oauth2/oauth2.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace httpretry::oauth2 {

// A member that cannot be used, and why. The text does not contain its value.
struct CredentialsProblem {
  std::string_view member;
  std::string why;
};

// Returns the first problem, or nullopt if the credentials are usable.
[[nodiscard]] std::optional<CredentialsProblem> find_problem(
    const OAuth2ClientCredentials& credentials);

}  // namespace httpretry::oauth2
