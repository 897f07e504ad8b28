// Bytes as text: base64, and whether bytes are UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

// Returns the bytes that a base64 text stands for, or nullopt if it is not base64.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);
bool is_utf8(std::string_view text);

}  // namespace httpretry
