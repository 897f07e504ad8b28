#include <httpretry/batch/store.hpp>

#include <array>

namespace httpretry::batch {

Store::~Store() = default;

std::string_view to_string(State state) {
  static constexpr std::array<std::string_view, 6> words{"queued", "sending", "done",
                                                         "dead",   "waiting", "unknown"};
  return words[static_cast<std::size_t>(state)];
}

std::uint64_t& Counts::of(State state) {
  const std::array counts{&queued, &sending, &done, &dead, &waiting, &unknown};
  return *counts[static_cast<std::size_t>(state)];
}

}  // namespace httpretry::batch
