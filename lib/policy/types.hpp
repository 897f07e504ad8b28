// The types of the values in a file: one object for each, which reads and writes it.
//
// The tables of keys (keys.hpp) point to these objects. They are constants, so that the tables can
// be used before main begins.
#pragma once

#include "lib/json/json.hpp"
#include "lib/retry/policy_limits.hpp"

#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace httpretry::policy_file {

struct Shape;

class HTTPRETRY_API Type {
 public:
  // Puts the value into `field`, or only checks it where that is nullptr. False, with a problem,
  // where it is not of this type.
  virtual bool read(const JsonNode& json, void* field, Problems& problems) const = 0;
  // null where a file leaves the value out.
  [[nodiscard]] virtual OrderedJson write(const void* field) const = 0;
  // The keys, where it is a type of objects.
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
    auto value = parse(json, problems);
    if (!value) return false;
    if (field != nullptr) *static_cast<F*>(field) = *std::move(value);
    return true;
  }
  [[nodiscard]] OrderedJson write(const void* field) const final {
    return print(*static_cast<const F*>(field));
  }

 protected:
  virtual std::optional<F> parse(const JsonNode& json, Problems& problems) const = 0;
  [[nodiscard]] virtual OrderedJson print(const F& value) const = 0;
};

// A type that is made of functions. What is only read needs no more than the first.
template <class F>
class Custom final : public TypeOf<F> {
 public:
  using Parse = std::optional<F> (*)(const JsonNode& json, Problems& problems);
  using Print = OrderedJson (*)(const F& value);
  constexpr explicit Custom(Parse parsing, Print printing = nullptr)
      : parse_(parsing), print_(printing) {}

 protected:
  std::optional<F> parse(const JsonNode& json, Problems& problems) const override {
    return parse_(json, problems);
  }
  [[nodiscard]] OrderedJson print(const F& value) const override { return print_(value); }

 private:
  Parse parse_;
  Print print_;
};

// A part of an F that is more than one member of it. It is made of functions, which get the whole.
template <class F>
class PartOf final : public Type {
 public:
  using Read = bool (*)(const JsonNode& json, F& whole, Problems& problems);
  using Write = OrderedJson (*)(const F& whole);
  constexpr PartOf(Read reading, Write writing) : read_(reading), write_(writing) {}
  bool read(const JsonNode& json, void* field, Problems& problems) const override {
    F unused;
    return read_(json, field == nullptr ? unused : *static_cast<F*>(field), problems);
  }
  [[nodiscard]] OrderedJson write(const void* field) const override {
    return write_(*static_cast<const F*>(field));
  }

 private:
  Read read_;
  Write write_;
};

// False, and a problem, where the value is of another JSON type.
HTTPRETRY_API bool expect(const JsonNode& json, JsonNode::Type type, std::string_view what,
                          Problems& problems);
// A List of what `read` puts into it for each element of an array, and then returns true. Empty,
// with problems, where one is wrong.
template <class List, class Read>
std::optional<List> read_items(const JsonNode& json, std::string_view what, Problems& problems,
                               Read read) {
  if (!expect(json, JsonNode::Type::Array, what, problems)) return std::nullopt;
  List list{};
  auto good = true;
  for (const auto* const item : json.children) good = read(*item, list) && good;
  return good ? std::optional(std::move(list)) : std::nullopt;
}
std::optional<double> number_in(const JsonNode& json);
// The duration that `text` is, or what is wrong with it: "is negative".
HTTPRETRY_API std::pair<Duration, std::string> duration_in(std::string_view text);

// "250ms". A limit may also be "none", which is kForever.
class HTTPRETRY_API DurationType final : public TypeOf<Duration> {
 public:
  enum class Zero : std::uint8_t { Allowed, Refused };
  constexpr explicit DurationType(bool limit, Zero zero = Zero::Allowed)
      : limit_(limit), zero_(zero) {}

 protected:
  std::optional<Duration> parse(const JsonNode& json, Problems& problems) const override;
  [[nodiscard]] OrderedJson print(const Duration& value) const override;

 private:
  bool limit_;
  Zero zero_;
};

inline constexpr DurationType kDuration(false);
inline constexpr DurationType kDurationOverZero(false, DurationType::Zero::Refused);
inline constexpr DurationType kLimit(true);
inline constexpr DurationType kLimitOverZero(true, DurationType::Zero::Refused);

// What numbers of a type must be: from `least` to `most`, and multiples of 1/`parts` where that is
// not 0.
struct Range {
  double least = 0;
  double most = 0;
  int parts = 0;
  std::string_view what = "a number";  // what is said where it is something else
  std::string_view note = {};          // for numbers below `least`
};
// Of counts that may also be "unlimited".
constexpr Range unlimited_range(std::string_view note = {}) {
  return {policy::kCounts.least, policy::kCounts.most, 1, "a number or \"unlimited\"", note};
}
HTTPRETRY_API std::optional<double> number_within(const JsonNode& json, const Range& range,
                                                  Problems& problems);
// A whole number without a fraction: 2, not 2.0.
HTTPRETRY_API OrderedJson plain_number(double number);

// With `parts`, what is stored is the number of these parts.
template <class F>
class Number final : public TypeOf<F> {
 public:
  constexpr Number(double least, double most, int parts = std::is_floating_point_v<F> ? 0 : 1)
      : Number(Range{least, most, parts}) {}
  constexpr explicit Number(const policy::NumberLimits& limits)
      : Number(limits.least, limits.most,
               std::is_floating_point_v<F> && limits.parts == 1 ? 0 : limits.parts) {}
  constexpr explicit Number(const Range& range) : range_(range) {}

 protected:
  std::optional<F> parse(const JsonNode& json, Problems& problems) const override {
    const auto number = number_within(json, range_, problems);
    if (!number) return std::nullopt;
    return static_cast<F>(range_.parts > 1 ? std::round(*number * range_.parts) : *number);
  }
  [[nodiscard]] OrderedJson print(const F& value) const override {
    return plain_number(static_cast<double>(value) / std::max(range_.parts, 1));
  }

 private:
  Range range_;
};

// The words of an enum, in the order of its values; an empty word is a value that no file may name.
class HTTPRETRY_API Words {
 public:
  constexpr Words() = default;
  // `left_out` are words that other versions may know.
  template <std::size_t Size>
  constexpr explicit Words(const std::string_view (&list)[Size],
                           std::span<const std::string_view> left_out = {})
      : list_(list), left_out_(left_out), size_(Size) {}
  // The words of `to_string`, up to that of `last`.
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
    if (i == without_) return {};
    return word_ == nullptr ? list_[i] : word_(i);
  }
  // Its number; `size` where it is none of them.
  [[nodiscard]] std::size_t find(std::string_view word) const;
  // All that a file may name.
  [[nodiscard]] std::vector<std::string_view> all() const;
  // The number of the word that stands there; empty, and a problem, where it is none of them.
  [[nodiscard]] std::optional<std::size_t> parse(const JsonNode& json, Problems& problems) const;

 private:
  std::span<const std::string_view> list_;
  std::span<const std::string_view> left_out_;
  std::string_view (*word_)(std::size_t) = nullptr;
  std::size_t size_ = 0;
  std::size_t without_ = SIZE_MAX;
  bool any_case_ = false;  // how a file may spell them
};

template <class Enum>
class Word final : public TypeOf<Enum> {
 public:
  constexpr explicit Word(const Words& words) : words_(words) {}

 protected:
  std::optional<Enum> parse(const JsonNode& json, Problems& problems) const override {
    const auto number = words_.parse(json, problems);
    return number ? std::optional(static_cast<Enum>(*number)) : std::nullopt;
  }
  [[nodiscard]] OrderedJson print(const Enum& value) const override {
    return words_[static_cast<std::size_t>(value)];
  }

 private:
  Words words_;
};

// true or false.
extern const Custom<bool> kFlag;
// A string, even an empty one.
extern const Custom<std::string> kAnyText;

// A string of a certain form; an empty one is left out.
class HTTPRETRY_API Text final : public TypeOf<std::string> {
 public:
  using Check = bool (*)(std::string_view);
  // `what` it is is said where it is something else: "a header's name".
  constexpr explicit Text(std::string_view what, Check good = nullptr) : what_(what), good_(good) {}

 protected:
  std::optional<std::string> parse(const JsonNode& json, Problems& problems) const override;
  [[nodiscard]] OrderedJson print(const std::string& value) const override;

 private:
  std::string_view what_;
  Check good_;
};

// A value that may be left out; or, where there is a word for that, be this word.
template <class Inner>
class Optional final : public TypeOf<std::optional<typename Inner::Field>> {
 public:
  using Value = typename Inner::Field;
  constexpr explicit Optional(const Inner& inner, std::string_view none = {})
      : inner_(inner), none_(none) {}

 protected:
  std::optional<std::optional<Value>> parse(const JsonNode& json,
                                            Problems& problems) const override {
    std::optional<Value> value;
    const auto none = !none_.empty() && json.is(JsonNode::Type::String) && json.text == none_;
    if (!none && !inner_.read(json, &value.emplace(), problems)) return std::nullopt;
    return std::make_optional(std::move(value));
  }
  [[nodiscard]] OrderedJson print(const std::optional<Value>& value) const override {
    if (value) return inner_.write(&*value);
    return none_.empty() ? OrderedJson() : OrderedJson(none_);
  }

 private:
  const Inner& inner_;
  std::string_view none_;
};

// An array of values of one type. With `one_alone`, a string may stand in the place of an array
// with one element. If there is a message for an empty array, it is refused, and left out.
template <class Inner>
class List final : public TypeOf<std::vector<typename Inner::Field>> {
 public:
  using Values = std::vector<typename Inner::Field>;
  constexpr List(const Inner& inner, std::string_view what, std::string_view empty = {},
                 bool one_alone = false)
      : inner_(inner), what_(what), empty_(empty), one_alone_(one_alone) {}

 protected:
  std::optional<Values> parse(const JsonNode& json, Problems& problems) const override {
    const auto read = [&](const JsonNode& item, Values& list) {
      return inner_.read(item, &list.emplace_back(), problems);
    };
    if (one_alone_ && json.is(JsonNode::Type::String)) {
      Values one;
      return read(json, one) ? std::optional(std::move(one)) : std::nullopt;
    }
    auto list = read_items<Values>(json, what_, problems, read);
    if (!list || !list->empty() || empty_.empty()) return list;
    problems.error(json, std::string(empty_));
    return std::nullopt;
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

}  // namespace httpretry::policy_file
