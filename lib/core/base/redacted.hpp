// The parts of a URL that must not be shown.
#pragma once

#include <string>
#include <string_view>

namespace httpretry {

// What stands in place of a value that is not shown.
inline constexpr std::string_view kRedacted = "REDACTED";

// Returns a URL or a relative reference without its user and password, and without the values in
// its query and fragment that `hides` picks by their names. Each becomes "REDACTED". A query that
// is one value without a name is always hidden: it may be a secret itself.
[[nodiscard]] std::string redacted(std::string_view reference,
                                                 bool (*hides)(std::string_view name));

}  // namespace httpretry
