// What is seldom there, in the memory of one pointer. The history of a call that waits holds
// several of these.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace httpretry::detail {

// Read as a pointer. Copying it copies the T.
template <class T>
class Rare {
 public:
  Rare() = default;
  Rare(std::nullptr_t /*none*/) {}  // NOLINT(google-explicit-constructor)
  template <class U>
  Rare(const std::shared_ptr<U>& value)  // NOLINT(google-explicit-constructor)
      : value_(value ? new T(*value) : nullptr) {}
  Rare(const Rare& other) : value_(other ? new T(*other) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(const Rare& other) { return *this = Rare(other); }
  Rare& operator=(Rare&&) noexcept = default;
  ~Rare() = default;

  explicit operator bool() const noexcept { return value_ != nullptr; }
  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }
  [[nodiscard]] const T* get() const noexcept { return value_.get(); }
  friend bool operator==(const Rare& one, std::nullptr_t) noexcept { return !one; }

 private:
  std::unique_ptr<const T> value_;
};

// A std::vector that is seldom used.
template <class T>
class RareList {
 public:
  RareList() = default;
  RareList(const RareList& other)
      : list_(other.empty() ? nullptr : new std::vector<T>(*other.list_)) {}
  RareList(RareList&&) noexcept = default;
  RareList& operator=(const RareList& other) { return *this = RareList(other); }
  RareList& operator=(RareList&&) noexcept = default;
  ~RareList() = default;

  [[nodiscard]] std::size_t size() const noexcept { return list_ ? list_->size() : 0; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] const T* begin() const noexcept { return list_ ? list_->data() : nullptr; }
  [[nodiscard]] const T* end() const noexcept { return begin() + size(); }
  // There must be one.
  T& operator[](std::size_t index) { return (*list_)[index]; }
  const T& operator[](std::size_t index) const { return (*list_)[index]; }
  T& back() { return list_->back(); }
  [[nodiscard]] const T& back() const { return list_->back(); }
  [[nodiscard]] const T& front() const { return list_->front(); }

  void push_back(T value) { list().push_back(std::move(value)); }
  T& emplace_back() { return list().emplace_back(); }

 private:
  std::vector<T>& list() {
    if (!list_) list_ = std::make_unique<std::vector<T>>();
    return *list_;
  }
  std::unique_ptr<std::vector<T>> list_;
};

}  // namespace httpretry::detail
