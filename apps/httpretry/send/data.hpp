// The values of -d and similar flags, read as curl does.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace httpretry::cli {

std::string data_text(const std::string& value);     // -d: @FILE without CR, LF and NUL
std::string data_bytes(const std::string& value);    // --data-binary, --json: @FILE unchanged
std::string data_encoded(const std::string& value);  // --data-urlencode
std::string query_item(const std::string& value);    // --url-query

// Appends, with "&" between.
void add_data(std::optional<std::string>& data, const std::string& more);

// Like read_whole, but ReadError names the file.
std::string read_named(const std::string& path, std::size_t most, int cancel = -1);

}  // namespace httpretry::cli
