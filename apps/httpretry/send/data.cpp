#include "send/data.hpp"

#include "cli/input.hpp"

#include <httpretry/http/url.hpp>

#include <string_view>

namespace httpretry::cli {
namespace {

// Form encoding: a space becomes "+".
std::string form_encode(std::string_view text) {
  std::string encoded;
  for (;;) {
    const auto space = text.find(' ');
    encoded += percent_encode(text.substr(0, space));
    if (space == std::string_view::npos) return encoded;
    encoded += '+';
    text.remove_prefix(space + 1);
  }
}

}  // namespace

std::string read_named(const std::string& path, std::size_t most, int cancel) {
  try {
    return read_whole(path, most, cancel);
  } catch (const ReadError& error) {
    throw ReadError("cannot read " + path + ": " + error.what());
  }
}

std::string data_text(const std::string& value, int cancel) {
  if (!value.starts_with('@')) return value;
  auto text = read_named(value.substr(1), kMaxDataFile, cancel);
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  return text;
}

std::string data_bytes(const std::string& value, int cancel) {
  return value.starts_with('@') ? read_named(value.substr(1), kMaxDataFile, cancel) : value;
}

std::string data_raw(const std::string& value, int /*cancel*/) { return value; }

std::string data_encoded(const std::string& value, int cancel) {
  const auto mark = value.find_first_of("=@");
  if (mark == std::string::npos) return form_encode(value);
  const auto name = value.substr(0, mark);
  const auto content = value.substr(mark + 1);
  const auto encoded =
      form_encode(value[mark] == '@' ? read_named(content, kMaxDataFile, cancel) : content);
  return name.empty() ? encoded : name + '=' + encoded;
}

std::string query_item(const std::string& value, int cancel) {
  return value.starts_with('+') ? value.substr(1) : data_encoded(value, cancel);
}

std::string read_items(const std::vector<DataItem>& items, int cancel) {
  std::string data;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && items[i].separated) data += '&';
    data += items[i].read(items[i].value, cancel);
  }
  return data;
}

}  // namespace httpretry::cli
