// The header fields of a request or a response: ordered, case-insensitive by name, with repeated
// fields kept as they came.
//
// A Headers is a value: copy it, compare it. It is not synchronised.
//
// The fields stand in one block of text, each as a finished "Name: value" line, so that sending
// them costs no further allocation and receiving them one.
#pragma once

#include <httpretry/export.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

class HTTPRETRY_API Headers {
 public:
  // One field, as a view into its Headers: valid until that is changed.
  struct Field {
    std::string_view name;
    std::string_view value;
    friend bool operator==(const Field&, const Field&) = default;
  };
  class Iterator;

  Headers() = default;
  // Headers{{"Accept", "text/plain"}, {"X-Tag", "a"}}. Throws as `add` does.
  Headers(std::initializer_list<Field> fields);

  // Appends a field, beside others of the same name.
  // Throws std::invalid_argument where `name` is not a token of RFC 9110 or `value` holds CR, LF,
  // NUL or another control byte except tab: the message names the field, never the value. White
  // space around the value is dropped, as it is on the wire.
  void add(std::string_view name, std::string_view value);
  // As `add`, for fields that came from outside: false, and nothing added, where `add` would throw.
  [[nodiscard]] bool try_add(std::string_view name, std::string_view value);
  // The same for a line as it is received: "Name: value", with or without a line ending.
  [[nodiscard]] bool try_add_line(std::string_view line);
  // Replaces every field of that name by one, in the place of the first.
  void set(std::string_view name, std::string_view value);
  // Removes every field of that name and says how many there were.
  std::size_t remove(std::string_view name);
  void clear();
  // Room for that many fields and bytes of text (names, values, 3 bytes each).
  void reserve(std::size_t fields, std::size_t bytes);

  // The first value of that name, in any case; empty where there is none.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  // Every value of that name, in order.
  [[nodiscard]] std::vector<std::string_view> get_all(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return get(name).has_value(); }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] Field operator[](std::size_t index) const;
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

  // The field as a NUL-terminated line: "Name: value", or "Name;" where the value is empty (the
  // spelling that libcurl sends as an empty field).
  [[nodiscard]] const char* line(std::size_t index) const;

  // Equal: the same fields in the same order, names in any case.
  friend HTTPRETRY_API bool operator==(const Headers& a, const Headers& b);

 private:
  struct Entry {
    std::uint32_t offset;
    std::uint32_t name_size;
    std::uint32_t value_size;
  };
  [[nodiscard]] bool holds(std::string_view text) const;  // a view of what is in here
  void append(std::string_view name, std::string_view value);
  void add_entry(std::size_t offset, std::string_view name, std::string_view value);

  std::string block_;
  std::vector<Entry> entries_;
};

class Headers::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Field;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Field;

  Iterator() = default;
  Iterator(const Headers& headers, std::size_t index) : headers_(&headers), index_(index) {}
  Field operator*() const { return (*headers_)[index_]; }
  Iterator& operator++() {
    ++index_;
    return *this;
  }
  Iterator operator++(int) {
    auto before = *this;
    ++index_;
    return before;
  }
  friend bool operator==(const Iterator&, const Iterator&) = default;

 private:
  const Headers* headers_ = nullptr;
  std::size_t index_ = 0;
};

inline Headers::Iterator Headers::begin() const { return {*this, 0}; }
inline Headers::Iterator Headers::end() const { return {*this, entries_.size()}; }

// Whether two ASCII texts are the same but for the case of their letters.
[[nodiscard]] HTTPRETRY_API bool equal_ignoring_case(std::string_view a, std::string_view b);
// What `Headers::add` demands of a name and of a value.
[[nodiscard]] HTTPRETRY_API bool valid_header_name(std::string_view name);
[[nodiscard]] HTTPRETRY_API bool valid_header_value(std::string_view value);
// Whether a header's name speaks of something secret (Authorization, Cookie, X-Api-Key …): then its
// value is not for a log.
[[nodiscard]] HTTPRETRY_API bool tells_secret(std::string_view header_name);
// Text from outside, for a terminal or a log: control characters, and bytes that are no UTF-8, as
// "\x1b".
[[nodiscard]] HTTPRETRY_API std::string printable(std::string_view text);

}  // namespace httpretry
