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

// Headers are the headers of a request or a response, in their order. Names ignore case. Repeated
// headers are kept as received.
//
// Headers is a value type: it can be copied and compared. It is not thread-safe.
//
// All headers are stored in one string, each as a complete "Name: value" line, so that sending them
// needs no allocation.
class HTTPRETRY_API Headers {
 public:
  // One header, as views into its Headers. Valid until these are changed.
  struct Field {
    std::string_view name;
    std::string_view value;
    friend bool operator==(const Field&, const Field&) = default;
  };
  class Iterator;

  Headers() = default;
  // Headers{{"Accept", "text/plain"}, {"X-Tag", "a"}}. Throws like `add`.
  Headers(std::initializer_list<Field> fields);

  // Appends a header, even if one with the same name exists. Whitespace around the value is
  // removed, as HTTP specifies. Throws std::invalid_argument if `name` is not a token of RFC 9110,
  // or if `value` contains CR, LF, NUL or another control byte except tab. The message contains the
  // name, never the value.
  void add(std::string_view name, std::string_view value);
  // The same for headers from an untrusted source: returns false and adds nothing if `add` would
  // throw.
  [[nodiscard]] bool try_add(std::string_view name, std::string_view value);
  // The same for a received line, "Name: value", with or without a line ending.
  [[nodiscard]] bool try_add_line(std::string_view line);
  // Appends a received continuation line (RFC 9112 §5.2) to the value of the last header, after a
  // space. If the line is not a valid value, removes that header and returns false. The headers
  // must not be empty.
  [[nodiscard]] bool try_continue(std::string_view line);
  // Replaces all headers of that name by one, at the position of the first. Appends it if there are
  // none.
  void set(std::string_view name, std::string_view value);
  // Removes all headers of that name and returns their number.
  std::size_t remove(std::string_view name);
  void clear();
  // Reserves memory for that many headers and bytes of text (names, values, and 3 more bytes for
  // each header).
  void reserve(std::size_t fields, std::size_t bytes);

  // Returns the first value of that name, or nullopt.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  // Returns all values of that name, in order.
  [[nodiscard]] std::vector<std::string_view> get_all(std::string_view name) const;
  // Returns whether there is a header of that name.
  [[nodiscard]] bool contains(std::string_view name) const { return get(name).has_value(); }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] Field operator[](std::size_t index) const;
  // Returns the first value of that name, or an empty string.
  [[nodiscard]] std::string_view operator[](std::string_view name) const {
    return get(name).value_or(std::string_view());
  }
  // For loops: for (const auto& [name, value] : headers).
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

  // Returns the header as a NUL-terminated line: "Name: value", or "Name;" if the value is empty.
  // libcurl sends the latter as a header with an empty value.
  [[nodiscard]] const char* line(std::size_t index) const;

  // True if both have the same headers in the same order. The names ignore case.
  friend HTTPRETRY_API bool operator==(const Headers& a, const Headers& b);

 private:
  struct Entry {
    std::uint32_t offset;  // of the line in `text_`
    std::uint32_t name_size;
    std::uint32_t value_size;
  };

  void append(std::string_view name, std::string_view value);
  void remove_last();
  // Replaces all headers of that name by one with this value, or removes them if `value` is
  // nullptr. Returns how many there were.
  std::size_t replace(std::string_view name, const std::string_view* value);

  std::string text_;  // the lines, each with a NUL at its end
  std::vector<Entry> entries_;
};

// An input iterator over the headers.
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
  mutable Field field_;  // allows `auto&` to bind to it
};

inline Headers::Field Headers::operator[](std::size_t index) const {
  const auto& entry = entries_[index];
  const char* name = text_.data() + entry.offset;
  return {{name, entry.name_size}, {name + entry.name_size + 2, entry.value_size}};
}
inline Headers::Iterator Headers::begin() const { return {*this, 0}; }
inline Headers::Iterator Headers::end() const { return {*this, size()}; }

// Returns whether two strings are equal when the case of ASCII letters is ignored.
[[nodiscard]] HTTPRETRY_API bool equal_ignoring_case(std::string_view a, std::string_view b);
// Return whether `Headers::add` accepts the name or value.
[[nodiscard]] HTTPRETRY_API bool valid_header_name(std::string_view name);
[[nodiscard]] HTTPRETRY_API bool valid_header_value(std::string_view value);
// Returns whether the name of a header implies that its value is secret (Authorization, Cookie,
// X-Api-Key, …) and must not be logged.
[[nodiscard]] HTTPRETRY_API bool tells_secret(std::string_view header_name);
// Makes untrusted text safe for a terminal or a log: control characters, and bytes that are not
// UTF-8, become escapes such as "\x1b".
[[nodiscard]] HTTPRETRY_API std::string printable(std::string_view text);

}  // namespace httpretry
