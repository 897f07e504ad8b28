// Implements read_json with nlohmann's SAX parser. The parser reads from a buffer that knows how
// far it was read. That gives the positions.
#include "lib/core/base/text.hpp"
#include "lib/core/json/detail/json.hpp"

#include <algorithm>
#include <istream>
#include <streambuf>
#include <utility>

namespace httpretry::detail::json {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Reports how far the text has been read.
class TextBuffer final : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    auto* const begin = const_cast<char*>(text.data());  // never written to
    setg(begin, begin, begin + text.size());
  }
  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(gptr() - eback()); }
};

// The functions that the parser calls back. Each adds to the tree, and returns whether the parser
// should continue.
//
// The parser calls back after it has read a token, and for a number one byte more. So the position
// of the buffer is not the beginning of the token. The token begins at the first byte after the
// previous token that is not a space, a comma or a colon.
class TreeReader final : public nlohmann::json_sax<OrderedJson> {
 public:
  TreeReader(std::string_view text, JsonTree& tree, Problems& problems)
      : text_(text),
        buffer_(text),
        tree_(tree),
        problems_(problems),
        max_tree_size_(tree.size() + kMaxJsonNodes) {
    if (text_.starts_with("\xEF\xBB\xBF")) end_ = line_start_ = 3;  // a byte order mark
  }

  // Reads the text. Sets the root of the tree if the text is valid, otherwise adds a problem.
  void run() {
    std::istream stream(&buffer_);
    if (!OrderedJson::sax_parse(stream, this)) return;
    skip(kBlanks);
    // nlohmann's parser treats a NUL byte as the end of the text, so there may be more.
    if (end_ < text_.size()) return syntax_error(end_, "");
    tree_.root = root_;
  }

  bool null() override { return add(Type::Null); }
  bool boolean(bool value) override { return add(Type::Boolean, {}, value); }
  bool number_integer(std::int64_t /*value*/) override { return add(Type::Number); }
  bool number_unsigned(std::uint64_t /*value*/) override { return add(Type::Number); }
  bool number_float(double /*value*/, const std::string& /*text*/) override {
    return add(Type::Number);
  }
  bool string(std::string& value) override {
    return add(Type::String, string_at(token_start(), value));
  }
  bool binary(OrderedJson::binary_t& /*value*/) override { return false; }
  bool key(std::string& name) override {
    const auto start = token_start();
    key_position_ = position(start);
    key_ = string_at(start, name);
    end_ = buffer_.offset();
    after_key_ = true;
    return true;
  }
  bool start_object(std::size_t /*size*/) override { return add(Type::Object); }
  bool start_array(std::size_t /*size*/) override { return add(Type::Array); }
  bool end_object() override {
    refuse_duplicates(*open_.back());
    return end_array();
  }
  bool end_array() override {
    end_ = token_start() + 1;  // behind the brace or bracket
    open_.pop_back();
    return true;
  }

  // Adds a problem for an error of the parser, which has read `count` bytes.
  bool parse_error(std::size_t count, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) {
      JsonNode number;  // only for the message
      number.type = Type::Number;
      number.text = number_at(token_start());
      fail(end_, described(number) + " is out of range: it is too large for a number");
    } else {
      syntax_error(std::max<std::size_t>(count, 1) - 1, error.what());
    }
    return false;
  }

 private:
  using Type = JsonNode::Type;

  [[nodiscard]] Position position(std::size_t offset) const {
    return {line_, static_cast<int>(offset - line_start_) + 1};
  }
  // Adds a problem and returns false, so that the parser stops.
  bool fail(std::size_t offset, std::string message) {
    problems_.error(position(offset), open_.empty() ? "" : pointer_to(*open_.back()),
                    std::move(message));
    return false;
  }

  // Moves `end_` over these characters, and counts lines.
  void skip(std::string_view skipped) {
    for (; end_ < text_.size() && skipped.find(text_[end_]) != skipped.npos; ++end_) {
      if (text_[end_] != '\n') continue;
      ++line_;
      line_start_ = end_ + 1;
    }
  }
  // Moves `end_` to the first byte of the token that the parser has just read, and returns it.
  std::size_t token_start() {
    skip(" \t\r\n,:");
    return end_;
  }
  // Returns the number that begins at `start`, as it is written.
  [[nodiscard]] std::string_view number_at(std::size_t start) const {
    auto end = text_.find_first_not_of("0123456789.eE", start + 1);
    // A sign belongs to the number only behind an "e": "2+0" is a number and a mistake.
    const bool has_exponent_sign = end < text_.size() && (text_[end] == '+' || text_[end] == '-') &&
                                   (text_[end - 1] == 'e' || text_[end - 1] == 'E');
    if (has_exponent_sign) end = text_.find_first_not_of("0123456789", end + 1);
    const auto number = text_.substr(start, end - start);
    // JSON has no leading zeros: the parser reads "01" as two numbers, 0 and 1.
    const auto first_digit = number.find_first_not_of('-');
    const auto next_digit = number.find_first_of("0123456789", first_digit + 1);
    const bool leading_zero = next_digit == first_digit + 1 && number[first_digit] == '0';
    return leading_zero ? number.substr(0, next_digit) : number;
  }
  // Returns the string that begins at `start`, for a node. `value` is the same string unescaped.
  // Without escapes, the result is a part of the text. Otherwise the tree stores `value`. An escape
  // is longer than its character, so the sizes differ.
  std::string_view string_at(std::size_t start, std::string& value) {
    const auto written = text_.substr(start + 1, buffer_.offset() - start - 2);  // without quotes
    return written.size() == value.size() ? written : tree_.keep(std::move(value));
  }

  // Adds a node for the value that the parser has just read, or for the object or array that it has
  // just begun. `string` is the value of a string, in text that the tree owns, and `boolean` that
  // of true or false. Returns true if the parser should continue. Adds a problem and returns false
  // if a limit is exceeded.
  bool add(Type type, std::string_view string = {}, bool boolean = false) {
    const auto start = token_start();
    // Each value is a node. Nodes that the tree had before this file do not count.
    if (tree_.size() >= max_tree_size_) {
      return fail(start,
                  "the file contains more than " + std::to_string(kMaxJsonNodes) + " values");
    }
    auto* const parent = open_.empty() ? nullptr : open_.back();
    auto& node = tree_.add(type, parent);
    node.position = position(start);
    node.boolean = boolean;
    node.text = type == Type::Number ? number_at(start) : string;
    // The next token is searched from `end_` on. The parser has read one byte beyond a number.
    end_ = type == Type::Number ? start + node.text.size() : buffer_.offset();
    // Before the value of a member, the parser has called `key`.
    if (std::exchange(after_key_, false)) {
      node.key = key_;
      node.key_position = key_position_;
    }
    if (parent != nullptr) parent->children.push_back(&node);
    if (root_ == nullptr) root_ = &node;
    if (type != Type::Object && type != Type::Array) return true;
    // The values that follow belong to this object or array, until the parser reports its end.
    if (open_.size() == kMaxJsonDepth) {
      return fail(start, "nested deeper than " + std::to_string(kMaxJsonDepth));
    }
    open_.push_back(&node);
    return true;
  }

  // Adds a problem for each key that is equal to an earlier one.
  void refuse_duplicates(const JsonNode& object) {
    auto sorted = object.children;  // equal keys stay in the order of the text
    std::ranges::stable_sort(sorted, {}, &JsonNode::key);
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->key != sorted[i - 1]->key) continue;
      const auto first = sorted[i - 1]->key_position;
      // Mentions the line only if it differs: a text of one line may be any line of a file.
      const bool same_line = first.line == sorted[i]->key_position.line;
      problems_.error_at_key(*sorted[i],
                             "duplicate key, first defined at " +
                                 (same_line ? "" : "line " + std::to_string(first.line) + ", ") +
                                 "column " + std::to_string(first.column));
    }
  }

  // Skips `c` and the spaces around it. Returns whether there was a `c`.
  bool skip_if_next(char c) {
    skip(kBlanks);
    const bool is_next = end_ < text_.size() && text_[end_] == c;
    if (is_next) ++end_;
    skip(kBlanks);
    return is_next;
  }
  // Returns the token that was expected after the last valid one, as messages name it. Moves `end_`
  // to the unexpected text.
  std::string skip_to_unexpected() {
    if (after_key_) return skip_if_next(':') ? "a value" : "\":\"";
    skip(kBlanks);
    if (open_.empty()) return root_ == nullptr ? "a value" : "the end of the text";
    const auto& container = *open_.back();
    const bool is_object = container.is(Type::Object);
    const bool after_value = !container.children.empty();
    if (after_value && !skip_if_next(',')) return is_object ? R"("," or "}")" : R"("," or "]")";
    return is_object ? "a key in double quotes" : "a value";
  }
  // Adds a problem for a syntax error, with a message that fits the most frequent mistakes. `last`
  // is the offset of the last byte that nlohmann's parser read, and `parser_message` is its own
  // message, which is the best one for a mistake inside a string or number.
  void syntax_error(std::size_t last, std::string_view parser_message) {
    // One of "a value", "a key in double quotes", "the end of the text", or punctuation in quotes.
    const auto expected = skip_to_unexpected();  // moves `end_` to the unexpected text
    const auto rest = text_.substr(end_);
    const auto first = rest.empty() ? '\0' : rest.front();
    const bool expects_value = expected == "a value";
    const bool expects_string = expects_value || expected.starts_with("a key");
    // The first word, for example of a key in YAML or of a unit behind a number.
    const auto word = rest.substr(0, rest.find_first_of(" \t\r\n,:]}\""));
    const bool looks_like_yaml = rest.starts_with("---") || rest.substr(word.size(), 1) == ":";
    if (first == '#' || rest.starts_with("//") || rest.starts_with("/*")) {
      fail(end_, "JSON has no comments");
    } else if (expected == "the end of the text") {
      fail(end_, "trailing content: the file must contain one JSON value");
    } else if (first == '"' && expects_string) {  // inside the string, where the parser stopped
      fail(std::min(last, text_.size()), reason(parser_message));
    } else if (root_ == nullptr && looks_like_yaml) {  // at the beginning of the file
      fail(end_, "this looks like YAML: write JSON, with keys and strings in double quotes");
    } else if (expects_value && (first == '-' || is_digit(first))) {  // inside the number
      fail(end_, reason(parser_message));
    } else if (expects_value && is_letter(first)) {
      const std::string_view value(rest.begin(), std::ranges::find_if_not(rest, is_letter));
      const bool means_number = value == "NaN" || value == "Infinity";
      fail(end_, "\"" + one_line(value) + "\" is not a JSON value: " +
                     (means_number ? "write a number, or \"none\" for no limit"
                                   : "strings need double quotes"));
    } else if (is_unit_after_number(first)) {  // a duration such as 5s: suggests "5s" in quotes
      const auto number = open_.back()->children.back()->text;  // the value before the unit
      fail(end_, "write a string with double quotes, such as \"" +
                     one_line(std::string(number) + std::string(word)) + "\"");
    } else if ((first == '}' || first == ']') && after_comma()) {
      fail(end_, "remove the comma before this");
    } else {
      const auto wanted = first == '\'' ? "a string in double quotes" : expected;
      fail(end_, "expected " + wanted + ", found " + found_text(rest));
    }
  }
  // Returns whether `first`, the first unexpected character, begins a unit: a letter or sign after
  // a number on the same line, as in 5s, 5 s, 20% and 10/s, but not in 0x1.
  [[nodiscard]] bool is_unit_after_number(char first) const {
    if (open_.empty() || open_.back()->children.empty() || after_key_) return false;
    const auto& last = *open_.back()->children.back();
    const bool is_word = (is_letter(first) && first != 'x') || first == '%' || first == '/';
    const auto before = text_.substr(0, end_).find_last_not_of(" \t");
    return is_word && last.is(Type::Number) && before != text_.npos && is_digit(text_[before]);
  }
  [[nodiscard]] bool after_comma() const {
    const auto last = text_.substr(0, end_).find_last_not_of(kBlanks);
    return last != std::string_view::npos && text_[last] == ',';
  }
  // Returns what is there instead, for example "\"x\"".
  static std::string found_text(std::string_view rest) {
    if (rest.empty()) return "the end of the text";
    const auto length = character_length(rest);
    return length == 0 ? "a byte that is not UTF-8" : quoted_text(rest.substr(0, length));
  }
  // Cuts nlohmann's message "[json.exception.parse_error.101] parse error at line 1, column 9:
  // syntax error while parsing value - invalid number; expected digit after '-'; last read: '-x'"
  // to "invalid number; expected digit after '-'".
  static std::string reason(std::string_view message) {
    message = message.substr(std::min(message.size(), message.find(" - ") + 3));
    message = message.substr(0, message.find("; last read"));
    return message.find("UTF-8") == message.npos ? std::string(message) : "invalid UTF-8";
  }

  std::string_view text_;
  TextBuffer buffer_;
  JsonTree& tree_;
  Problems& problems_;
  std::size_t max_tree_size_;
  JsonNode* root_ = nullptr;
  std::vector<JsonNode*> open_;  // the objects and arrays that contain the next token
  std::string_view key_;         // of the next value
  Position key_position_;
  bool after_key_ = false;
  // The end of the last token that was handled; after `token_start`, the start of the next one.
  std::size_t end_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

void read_json(std::string_view text, JsonTree& tree, Problems& problems) {
  if (text.size() > kMaxJsonText) {
    problems.error({1, 1}, "",
                   "the file is longer than " + std::to_string(kMaxJsonText >> 20U) + " MiB");
    return;
  }
  // One copy of the text, so that nodes can refer to it.
  const auto kept = tree.keep(std::string(text));
  TreeReader(kept, tree, problems).run();
}

}  // namespace httpretry::detail::json
