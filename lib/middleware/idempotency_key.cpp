#include "idempotency_key.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <utility>

namespace httpretry {
namespace {

// Whether the call has sent this request with the key.
bool is_for(const SentKey& key, const Request& request) {
  const auto& sent = key.request;
  if (sent.method() != request.method()) return false;
  return key.redirected || (sent.url() == request.url() && sent.body().is_same_as(request.body()));
}

}  // namespace

void add_idempotency_key(const RetryPolicy& policy, Request& request, const Call& call) {
  auto* key = call.get<SentKey>();
  if (key != nullptr && !is_for(*key, request)) key = nullptr;
  if (key != nullptr) {
    key->request = request;
    key->redirected = false;
  }
  const auto& name = policy.idempotency_key;
  if (name.empty()) return;
  const auto own = request.headers().get(name);
  if (request.method() == "POST" || request.method() == "PATCH") {
    if (own || key == nullptr) {
      auto value = own ? std::string(*own) : new_idempotency_key();
      key = &call.set(SentKey{request, std::move(value), own ? name : std::string()});
    }
    if (!own) request.set_header(name, key->value);
  }
  if (request.headers().contains(name) && !request.options().repeatable) {
    request.edit_options().repeatable = true;
  }
}

}  // namespace httpretry
