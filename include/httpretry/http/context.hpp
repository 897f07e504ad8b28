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

#include <httpretry/export.hpp>

#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

namespace httpretry {

class HTTPRETRY_API Context {
 public:
  // Replaces the value of that type.
  template <class T>
  T& set(T value) {
    auto made = std::make_shared<T>(std::move(value));
    auto& kept = *made;
    put(typeid(T), std::move(made));
    return kept;
  }
  // nullptr if there is none.
  template <class T>
  [[nodiscard]] T* get() const {
    return static_cast<T*>(find(typeid(T)));
  }
  [[nodiscard]] bool empty() const { return values_.empty(); }

 private:
  struct Value {
    std::type_index type;
    std::shared_ptr<void> value;
  };
  void put(std::type_index type, std::shared_ptr<void> value);
  [[nodiscard]] void* find(std::type_index type) const;

  std::vector<Value> values_;
};

}  // namespace httpretry
