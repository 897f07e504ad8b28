// The values of -d and similar flags, read as curl does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace httpretry::cli {

// Return the data for a value. `cancel` is that of read_whole.
std::string data_text(const std::string& value, int cancel);     // -d: @FILE without CR, LF and NUL
std::string data_bytes(const std::string& value, int cancel);    // --data-binary, --json, -w
std::string data_encoded(const std::string& value, int cancel);  // --data-urlencode
std::string data_raw(const std::string& value, int cancel);      // --data-raw: never a file
std::string query_item(const std::string& value, int cancel);    // --url-query

// One of the flags that together form the data of a request. It is read when all options are known,
// because it may name a pipe, and -m limits the wait for that.
struct DataItem {
  std::string value;
  std::string (*read)(const std::string& value, int cancel);
  bool separated = true;  // from the items before it, by "&"
};
// Reads and joins the items.
std::string read_items(const std::vector<DataItem>& items, int cancel);

// Reads like read_whole, but its ReadError names the file.
std::string read_named(const std::string& path, std::size_t most, int cancel = -1);

}  // namespace httpretry::cli
