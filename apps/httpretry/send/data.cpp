#include "send/data.hpp"

#include "cli/input.hpp"

#include <httpretry/http/url.hpp>

#include <algorithm>
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

std::string data_text(const std::string& value) {
  if (!value.starts_with('@')) return value;
  auto text = read_named(value.substr(1), kMaxDataFile);
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  return text;
}

std::string data_bytes(const std::string& value) {
  return value.starts_with('@') ? read_named(value.substr(1), kMaxDataFile) : value;
}

std::string data_encoded(const std::string& value) {
  const auto mark = value.find_first_of("=@");
  if (mark == std::string::npos) return form_encode(value);
  const auto name = value.substr(0, mark);
  const auto content = value.substr(mark + 1);
  const auto encoded =
      form_encode(value[mark] == '@' ? read_named(content, kMaxDataFile) : content);
  return name.empty() ? encoded : name + '=' + encoded;
}

std::string query_item(const std::string& value) {
  return value.starts_with('+') ? value.substr(1) : data_encoded(value);
}

void add_data(std::optional<std::string>& data, const std::string& more) {
  data = data ? *data + '&' + more : more;
}

}  // namespace httpretry::cli
