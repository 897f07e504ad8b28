// Texts in little memory.
#pragma once

#include <httpretry/export.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry::detail {

// Reads as a std::string does, which is twice as large: the history of a call that waits holds
// several. Up to 14 bytes are kept in place, others on the heap.
class HTTPRETRY_API SmallText {
 public:
  SmallText() noexcept = default;
  SmallText(std::string_view text);                                          // NOLINT
  SmallText(const std::string& text) : SmallText(std::string_view(text)) {}  // NOLINT
  SmallText(const char* text) : SmallText(std::string_view(text)) {}         // NOLINT
  SmallText(const SmallText& other) : SmallText(std::string_view(other)) {}
  SmallText(SmallText&& other) noexcept { swap(other); }
  SmallText& operator=(const SmallText& other);
  SmallText& operator=(SmallText&& other) noexcept { return swap(other), *this; }
  ~SmallText() {
    if (is_long()) release();
  }

  operator std::string_view() const noexcept {  // NOLINT(google-explicit-constructor)
    return is_long() ? long_text() : std::string_view(bytes_.data(), size_);
  }
  operator std::string() const { return std::string(std::string_view(*this)); }  // NOLINT
  [[nodiscard]] const char* data() const noexcept { return std::string_view(*this).data(); }
  [[nodiscard]] const char* c_str() const noexcept { return data(); }
  [[nodiscard]] std::size_t size() const noexcept { return std::string_view(*this).size(); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Not `auto`: in C++23, the constructor of std::string_view that takes a range checks these
  // functions while their types are being deduced.
  [[nodiscard]] std::string_view::const_iterator begin() const noexcept {
    return std::string_view(*this).begin();
  }
  [[nodiscard]] std::string_view::const_iterator end() const noexcept {
    return std::string_view(*this).end();
  }
  [[nodiscard]] std::size_t find(std::string_view part, std::size_t from = 0) const noexcept {
    return std::string_view(*this).find(part, from);
  }
  [[nodiscard]] bool starts_with(std::string_view part) const noexcept {
    return std::string_view(*this).starts_with(part);
  }
  [[nodiscard]] bool ends_with(std::string_view part) const noexcept {
    return std::string_view(*this).ends_with(part);
  }
  [[nodiscard]] std::string substr(std::size_t from,
                                   std::size_t count = std::string_view::npos) const {
    return std::string(std::string_view(*this).substr(from, count));
  }
  SmallText& operator+=(std::string_view more);

  friend bool operator==(const SmallText& one, const SmallText& other) noexcept {
    return std::string_view(one) == std::string_view(other);
  }
  friend bool operator==(const SmallText& one, std::string_view other) noexcept {
    return std::string_view(one) == other;
  }
  friend bool operator==(const SmallText& one, const char* other) noexcept {
    return std::string_view(one) == other;
  }
  friend bool operator==(const SmallText& one, const std::string& other) noexcept {
    return std::string_view(one) == other;
  }
  friend std::string operator+(std::string before, const SmallText& text) {
    return std::move(before.append(std::string_view(text)));
  }
  friend std::string operator+(const SmallText& text, std::string_view after) {
    return std::string(text).append(after);
  }
  friend std::string operator+(const char* before, const SmallText& text) {
    return std::string(before) + text;
  }
  friend HTTPRETRY_API std::ostream& operator<<(std::ostream& out, const SmallText& text);

 private:
  static constexpr std::uint8_t kLong = UINT8_MAX;
  [[nodiscard]] bool is_long() const noexcept { return size_ == kLong; }
  [[nodiscard]] std::string_view long_text() const noexcept;
  void release() noexcept;
  void swap(SmallText& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
  }

  // The text, which ends with NUL; or the pointer to a long one.
  alignas(std::string*) std::array<char, 15> bytes_{};
  std::uint8_t size_ = 0;  // kLong: it is on the heap
};

// A std::string_view in the memory of one pointer: of a text that always exists and ends with NUL.
class StaticText {
 public:
  constexpr StaticText() = default;
  constexpr StaticText(const char* text) : text_(text) {}              // NOLINT
  constexpr StaticText(std::string_view text) : text_(text.data()) {}  // NOLINT
  constexpr operator std::string_view() const { return text_; }        // NOLINT
  operator std::string() const { return text_; }                       // NOLINT
  [[nodiscard]] constexpr const char* data() const { return text_; }
  [[nodiscard]] constexpr std::size_t size() const { return std::string_view(text_).size(); }
  [[nodiscard]] constexpr bool empty() const { return *text_ == 0; }
  friend constexpr bool operator==(StaticText one, std::string_view other) {
    return std::string_view(one) == other;
  }
  friend HTTPRETRY_API std::ostream& operator<<(std::ostream& out, StaticText text);

 private:
  const char* text_ = "";
};

}  // namespace httpretry::detail
