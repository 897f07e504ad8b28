#include "idempotency_key.hpp"

#include "lib/core/base/random.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <string_view>
#include <utility>

namespace httpretry {
namespace {

// Returns whether the call has sent this request with the key. If the request is `redirected`, its
// URL and body are not compared, because a redirect may have changed its URL.
bool was_sent_with(const SentKey& key, const Request& request) {
  const auto& sent = key.request;
  if (sent.method() != request.method()) return false;
  return key.redirected || (sent.url() == request.url() && sent.body().is_same_as(request.body()));
}

}  // namespace

// Returns a random UUID (version 4).
std::string new_idempotency_key() {
  auto key = random_hex(16);
  key[12] = '4';                               // the version of the UUID: random
  key[16] = "89ab"[*hex_value(key[16]) & 3U];  // its variant: RFC 9562
  for (const auto at : {8U, 13U, 18U, 23U}) key.insert(at, 1, '-');
  return key;
}

// Adds an idempotency key, such as "Idempotency-Key: 6fa1...", to a POST or PATCH if the policy
// asks for one. With the key, the server recognizes a repeated request and executes it only once.
// So a request that was sent before, and is now resent or redirected by a middleware above, gets
// the same key as before. For that, the call stores the key as a SentKey. Does not replace a key
// that the user has set.
void add_idempotency_key(const RetryPolicy& policy, Request& request, const Call& call) {
  // The key with which this call has sent the same request before, or nullptr.
  auto* key = call.get<SentKey>();
  if (key != nullptr && !was_sent_with(*key, request)) key = nullptr;
  if (key != nullptr) {
    // A redirect may have changed the URL. From here on, the key belongs to this request. Even if
    // the policy of this URL has no keys, the policy of the next redirect's URL may have them.
    key->request = request;
    key->redirected = false;  // `redirect` sets it again if it redirects this request
  }
  const auto& name = policy.idempotency_key;  // the name of the header
  if (name.empty()) return;
  const auto users_key = request.headers().get(name);
  if (request.method() == "POST" || request.method() == "PATCH") {
    // Stores the user's key, or generates one for a request that was not sent before. `header` is
    // set only for the user's key. In a redirect, that key stays within its origin, like the user's
    // other headers; a generated key does not.
    if (users_key || key == nullptr) {
      key = &call.set(SentKey{.request = request,
                              .value = users_key ? std::string(*users_key) : new_idempotency_key(),
                              .header = users_key ? name : std::string()});
    }
    if (!users_key) request.set_header(name, key->value);
  }
  // With a key, even a POST may be repeated, unless the user has said otherwise.
  if (request.headers().contains(name) && !request.options().repeatable) {
    request.edit_options().repeatable = true;
  }
}

}  // namespace httpretry
