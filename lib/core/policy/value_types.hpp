// The types of the values in a policy file. Each type is an object that reads and writes values.
//
// The tables of keys (keys.hpp) point to these objects. They are constants, so the tables can be
// used before main begins.
#pragma once

#include "lib/core/json/detail/json.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace httpretry::detail::policy_file {

struct Shape;

// Reads and writes the values of one type. The type of the member that stores a value is known only
// to the derived class.
class Type {
 public:
  // Stores the value in `field`, or only checks it if `field` is nullptr. Returns false and reports
  // a problem if the value is not of this type.
  virtual bool read(const JsonNode& json, void* field, Problems& problems) const = 0;
  // Returns the value as JSON, or null if a file leaves it out.
  [[nodiscard]] virtual OrderedJson write(const void* field) const = 0;
  // Returns the keys of a type of objects, otherwise nullptr.
  [[nodiscard]] virtual const Shape* shape() const { return nullptr; }

  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;

 protected:
  constexpr Type() = default;
  ~Type() = default;
};

// A type whose values are stored as an F.
template <class F>
class TypeOf : public Type {
 public:
  using Field = F;
  bool read(const JsonNode& json, void* field, Problems& problems) const final {
    auto value = field == nullptr ? F() : *static_cast<const F*>(field);
    if (!parse(json, value, problems)) return false;
    if (field != nullptr) *static_cast<F*>(field) = std::move(value);
    return true;
  }
  [[nodiscard]] OrderedJson write(const void* field) const final {
    return print(*static_cast<const F*>(field));
  }

 protected:
  // Changes `value`, a copy of the field. If this returns false, the field does not change.
  virtual bool parse(const JsonNode& json, F& value, Problems& problems) const = 0;
  [[nodiscard]] virtual OrderedJson print(const F& value) const = 0;
};

// A type defined by two functions. A type that is only read needs no `printing`.
template <class F>
class Custom final : public TypeOf<F> {
 public:
  using Parse = bool (*)(const JsonNode& json, F& value, Problems& problems);
  using Print = OrderedJson (*)(const F& value);
  constexpr explicit Custom(Parse parsing, Print printing = nullptr)
      : parse_(parsing), print_(printing) {}

 protected:
  bool parse(const JsonNode& json, F& value, Problems& problems) const override {
    return parse_(json, value, problems);
  }
  [[nodiscard]] OrderedJson print(const F& value) const override { return print_(value); }

 private:
  Parse parse_;
  Print print_;
};

// Reports an error at the value, and returns false.
HTTPRETRY_API bool refuse(const JsonNode& json, Problems& problems, std::string message);
// Returns whether the value is of this JSON type, and reports a problem if not. `what` names the
// expected value in the message.
HTTPRETRY_API bool expect(const JsonNode& json, JsonNode::Type type, std::string_view what,
                          Problems& problems);
// Calls `read` with each element of an array. Returns whether all calls returned true.
template <class Read>
bool read_items(const JsonNode& json, std::string_view what, Problems& problems, Read read) {
  auto good = expect(json, JsonNode::Type::Array, what, problems);
  if (!good) return false;
  for (const auto* const item : json.children) good = read(*item) && good;
  return good;
}
// Returns the value of a number, or nullopt if it is out of the range of a double.
std::optional<double> number_in(const JsonNode& json);
// Returns the duration in `text`, or a problem such as "is negative".
HTTPRETRY_API std::pair<Duration, std::string> duration_in(std::string_view text);

// A duration such as "250ms". A limit may also be "none", which is kForever.
class HTTPRETRY_API DurationType final : public TypeOf<Duration> {
 public:
  constexpr explicit DurationType(bool limit, bool over_zero = false)
      : may_be_none_(limit), must_be_over_zero_(over_zero) {}

 protected:
  bool parse(const JsonNode& json, Duration& value, Problems& problems) const override;
  [[nodiscard]] OrderedJson print(const Duration& value) const override;

 private:
  bool may_be_none_;
  bool must_be_over_zero_;
};

inline constexpr DurationType kDuration(/*limit=*/false);
inline constexpr DurationType kDurationOverZero(/*limit=*/false, /*over_zero=*/true);
inline constexpr DurationType kLimit(/*limit=*/true);
inline constexpr DurationType kLimitOverZero(/*limit=*/true, /*over_zero=*/true);

using policy::NumberLimits;
// Returns the limits of a count that may also be "unlimited".
constexpr NumberLimits unlimited_range(std::string_view note = {}) {
  return {policy::kCounts.least, policy::kCounts.most, 1, "a number or \"unlimited\"", note};
}
HTTPRETRY_API std::optional<double> number_within(const JsonNode& json, const NumberLimits& limits,
                                                  Problems& problems);
// Returns the number as JSON, a whole number without a fraction: 2, not 2.0.
HTTPRETRY_API OrderedJson plain_number(double number);

template <class F>
class Number final : public TypeOf<F> {
 public:
  constexpr Number(double least, double most) : Number(NumberLimits{least, most}) {}
  constexpr explicit Number(const NumberLimits& limits) : limits_(limits) {
    if (std::is_floating_point_v<F> && limits.parts == 1) limits_.parts = 0;
  }

 protected:
  bool parse(const JsonNode& json, F& value, Problems& problems) const override {
    const auto number = number_within(json, limits_, problems);
    if (!number) return false;
    value = static_cast<F>(limits_.parts > 1 ? std::round(*number * limits_.parts) : *number);
    return true;
  }
  [[nodiscard]] OrderedJson print(const F& value) const override {
    return plain_number(static_cast<double>(value) / std::max(limits_.parts, 1));
  }

 private:
  NumberLimits limits_;
};

// The words of an enum, in the order of its values. An empty word stands for a value that no file
// can name.
class HTTPRETRY_API Words {
 public:
  constexpr Words() = default;
  // `left_out`: words that other versions may support. They get a special error message.
  template <std::size_t Size>
  constexpr explicit Words(const std::string_view (&list)[Size],
                           std::span<const std::string_view> left_out = {})
      : list_(list), left_out_(left_out), size_(Size) {}
  // Returns the words of `to_string` for all values up to `last`, except `without`.
  template <class Enum>
  static constexpr Words up_to(Enum last, std::optional<Enum> without = {}, bool any_case = false) {
    Words words;
    words.word_ = [](std::size_t i) { return to_string(static_cast<Enum>(i)); };
    words.size_ = static_cast<std::size_t>(last) + 1;
    if (without) words.without_ = static_cast<std::size_t>(*without);
    words.any_case_ = any_case;
    return words;
  }

  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    if (i == without_ || i >= size_) return {};
    return word_ == nullptr ? list_[i] : word_(i);
  }
  // Returns the number of a word, or `size()` if it is unknown.
  [[nodiscard]] std::size_t find(std::string_view word) const;
  // Returns all words that a file can name.
  [[nodiscard]] std::vector<std::string_view> all() const;
  // Returns the number of the word in the file. Returns nullopt and reports a problem if it is
  // unknown.
  [[nodiscard]] std::optional<std::size_t> parse(const JsonNode& json, Problems& problems) const;

 private:
  std::span<const std::string_view> list_;
  std::span<const std::string_view> left_out_;
  std::string_view (*word_)(std::size_t) = nullptr;
  std::size_t size_ = 0;
  std::size_t without_ = SIZE_MAX;
  bool any_case_ = false;  // ignore case when reading a file
};

template <class Enum>
class Word final : public TypeOf<Enum> {
 public:
  constexpr explicit Word(const Words& words) : words_(words) {}

 protected:
  bool parse(const JsonNode& json, Enum& value, Problems& problems) const override {
    const auto number = words_.parse(json, problems);
    if (number) value = static_cast<Enum>(*number);
    return number.has_value();
  }
  [[nodiscard]] OrderedJson print(const Enum& value) const override {
    return words_[static_cast<std::size_t>(value)];
  }

 private:
  Words words_;
};

inline constexpr Custom<bool> kFlag(
    [](const JsonNode& json, bool& on, Problems& problems) {
      on = json.boolean;
      return expect(json, JsonNode::Type::Boolean, "true or false", problems);
    },
    [](const bool& on) { return OrderedJson(on); });
// A string, even an empty one.
inline constexpr Custom<std::string> kAnyText(
    [](const JsonNode& json, std::string& text, Problems& problems) {
      text = json.text;
      return expect(json, JsonNode::Type::String, "a string", problems);
    },
    [](const std::string& text) { return OrderedJson(text); });

// A string of a certain form. An empty string is not written.
class HTTPRETRY_API Text final : public TypeOf<std::string> {
 public:
  using Check = bool (*)(std::string_view);
  // `what` names the expected form in messages, for example "a header name".
  constexpr explicit Text(std::string_view what, Check good = nullptr) : what_(what), good_(good) {}

 protected:
  bool parse(const JsonNode& json, std::string& value, Problems& problems) const override;
  [[nodiscard]] OrderedJson print(const std::string& value) const override;

 private:
  std::string_view what_;
  Check good_;
};

// A value that may be left out, or replaced by the word `none` if there is one.
template <class Inner>
class Optional final : public TypeOf<std::optional<typename Inner::Field>> {
 public:
  using Value = typename Inner::Field;
  constexpr explicit Optional(const Inner& inner, std::string_view none = {})
      : inner_(inner), none_(none) {}

 protected:
  bool parse(const JsonNode& json, std::optional<Value>& value, Problems& problems) const override {
    value.reset();
    if (!none_.empty() && json.is(JsonNode::Type::String) && json.text == none_) return true;
    Value inner{};
    if (!inner_.read(json, &inner, problems)) return false;
    value = std::move(inner);
    return true;
  }
  [[nodiscard]] OrderedJson print(const std::optional<Value>& value) const override {
    if (value) return inner_.write(&*value);
    return none_.empty() ? OrderedJson() : OrderedJson(none_);
  }

 private:
  const Inner& inner_;
  std::string_view none_;
};

// An array of values of one type. With `one_alone`, a string may replace an array with one element.
// If `empty` is a message, an empty array is refused with it, and not written.
template <class Inner>
class List final : public TypeOf<std::vector<typename Inner::Field>> {
 public:
  using Values = std::vector<typename Inner::Field>;
  constexpr List(const Inner& inner, std::string_view what, std::string_view empty = {},
                 bool one_alone = false)
      : inner_(inner), what_(what), empty_(empty), one_alone_(one_alone) {}

 protected:
  bool parse(const JsonNode& json, Values& values, Problems& problems) const override {
    values.clear();
    const auto read = [&](const JsonNode& item) {
      return inner_.read(item, &values.emplace_back(), problems);
    };
    if (one_alone_ && json.is(JsonNode::Type::String)) return read(json);
    if (!read_items(json, what_, problems, read)) return false;
    return !values.empty() || empty_.empty() || refuse(json, problems, std::string(empty_));
  }
  [[nodiscard]] OrderedJson print(const Values& values) const override {
    if (values.empty() && !empty_.empty()) return {};
    auto list = OrderedJson::array();
    for (const auto& value : values) {
      // Unlike a member, an element that is an empty string is written.
      if constexpr (std::is_same_v<typename Inner::Field, std::string>) {
        list.push_back(value);
      } else {
        list.push_back(inner_.write(&value));
      }
    }
    return one_alone_ && list.size() == 1 ? list.front() : list;
  }

 private:
  const Inner& inner_;
  std::string_view what_;
  std::string_view empty_;
  bool one_alone_;
};

extern const List<Text> kMethods;

}  // namespace httpretry::detail::policy_file

namespace httpretry {
namespace policy_file = detail::policy_file;
}
