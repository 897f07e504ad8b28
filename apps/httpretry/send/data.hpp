// The values of -d and its kin, as curl reads them.
#pragma once

#include <optional>
#include <string>

namespace httpretry::cli {

std::string data_text(const std::string& value);     // -d: of a file without CR, LF and NUL
std::string data_bytes(const std::string& value);    // --data-binary, --json: @FILE as it is
std::string data_encoded(const std::string& value);  // --data-urlencode
std::string query_item(const std::string& value);    // --url-query

// Joins with "&", as a form does.
void add_data(std::optional<std::string>& data, const std::string& more);

// A file that a flag names, as read_whole has it; ReadError tells which.
std::string read_named(const std::string& path, int give_up = -1);

}  // namespace httpretry::cli
