// Hides the secret parts of a URL.
#pragma once

#include <string>
#include <string_view>

namespace httpretry {

// Replaces a hidden value.
inline constexpr std::string_view kRedacted = "REDACTED";

// Returns a URL or relative reference without its user, its password, and the values in its query
// and fragment whose names `hides` picks. "REDACTED" replaces each. A query that is a single value
// without a name is always hidden, because it may be a secret itself.
[[nodiscard]] std::string redacted(std::string_view reference,
                                   bool (*hides)(std::string_view name));

}  // namespace httpretry
