#pragma once

#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

namespace httpretry {

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
    std::erase_if(values_, [](const auto& other) { return other.first == typeid(T); });
    values_.emplace_back(typeid(T), std::move(made));
    return result;
  }
  // Returns the value of type T, or nullptr.
  template <class T>
  [[nodiscard]] T* get() const {
    for (const auto& [type, value] : values_) {
      if (type == typeid(T)) return static_cast<T*>(value.get());
    }
    return nullptr;
  }
  [[nodiscard]] bool empty() const { return values_.empty(); }

 private:
  std::vector<std::pair<std::type_index, std::shared_ptr<void>>> values_;
};

}  // namespace httpretry
