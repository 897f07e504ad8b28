#include <httpretry/http/context.hpp>

#include <algorithm>

namespace httpretry {

void Context::put(std::type_index type, std::shared_ptr<void> value) {
  const auto found = std::ranges::find(values_, type, &Value::type);
  if (found != values_.end()) {
    found->value = std::move(value);
  } else {
    values_.push_back({type, std::move(value)});
  }
}

void* Context::find(std::type_index type) const {
  const auto found = std::ranges::find(values_, type, &Value::type);
  return found == values_.end() ? nullptr : found->value.get();
}

}  // namespace httpretry
