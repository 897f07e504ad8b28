// Reading and writing JSON. OrderedJson is a value to be written; JsonWriter writes without a tree;
// JsonNode is a value that knows its position in the text it was read from; Problems collects the
// problems of one file.
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

// The only type of JSON value that is written. Its members keep the order in which they were set.
using OrderedJson = nlohmann::ordered_json;

namespace detail::json {

// Returns JSON text for people. An object or array that fits into a line is written on one line,
// except that the outer `levels` always have a line for each member. Bytes that are not UTF-8 are
// replaced.
HTTPRETRY_API std::string json_text(const OrderedJson& json, int levels);

// Appends JSON to a text, value by value, without a tree. Used for text that is written often, such
// as reports.
class HTTPRETRY_API JsonWriter {
 public:
  // Affects only the spaces and line breaks of the text.
  enum class Layout : std::uint8_t {
    Line,    // on one line, without spaces
    Spaced,  // a line per member or item, indented by two spaces, like OrderedJson::dump(2)
  };
  explicit JsonWriter(std::string& out, Layout layout = Layout::Line)
      : out_(out), spaced_(layout == Layout::Spaced) {}

  // Each appends a value: the whole text, an item of an array, or the value after `key`.
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
  // Writes NaN and infinity as null, because JSON has no such numbers.
  void value(double number);
  // Bytes that are not UTF-8 become U+FFFD. Control characters are escaped, even those that JSON
  // allows, because terminals interpret them.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  // Appends text that is already JSON.
  void raw(std::string_view json) { literal(json); }

  // Begins the next member of an object. The name must not need escapes.
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
  bool first_ = true;  // no member or item of this object or array is written yet
  bool after_key_ = false;
};

// Appends the text in quotes, as JsonWriter does.
HTTPRETRY_API void append_json_string(std::string& out, std::string_view text);

class Problems;

// Limits for reading. Trees are walked by recursion, so their depth must be limited. The other two
// limits are far above any real file and keep a hostile file from using all memory.
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonText = std::size_t{64} << 20;
inline constexpr std::size_t kMaxJsonNodes = 2'000'000;

struct Position {
  int line = 0;  // counted from 1; 0 if the value is not from a text
  int column = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct HTTPRETRY_API JsonNode {
  enum class Type : std::uint8_t { Null, Boolean, Number, String, Array, Object };

  Type type = Type::Null;
  bool boolean = false;
  // An error was reported here, so no further error is derived from the value.
  mutable bool has_error = false;
  Position position;
  Position key_position;  // for a member of an object
  std::string_view key;   // for a member of an object
  std::string_view text;  // of a string, or of a number as written
  const JsonNode* parent = nullptr;
  std::vector<const JsonNode*> children;

  [[nodiscard]] bool is(Type other) const { return type == other; }
  // Returns the first member with that name, or nullptr.
  [[nodiscard]] const JsonNode* member(std::string_view name) const;
  // The same, but also returns nullptr for a member that is null.
  [[nodiscard]] const JsonNode* find(std::string_view name) const;
};

// Owns nodes and the texts that they refer to.
class HTTPRETRY_API JsonTree {
 public:
  JsonTree() = default;
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  // Returns a copy of `text` that lives as long as the tree.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  JsonNode& add(JsonNode::Type type, const JsonNode* parent);
  // Adds a copy of `json`. It has no lines, and the columns only count siblings.
  JsonNode& add(const OrderedJson& json, const JsonNode* parent = nullptr);
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  const JsonNode* root = nullptr;

 private:
  std::deque<JsonNode> nodes_;
  std::deque<std::string> texts_;
};

// Reads strict JSON (RFC 8259) into `tree`. The first syntax error or exceeded limit is added to
// `problems`, and the root stays nullptr. Duplicate keys are added to `problems`, but do not stop
// the reading.
HTTPRETRY_API void read_json(std::string_view text, JsonTree& tree, Problems& problems);

// Returns "/policies/careful/max_attempts". A very long pointer is cut.
HTTPRETRY_API std::string pointer_to(const JsonNode& json);
// Returns the value as JSON on one line, with numbers as they were written.
HTTPRETRY_API std::string compact(const JsonNode& json);
// Returns the value as messages quote it: a string or number shortened and on one line, "an array",
// or "an object".
HTTPRETRY_API std::string described(const JsonNode& json);
// Returns whether `json` is `object` or a part of it.
bool is_within(const JsonNode& json, const JsonNode& object);
// Returns the text in double quotes, with control characters escaped.
std::string quoted_text(std::string_view text);
// Returns the text with control characters escaped, cut after about 200 bytes.
HTTPRETRY_API std::string one_line(std::string_view text);

// More than a person reads at once. A file of megabytes may have a problem in each line.
inline constexpr std::size_t kMaxProblems = 1000;

class HTTPRETRY_API Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  // Adds a problem at a value, or at the name of a member.
  void error(const JsonNode& at, std::string message) { add(at, at.position, std::move(message)); }
  void error_at_key(const JsonNode& at, std::string message) {
    add(at, at.key_position, std::move(message));
  }
  void warn(const JsonNode& at, std::string message) {
    warn(at.position, pointer(at), std::move(message));
  }
  // Adds a problem at a position without a value.
  void error(Position position, std::string pointer, std::string message) {
    add(position, std::move(pointer), std::move(message), Severity::Error);
  }
  void warn(Position position, std::string pointer, std::string message) {
    add(position, std::move(pointer), std::move(message), Severity::Warning);
  }

  // Returns a problem at a value, without a message.
  [[nodiscard]] Problem place_of(const JsonNode& at) const {
    return place_of(at.position, pointer_to(at));
  }

  // Returns did_you_mean, or "" if the message will be dropped, because the search takes time.
  [[nodiscard]] std::string suggestion(std::string_view word,
                                       std::span<const std::string_view> names) const {
    return full() ? std::string() : did_you_mean(word, names);
  }

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool full() const { return problems_.size() >= kMaxProblems; }
  // Returns the problems in the order of the file, without repetitions. Call it only once.
  [[nodiscard]] std::vector<Problem> take();

 private:
  enum class Severity : std::uint8_t { Error, Warning };

  // Returns pointer_to, or "" if the problem will be dropped, because there may be very many.
  [[nodiscard]] std::string pointer(const JsonNode& at) const {
    return full() ? std::string() : pointer_to(at);
  }
  void add(const JsonNode& at, Position position, std::string message) {
    at.has_error = true;
    error(position, pointer(at), std::move(message));
  }
  void add(Position position, std::string pointer, std::string message, Severity severity);
  [[nodiscard]] Problem place_of(Position position, std::string pointer) const;

  std::string file_;
  std::vector<Problem> problems_;
  bool failed_ = false;
  bool dropped_ = false;  // some problems exceeded kMaxProblems
};

// Returns one line for each error among the problems.
HTTPRETRY_API std::string error_lines(const std::vector<Problem>& problems);

}  // namespace detail::json
using namespace detail::json;

}  // namespace httpretry
