#include <httpretry/batch/store.hpp>

#include "lib/core/base/text.hpp"

#include <array>

namespace httpretry::batch {

Store::~Store() = default;

std::string_view to_string(State state) {
  return enum_word<State::Unknown>(state,
                                   {"queued", "sending", "done", "dead", "waiting", "unknown"});
}

std::uint64_t& Counts::of(State state) {
  const std::array counts{&queued, &sending, &done, &dead, &waiting, &unknown};
  return *counts[static_cast<std::size_t>(state)];
}

}  // namespace httpretry::batch
