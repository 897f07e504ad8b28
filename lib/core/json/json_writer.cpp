#include "lib/core/json/detail/json.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>

namespace httpretry::detail::json {

// Appends the text as a JSON string, with its quotes. Bytes that are not UTF-8 become U+FFFD. Also
// escapes the control characters that JSON allows, because terminals interpret them: DEL, and the
// C1 characters U+0080 to U+009F, which are the bytes C2 80 to C2 9F in UTF-8.
void append_json_string(std::string& out, std::string_view text) {
  // Most texts need no escapes.
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out.append("\"").append(text).append("\"");
    return;
  }
  // nlohmann's library escapes everything except DEL and the C1 characters.
  const auto dumped = OrderedJson(text).dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                                             OrderedJson::error_handler_t::replace);
  for (std::size_t i = 0; i < dumped.size(); ++i) {
    // The result of `dump` is valid UTF-8, so a second byte follows each C2.
    const bool is_c1 = dumped[i] == '\xC2' && static_cast<unsigned char>(dumped[i + 1]) < 0xA0;
    if (is_c1) ++i;  // skips C2: the second byte is the number of the character
    if (is_c1 || dumped[i] == 0x7F) {
      out += "\\u00";
      append_hex(out, static_cast<unsigned char>(dumped[i]));
    } else {
      out += dumped[i];
    }
  }
}

void JsonWriter::value(double number) { literal(OrderedJson(number).dump()); }

void JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(out_, text);
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  out_.append("\"").append(name).append(spaced_ ? "\": " : "\":");
  after_key_ = true;
  return *this;
}

void JsonWriter::begin(char bracket) {
  separate();
  out_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::end(char bracket) {
  --depth_;
  if (!first_ && spaced_) new_line();
  out_ += bracket;
  first_ = false;
}

void JsonWriter::literal(std::string_view text) {
  separate();
  out_ += text;
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (!first_) out_ += ',';
  first_ = false;
  if (spaced_) new_line();
}

void JsonWriter::new_line() {
  out_ += '\n';
  out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
}

}  // namespace httpretry::detail::json
