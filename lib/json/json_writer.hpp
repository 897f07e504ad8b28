// JsonWriter: appends JSON to a text, value by value, without a tree. For what is written very
// often, such as reports.
#pragma once

#include <httpretry/export.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace httpretry {

class HTTPRETRY_API JsonWriter {
 public:
  // How the text looks; what it says is the same.
  enum class Layout : std::uint8_t {
    Line,    // on one line, without blanks
    Spaced,  // a member or an item a line, indented by two blanks, as OrderedJson::dump(2)
  };
  explicit JsonWriter(std::string& out, Layout layout = Layout::Line)
      : out_(out), spaced_(layout == Layout::Spaced) {}

  // A value, an item of an array, or the value after `key`.
  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void null() { literal("null"); }
  void value(bool truth) { literal(truth ? "true" : "false"); }
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) void value(Number number) {
    literal(std::to_string(number));
  }
  // NaN and infinity become null: JSON has no such numbers.
  void value(double number);
  // Bytes that are not UTF-8 become U+FFFD. Control characters are escaped, also those that JSON
  // allows: terminals obey them.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  // JSON that is written already.
  void raw(std::string_view json) { literal(json); }

  // The next member of an object. The name needs no escapes.
  JsonWriter& key(std::string_view name);
  template <class T>
  void member(std::string_view name, const T& its) {
    key(name).value(its);
  }
  void null_member(std::string_view name) { key(name).null(); }

 private:
  void begin(char bracket);
  void end(char bracket);
  void literal(std::string_view text);
  void separate();  // before a value or a key
  void new_line();

  std::string& out_;
  bool spaced_;
  int depth_ = 0;
  bool first_ = true;  // in this object or array
  bool after_key_ = false;
};

// The text in quotes, as JsonWriter writes it.
HTTPRETRY_API void append_json_string(std::string& out, std::string_view text);

}  // namespace httpretry
