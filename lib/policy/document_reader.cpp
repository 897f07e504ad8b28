// The reader of lib/policy/document.hpp: nlohmann's gives no positions.
#include "lib/http/text.hpp"
#include "lib/policy/document.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace httpretry::policy_file {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Reader {
 public:
  Reader(std::string_view text, Document& document, Report& report)
      : text_(text), document_(document), report_(report) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = line_start_ = 3;  // a byte order mark
  }

  void run() {
    skip_space();
    const auto* const root = value(nullptr, 1);
    if (root == nullptr) return;
    skip_space();
    if (at_ < text_.size()) problem("trailing content: the file holds one JSON value");
    document_.root = root;
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] Place place() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }
  void problem(std::string message) { problem(place(), std::move(message)); }
  void problem(Place where, std::string message) {
    report_.error(where, inside_, std::move(message));
  }
  std::nullptr_t expected(std::string_view what) {
    std::string found = "the text ends";
    if (at_ < text_.size()) {
      const auto rest = text_.substr(at_);
      const auto length = std::max<std::size_t>(character_length(rest), 1);
      found = character_length(rest) == 0 ? "there is a byte that is no UTF-8"
                                          : "there is " + quoted(rest.substr(0, length));
    }
    problem("expected " + std::string(what) + ", but " + found);
    return nullptr;
  }

  void new_line() {
    ++line_;
    line_start_ = at_;
  }
  void skip_space() {
    for (;;) {
      const auto c = peek();
      if (c == '\n') {
        ++at_;
        new_line();
      } else if (at_ < text_.size() && (c == ' ' || c == '\t' || c == '\r')) {
        ++at_;
      } else if (!skip_comment()) {
        return;
      }
    }
  }
  bool skip_comment() {
    const auto start = text_.substr(at_, 2);
    const auto block = start == "/*";
    if (!block && start != "//" && peek() != '#') return false;
    problem("JSON has no comments");
    const auto end = block ? text_.find("*/", at_ + 2) : text_.find('\n', at_);
    const auto stop = end == std::string_view::npos ? text_.size() : end + (block ? 2 : 0);
    while (at_ < stop) {
      if (text_[at_++] == '\n') new_line();
    }
    return true;
  }

  Json* add(Json::Type type, Place where, const Json* parent) {
    if (document_.size() >= kMostValues) {
      problem("the file holds more than " + std::to_string(kMostValues) + " values");
      return nullptr;
    }
    auto* const json = &document_.add(type, parent);
    json->place = where;
    json->key = std::exchange(next_key_, {});
    json->key_place = next_key_place_;
    return json;
  }

  Json* value(const Json* parent, std::size_t depth) {
    const auto where = place();
    const auto c = peek();
    if (c == '{' || c == '[') return container(parent, depth, c == '{');
    if (c == '"') {
      const auto text = string();
      auto* const json = text ? add(Json::Type::String, where, parent) : nullptr;
      if (json != nullptr) json->text = *text;
      return json;
    }
    if (c == '-' || is_digit(c)) return number(parent);
    if (is_letter(c)) return word(parent);
    if (c == '\'') return expected("a string in double quotes");
    return expected("a value");
  }

  Json* word(const Json* parent) {
    const auto where = place();
    auto length = std::size_t{0};
    while (is_letter(at_ + length < text_.size() ? text_[at_ + length] : '\0')) ++length;
    const auto name = text_.substr(at_, length);
    if (name != "null" && name != "true" && name != "false") {
      problem("\"" + one_line(name) + "\" is no JSON value: a word stands in double quotes");
      return nullptr;
    }
    at_ += length;
    auto* const json = add(name == "null" ? Json::Type::Null : Json::Type::Boolean, where, parent);
    if (json != nullptr) json->boolean = name == "true";
    return json;
  }

  bool digits() {
    const auto start = at_;
    while (is_digit(peek())) ++at_;
    return at_ > start;
  }
  Json* number(const Json* parent) {
    const auto where = place();
    const auto start = at_;
    if (peek() == '-') ++at_;
    const auto first = at_;
    auto good = digits() && (text_[first] != '0' || at_ - first == 1);
    if (good && peek() == '.') good = (++at_, digits());
    if (good && (peek() == 'e' || peek() == 'E')) {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      good = digits();
    }
    if (!good || is_letter(peek())) {
      problem(where, "this is no JSON number");
      return nullptr;
    }
    auto* const json = add(Json::Type::Number, where, parent);
    if (json != nullptr) json->text = text_.substr(start, at_ - start);
    return json;
  }

  Json* container(const Json* parent, std::size_t depth, bool object) {
    auto* const json = add(object ? Json::Type::Object : Json::Type::Array, place(), parent);
    if (json == nullptr) return nullptr;
    if (depth > kDeepest) {
      problem("nested deeper than " + std::to_string(kDeepest));
      return nullptr;
    }
    inside_ = json;
    ++at_;
    const auto close = object ? '}' : ']';
    for (auto first = true;; first = false) {
      skip_space();
      if (peek() == close && !first) problem("there is a comma before this");
      if (peek() == close) break;
      if (!(object ? member(*json, depth) : element(*json, depth))) return nullptr;
      skip_space();
      if (peek() == close) break;
      if (peek() != ',') return expected(object ? "\",\" or \"}\"" : "\",\" or \"]\"");
      ++at_;
    }
    ++at_;
    if (object) refuse_twins(*json);
    inside_ = parent;
    return json;
  }
  bool element(Json& array, std::size_t depth) {
    auto* const json = value(&array, depth + 1);
    if (json != nullptr) array.children.push_back(json);
    return json != nullptr;
  }
  bool member(Json& object, std::size_t depth) {
    const auto where = place();
    if (peek() != '"') return expected("a key in double quotes"), false;
    const auto name = string();
    if (!name) return false;
    skip_space();
    if (peek() != ':') return expected("\":\""), false;
    ++at_;
    skip_space();
    next_key_ = *name;
    next_key_place_ = where;
    const auto* const json = value(&object, depth + 1);
    if (json != nullptr) object.children.push_back(json);
    return json != nullptr;
  }
  void refuse_twins(const Json& object) {
    auto sorted = object.children;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Json* a, const Json* b) { return a->key < b->key; });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->key != sorted[i - 1]->key) continue;
      const auto before = sorted[i - 1]->key_place;
      report_.error_at_key(*sorted[i], "duplicate key; it stands at line " +
                                           std::to_string(before.line) + ", column " +
                                           std::to_string(before.column) + " too");
    }
  }

  // The text of the string that begins here; empty where it does not end well.
  std::optional<std::string_view> string() {
    const auto start = ++at_;
    std::optional<std::string> copy;  // once there is an escape
    auto valid = true;
    for (;;) {
      const auto c = peek();
      if (at_ >= text_.size() || c == '\n') return problem("the string has no end"), std::nullopt;
      if (c == '"') break;
      if (c == '\\') {
        if (!copy) copy.emplace(text_.substr(start, at_ - start));
        if (!escape(*copy)) return std::nullopt;
        continue;
      }
      const auto length = character_length(text_.substr(at_));
      const auto control = static_cast<unsigned char>(c) < 0x20;
      if (valid && (length == 0 || control)) {
        problem(control ? "a control character in a string is written as an escape"
                        : "invalid UTF-8");
        valid = false;
      }
      const auto step = std::max<std::size_t>(length, 1);
      if (copy) copy->append(text_.substr(at_, step));
      at_ += step;
    }
    const auto plain = text_.substr(start, at_ - start);
    ++at_;
    return copy ? document_.keep(std::move(*copy)) : plain;
  }
  bool escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const auto where = place();
    ++at_;
    const auto c = peek();
    ++at_;
    if (const auto known = kNames.find(c); known != std::string_view::npos) {
      out += kMeanings[known];
      return true;
    }
    auto code = c == 'u' ? hex4() : std::nullopt;
    if (code && *code >= 0xD800 && *code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const auto low = hex4();
      code = low && *low >= 0xDC00 && *low < 0xE000
                 ? std::optional(0x10000 + ((*code - 0xD800) << 10U) + (*low - 0xDC00))
                 : std::nullopt;
    }
    if (!code || (*code >= 0xD800 && *code < 0xE000)) {
      return problem(where, "this is no escape of JSON"), false;
    }
    append_utf8(out, *code);
    return true;
  }
  std::optional<unsigned> hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const auto c = peek();
      const auto lower = static_cast<char>(c | 0x20);
      if (!is_digit(c) && (lower < 'a' || lower > 'f')) return std::nullopt;
      code = code * 16 + static_cast<unsigned>(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    return code;
  }

  std::string_view text_;
  Document& document_;
  Report& report_;
  const Json* inside_ = nullptr;  // the object or array that is being read
  std::string_view next_key_;     // of the value that comes next
  Place next_key_place_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

void read(std::string_view text, Document& document, Report& report) {
  if (text.size() > kLongestText) {
    report.error({1, 1}, nullptr,
                 "the file is longer than " + std::to_string(kLongestText >> 20U) + " MiB");
    return;
  }
  // One copy of the text, so that numbers can point into it.
  Reader(document.keep(std::string(text)), document, report).run();
}

}  // namespace httpretry::policy_file
