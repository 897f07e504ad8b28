// Context: values that belong to one request or one call, of any types, one of each type. For what
// a program and its middlewares and observers want to tell each other: a tenant, a trace.
//
//   struct Tenant { std::string name; };
//   request.edit_options().context.set(Tenant{"seven"});
//   ...
//   if (const auto* tenant = call.get<Tenant>()) ...     // in a middleware or an observer
//
// Copies share the values, and what is set in one copy later is not in the other.
#pragma once

#include <map>
#include <memory>
#include <typeindex>
#include <utility>

namespace httpretry {

class Context {
 public:
  // Replaces the value of that type.
  template <class T>
  T& set(T value) {
    auto made = std::make_shared<T>(std::move(value));
    values_[typeid(T)] = made;
    return *made;
  }
  // nullptr if there is none.
  template <class T>
  [[nodiscard]] T* get() const {
    const auto found = values_.find(typeid(T));
    return found == values_.end() ? nullptr : static_cast<T*>(found->second.get());
  }
  [[nodiscard]] bool empty() const { return values_.empty(); }

 private:
  std::map<std::type_index, std::shared_ptr<void>> values_;
};

}  // namespace httpretry
