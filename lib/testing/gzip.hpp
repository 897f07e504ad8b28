// Compresses to gzip.
#pragma once

#include <string>
#include <string_view>

namespace httpretry::faults {

[[nodiscard]] std::string gzip(std::string_view text);

}  // namespace httpretry::faults
