#include <httpretry/http/context.hpp>

#include <algorithm>

namespace httpretry {

Context::Context(const Context& other)
    : values_(other.values_ ? std::make_unique<std::vector<Value>>(*other.values_) : nullptr) {}

Context& Context::operator=(const Context& other) { return *this = Context(other); }

void Context::put(std::type_index type, std::shared_ptr<void> value) {
  if (!values_) values_ = std::make_unique<std::vector<Value>>();
  const auto found = std::ranges::find(*values_, type, &Value::type);
  if (found != values_->end()) {
    found->value = std::move(value);
  } else {
    values_->push_back({type, std::move(value)});
  }
}

void* Context::find(std::type_index type) const {
  if (!values_) return nullptr;
  const auto found = std::ranges::find(*values_, type, &Value::type);
  return found == values_->end() ? nullptr : found->value.get();
}

}  // namespace httpretry
