#include "lib/json/json_writer.hpp"

#include "lib/http/text.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace httpretry {
namespace {

// 1: stands for itself in a JSON string and on a terminal.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (int byte = 0x20; byte < 0x7F; ++byte) plain[static_cast<std::size_t>(byte)] = true;
  plain['"'] = plain['\\'] = false;
  return plain;
}();

// What stands behind the backslash of a character with a short escape; 0 for all others.
constexpr auto kShortEscapes = [] {
  std::array<char, 256> letters{};
  letters['"'] = '"';
  letters['\\'] = '\\';
  letters['\b'] = 'b';
  letters['\f'] = 'f';
  letters['\n'] = 'n';
  letters['\r'] = 'r';
  letters['\t'] = 't';
  return letters;
}();

// How many bytes a broken character at the front has: they become one U+FFFD, as nlohmann_json and
// the WHATWG do it.
std::size_t broken_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 1;
  std::size_t length = 1;
  while (length < wanted && length < text.size()) {
    const auto next = static_cast<unsigned char>(text[length]);
    const unsigned least = length > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned most = length > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (next < least || next > most) break;
    ++length;
  }
  return length;
}

// Takes the first character off the front of `text`, which does not stand for itself.
void append_special(std::string& out, std::string_view& text) {
  const auto byte = static_cast<unsigned char>(text.front());
  auto length = character_length(text);
  if (length == 0) {
    out += "\xEF\xBF\xBD";
    length = broken_length(text);
  } else if (length == 1) {
    append_hex(out += "\\u00", byte);
  } else if (byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) {  // C1
    append_hex(out += "\\u00", static_cast<unsigned char>(text[1]));
  } else {
    out += text.substr(0, length);
  }
  text.remove_prefix(length);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  // Most texts need no escapes, and those that do seldom at the front.
  std::size_t plain = 0;
  while (plain < text.size() && kPlain[static_cast<unsigned char>(text[plain])]) ++plain;
  out.append(text.data(), plain);
  text.remove_prefix(plain);
  // In blocks: JSON within JSON has an escape every few bytes.
  std::array<char, 256> block;
  while (!text.empty()) {
    std::size_t size = 0;
    std::size_t read = 0;
    for (; read < text.size() && size + 2 <= block.size(); ++read) {
      const auto byte = static_cast<unsigned char>(text[read]);
      if (!kPlain[byte]) {
        if (kShortEscapes[byte] == 0) break;
        block[size++] = '\\';
        block[size++] = kShortEscapes[byte];
        continue;
      }
      block[size++] = text[read];
    }
    const bool full = size + 2 > block.size();
    out.append(block.data(), size);
    text.remove_prefix(read);
    if (!full && !text.empty()) append_special(out, text);
  }
  out += '"';
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  std::array<char, 40> text{};
  const double size = std::fabs(number);
  // Shortest, but in the usual notation where that is readable.
  const bool fixed = number == 0 || (size >= 1e-4 && size < 1e15);
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, format).ptr;
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  const bool whole = digits.find_first_of(".e") == std::string_view::npos;
  literal(digits);
  if (whole) out_ += ".0";
}

void JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(out_, text);
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  (((out_ += '"') += name) += '"') += spaced_ ? ": " : ":";
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

}  // namespace httpretry
