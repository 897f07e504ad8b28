// A JSON text as a tree that knows where everything stands, for people who have to mend it.
//
// Strict RFC 8259. What goes wrong is put into a Report, with its line and column; the reader goes
// on behind what it can get over (a comment, a key that stands there twice, a bad byte in a
// string), so that all of a file's mistakes are found at once. Time and memory are bounded by the
// text's length and by the limits below.
#pragma once

#include <httpretry/policy/policy_set.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy_file {

inline constexpr std::size_t kDeepest = 64;
inline constexpr std::size_t kLongestText = std::size_t{64} << 20;
inline constexpr std::size_t kMostValues = 2'000'000;
inline constexpr std::size_t kMostProblems = 1000;

struct Place {
  int line = 0;  // from 1; 0: nowhere
  int column = 0;
};

struct Json {
  enum class Type : std::uint8_t { Null, Boolean, Number, String, Array, Object };

  Type type = Type::Null;
  bool boolean = false;
  // Whoever found the value wrong marks it, so that nothing is concluded from it.
  mutable bool bad = false;
  Place place;
  Place key_place;        // of a member of an object
  std::string_view key;   // likewise
  std::string_view text;  // of a string; of a number, as it is spelled
  const Json* parent = nullptr;
  std::vector<const Json*> children;

  [[nodiscard]] bool is(Type other) const { return type == other; }
  // A member of an object that is not null, or nullptr.
  [[nodiscard]] const Json* find(std::string_view name) const;
};

// Owns what its nodes point at.
class Document {
 public:
  Document() = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  // A copy of `text` that lives as long as the document.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  Json& add(Json::Type type, const Json* parent);
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  const Json* root = nullptr;

 private:
  std::deque<Json> nodes_;
  std::deque<std::string> texts_;
};

// "/policies/careful/max_attempts"; of a very long one, the end is left out.
std::string pointer_to(const Json& json);
// As the compact JSON text it could have been read from.
std::string compact(const Json& json);
// As a message quotes it: a string or number shortened and on one line, "an array", "an object".
std::string described(const Json& json);
// Whether it is `object` or in it.
bool stands_in(const Json& json, const Json& object);
// In double quotes, with control bytes escaped.
std::string quoted(std::string_view text);
// "a", with control bytes escaped and at most some two hundred bytes of it.
std::string one_line(std::string_view text);

// Collects what is wrong with one text.
class Report {
 public:
  explicit Report(std::string file) : file_(std::move(file)) {}

  // At a value, or at the name of a member.
  void error(const Json& at, std::string message);
  void error_at_key(const Json& at, std::string message);
  void warn(const Json& at, std::string message);
  // At a place within an object or array; `inside` may be nullptr.
  void error(Place place, const Json* inside, std::string message);
  // Where there is no value to name.
  void error(Place place, std::string pointer, std::string message);
  void warn(Place place, std::string pointer, std::string message);

  // "; did you mean …", or nothing; for a message that would not be kept it is not worth the
  // search.
  [[nodiscard]] std::string suggestion(std::string_view word,
                                       std::span<const std::string_view> names) const;
  // The same, and where none is near, which there are: "; there are: max_attempts, …".
  [[nodiscard]] std::string suggestion_or_all(std::string_view word,
                                              std::span<const std::string_view> names) const;

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool failed() const { return failed_; }
  // In the order of the text, each once.
  [[nodiscard]] std::vector<Problem> take();

 private:
  [[nodiscard]] bool full() const { return problems_.size() >= kMostProblems; }
  void add(Place place, const Json* at, std::string message, bool warning);
  void add(Place place, std::string pointer, std::string message, bool warning);

  std::string file_;
  std::vector<Problem> problems_;
  bool failed_ = false;
  bool more_ = false;
};

// Reads `text` into `document`, whose root stays nullptr where nothing can be made of it.
void read(std::string_view text, Document& document, Report& report);

}  // namespace httpretry::policy_file
