#include "form.hpp"

#include "args.hpp"
#include "data.hpp"
#include "input.hpp"

#include <array>

namespace httpretry::cli {
namespace {

constexpr std::array<std::string_view, 2> kAttributes{";type=", ";filename="};

std::size_t next_attribute(const std::string& text, std::size_t from) {
  auto first = text.size();
  for (const auto attribute : kAttributes) first = std::min(first, text.find(attribute, from));
  return first;
}

// What stands between quotes, with \" and \\ in it; else as it is. `text` loses it.
std::string take(std::string& text) {
  std::string taken;
  std::size_t at = 0;
  if (!text.starts_with('"')) {
    at = next_attribute(text, 0);
    taken = text.substr(0, at);
  } else {
    for (at = 1; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      taken += text[at];
    }
    at = std::min(at + 1, text.size());
  }
  text.erase(0, at);
  return taken;
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

UsageError not_an_attribute(const std::string& text, const std::string& whole) {
  return UsageError("option -F: \"" + whole + "\" has \"" + text +
                    "\" where only ;type= and ;filename= can stand");
}

void apply_attributes(FormPart& part, std::string& text, const std::string& whole) {
  while (!text.empty()) {
    const bool type = text.starts_with(kAttributes[0]);
    const bool name = text.starts_with(kAttributes[1]);
    if (!type && !name) {
      throw not_an_attribute(text, whole);
    }
    text.erase(0, kAttributes[type ? 0 : 1].size());
    (type ? part.content_type : part.file_name) = take(text);
  }
}

}  // namespace

FormPart form_part(const std::string& value, int give_up) {
  const auto equals = value.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("option -F: \"" + value + "\" is not NAME=CONTENT");
  }
  FormPart part;
  part.name = value.substr(0, equals);
  auto text = value.substr(equals + 1);
  const bool file = text.starts_with('@');
  const bool content = text.starts_with('<');
  if (file || content) text.erase(0, 1);
  const auto what = take(text);
  part.body = file ? upload_body(what, give_up) : Body(content ? read_named(what) : what);
  if (file) part.file_name = file_name(what);
  apply_attributes(part, text, value);
  return part;
}

}  // namespace httpretry::cli
