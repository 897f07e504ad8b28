// The headers of a request or a response: ordered, with names that ignore case. Repeated headers
// are kept as received.
//
// A Headers is a value: copy it, compare it. It is not synchronised.
//
// All headers are stored in one text, each as a complete "Name: value" line, so that sending them
// needs no allocation.
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
  // One header: views into its Headers, valid until that is changed.
  struct Field {
    std::string_view name;
    std::string_view value;
    friend bool operator==(const Field&, const Field&) = default;
  };
  class Iterator;

  Headers() = default;
  // Headers{{"Accept", "text/plain"}, {"X-Tag", "a"}}. Throws as `add` does.
  Headers(std::initializer_list<Field> fields);

  // Appends a header, also if there is one of the same name.
  // Throws std::invalid_argument if `name` is not a token of RFC 9110, or `value` contains CR, LF,
  // NUL or another control byte except tab. The message contains the name, never the value. White
  // space around the value is removed, as HTTP does.
  void add(std::string_view name, std::string_view value);
  // For headers from outside: where `add` would throw, returns false and adds nothing.
  [[nodiscard]] bool try_add(std::string_view name, std::string_view value);
  // The same for a line as received: "Name: value", with or without a line ending.
  [[nodiscard]] bool try_add_line(std::string_view line);
  // Appends a line as received that continues the last header (RFC 9112 §5.2) to its value, after a
  // blank. If the line is not a valid value, removes that header and returns false. The headers
  // must not be empty.
  [[nodiscard]] bool try_continue(std::string_view line);
  // Replaces all headers of that name by one, at the position of the first.
  void set(std::string_view name, std::string_view value);
  // Removes all headers of that name and returns how many there were.
  std::size_t remove(std::string_view name);
  void clear();
  // Reserves memory for that many headers and bytes of text (names, values, 3 bytes each).
  void reserve(std::size_t fields, std::size_t bytes);

  // The first value of that name; empty if there is none.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  // All values of that name, in order.
  [[nodiscard]] std::vector<std::string_view> get_all(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return get(name).has_value(); }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] Field operator[](std::size_t index) const;
  // As `get`, with an empty value if there is none.
  [[nodiscard]] std::string_view operator[](std::string_view name) const {
    return get(name).value_or(std::string_view());
  }
  // For (const auto& [name, value] : headers).
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

  // The header as a NUL-terminated line: "Name: value", or "Name;" if the value is empty (libcurl
  // sends that as a header with an empty value).
  [[nodiscard]] const char* line(std::size_t index) const;

  // The same headers in the same order; the names ignore case.
  friend HTTPRETRY_API bool operator==(const Headers& a, const Headers& b);

 private:
  struct Entry {
    std::uint32_t offset;  // of the line in `text_`
    std::uint32_t name_size;
    std::uint32_t value_size;
  };

  void append(std::string_view name, std::string_view value);
  void remove_last();
  // Keeps one header of that name, with this value, or none if it is nullptr. Returns how many
  // there were.
  std::size_t replace(std::string_view name, const std::string_view* value);

  std::string text_;  // the lines, each with a NUL at its end
  std::vector<Entry> entries_;
};

class Headers::Iterator {
 public:
  using value_type = Field;
  using difference_type = std::ptrdiff_t;

  using iterator_category = std::input_iterator_tag;
  using pointer = const Field*;
  using reference = const Field&;

  Iterator() = default;
  Iterator(const Headers& headers, std::size_t index) : headers_(&headers), index_(index) {}
  const Field& operator*() const { return field_ = (*headers_)[index_]; }
  const Field* operator->() const { return &**this; }
  Iterator& operator++() {
    ++index_;
    return *this;
  }
  Iterator operator++(int) {
    auto before = *this;
    ++index_;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

 private:
  const Headers* headers_ = nullptr;
  std::size_t index_ = 0;
  mutable Field field_;  // so that `auto&` may refer to it
};

inline Headers::Field Headers::operator[](std::size_t index) const {
  const auto& entry = entries_[index];
  const char* name = text_.data() + entry.offset;
  return {{name, entry.name_size}, {name + entry.name_size + 2, entry.value_size}};
}
inline Headers::Iterator Headers::begin() const { return {*this, 0}; }
inline Headers::Iterator Headers::end() const { return {*this, size()}; }

// Whether two texts are equal if the case of ASCII letters is ignored.
[[nodiscard]] HTTPRETRY_API bool equal_ignoring_case(std::string_view a, std::string_view b);
// What `Headers::add` accepts.
[[nodiscard]] HTTPRETRY_API bool valid_header_name(std::string_view name);
[[nodiscard]] HTTPRETRY_API bool valid_header_value(std::string_view value);
// Whether a header's name says that its value is secret (Authorization, Cookie, X-Api-Key, …) and
// must not be logged.
[[nodiscard]] HTTPRETRY_API bool tells_secret(std::string_view header_name);
// Makes text from outside safe for a terminal or a log: control characters, and bytes that are not
// UTF-8, become "\x1b".
[[nodiscard]] HTTPRETRY_API std::string printable(std::string_view text);

}  // namespace httpretry
