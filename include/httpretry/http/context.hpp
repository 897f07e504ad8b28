#pragma once

#include <httpretry/export.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace httpretry {

namespace detail {
// Its address identifies the type T. Unlike typeid, it needs no RTTI.
template <class T>
HTTPRETRY_API inline const char kTypeId = 0;
}  // namespace detail

// Context holds values that belong to one request or one call: at most one of each type. The
// program, its middlewares and its observers use it to pass data to each other, such as a tenant or
// a trace.
//
//   struct Tenant { std::string name; };
//   request.edit_options().context.set(Tenant{"seven"});
//   ...
//   if (const auto* tenant = call.get<Tenant>()) ...     // in a middleware or an observer
//
// Copies share the existing values. A value that is set in one copy later does not appear in the
// others.
class Context {
 public:
  // Sets the value of type T, replaces an earlier one, and returns it.
  template <class T>
  T& set(T value) {
    auto made = std::make_shared<T>(std::move(value));
    auto& result = *made;
    std::erase_if(values_, [](const auto& other) { return other.first == &detail::kTypeId<T>; });
    values_.emplace_back(&detail::kTypeId<T>, std::move(made));
    return result;
  }
  // Returns the value of type T, or nullptr.
  template <class T>
  [[nodiscard]] T* get() const {
    for (const auto& [type, value] : values_) {
      if (type == &detail::kTypeId<T>) return static_cast<T*>(value.get());
    }
    return nullptr;
  }
  [[nodiscard]] bool empty() const { return values_.empty(); }

 private:
  std::vector<std::pair<const void*, std::shared_ptr<void>>> values_;  // with &kTypeId
};

}  // namespace httpretry
