// Reading and writing JSON: OrderedJson, a value that is written; JsonWriter, which writes without
// a tree; JsonNode, a value that knows its position in the text that it was read from; and
// Problems, which collects the problems of one file.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/json/problem.hpp>

#include <nlohmann/json.hpp>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// The one kind of JSON value that is written: its members stay in the order they were set in.
using OrderedJson = nlohmann::ordered_json;

// JSON text for people: an object or array that fits into a line is written on one line, except the
// outer `levels`, which always have a line for each member. Bytes that are not UTF-8 are replaced.
HTTPRETRY_API std::string json_text(const OrderedJson& json, int levels);

// Appends JSON to a text, value by value, without a tree. Used for text that is written often, such
// as reports.
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

class Problems;

// Limits for a text that is read. Trees are walked by recursion, so their depth must have a limit.
// The other two are far above any real file. They stop a hostile file from using all memory.
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonText = std::size_t{64} << 20;
inline constexpr std::size_t kMaxJsonNodes = 2'000'000;

struct Position {
  int line = 0;  // from 1; 0: not from a text
  int column = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct HTTPRETRY_API JsonNode {
  enum class Type : std::uint8_t { Null, Boolean, Number, String, Array, Object };

  Type type = Type::Null;
  bool boolean = false;
  // Set when an error was reported here, so that no further error is derived from the value.
  mutable bool bad = false;
  Position position;
  Position key_position;  // of a member of an object
  std::string_view key;   // likewise
  std::string_view text;  // of a string; of a number, as it is spelled
  const JsonNode* parent = nullptr;
  std::vector<const JsonNode*> children;

  [[nodiscard]] bool is(Type other) const { return type == other; }
  // The first member with that name, or nullptr.
  [[nodiscard]] const JsonNode* member(std::string_view name) const;
  // The same, where it is not null.
  [[nodiscard]] const JsonNode* find(std::string_view name) const;
};

// Owns nodes and the texts that they refer to.
class HTTPRETRY_API JsonTree {
 public:
  JsonTree() = default;
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  // A copy of `text` that lives as long as the tree.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  JsonNode& add(JsonNode::Type type, const JsonNode* parent);
  // A copy of `json`, without lines; the columns only count siblings.
  JsonNode& add(const OrderedJson& json, const JsonNode* parent = nullptr);
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  const JsonNode* root = nullptr;

 private:
  std::deque<JsonNode> nodes_;
  std::deque<std::string> texts_;
};

// Reads strict JSON (RFC 8259) into `tree`. The first syntax error, or a value beyond the limits
// above, goes to `problems`, and the root stays nullptr. Duplicate keys only go to `problems`.
HTTPRETRY_API void read_json(std::string_view text, JsonTree& tree, Problems& problems);

// "/policies/careful/max_attempts"; a very long one is cut.
HTTPRETRY_API std::string pointer_to(const JsonNode& json);
// The value as JSON on one line, with its numbers as they were spelled.
HTTPRETRY_API std::string compact(const JsonNode& json);
// As a message quotes it: a string or number shortened and on one line, "an array", "an object".
HTTPRETRY_API std::string described(const JsonNode& json);
// Whether `json` is `object` or a part of it.
bool is_within(const JsonNode& json, const JsonNode& object);
// In double quotes, with control characters escaped.
std::string quoted_text(std::string_view text);
// With control characters escaped, and cut after some two hundred bytes.
HTTPRETRY_API std::string one_line(std::string_view text);

// More than anybody reads at once; a file of megabytes may have a problem in each line.
inline constexpr std::size_t kMaxProblems = 1000;

class HTTPRETRY_API Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  // At a value, or at the name of a member.
  void error(const JsonNode& at, std::string message) { add(at, at.position, std::move(message)); }
  void error_at_key(const JsonNode& at, std::string message) {
    add(at, at.key_position, std::move(message));
  }
  void warn(const JsonNode& at, std::string message) {
    warn(at.position, pointer(at), std::move(message));
  }
  // Where there is no value.
  void error(Position position, std::string pointer, std::string message) {
    add(position, std::move(pointer), std::move(message), false);
  }
  void warn(Position position, std::string pointer, std::string message) {
    add(position, std::move(pointer), std::move(message), true);
  }

  // Returns a problem at a value, without a message.
  [[nodiscard]] Problem place_of(const JsonNode& at) const {
    return place_of(at.position, pointer_to(at));
  }

  // did_you_mean, if the message will be kept: the search takes time.
  [[nodiscard]] std::string suggestion(std::string_view word,
                                       std::span<const std::string_view> names) const {
    return full() ? std::string() : did_you_mean(word, names);
  }

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool full() const { return problems_.size() >= kMaxProblems; }
  // In the order of the file, each once.
  [[nodiscard]] std::vector<Problem> take();

 private:
  // Made only for problems that are kept: there may be very many.
  [[nodiscard]] std::string pointer(const JsonNode& at) const {
    return full() ? std::string() : pointer_to(at);
  }
  void add(const JsonNode& at, Position position, std::string message) {
    at.bad = true;
    error(position, pointer(at), std::move(message));
  }
  void add(Position position, std::string pointer, std::string message, bool warning);
  [[nodiscard]] Problem place_of(Position position, std::string pointer) const;

  std::string file_;
  std::vector<Problem> problems_;
  bool failed_ = false;
  bool more_ = false;
};

// One line for each error among the problems.
HTTPRETRY_API std::string error_lines(const std::vector<Problem>& problems);

}  // namespace httpretry
