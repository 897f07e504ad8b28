#include <httpretry/http/guard_facts.hpp>

#include <array>
#include <ostream>

namespace httpretry {

std::string_view to_string(Circuit circuit) {
  constexpr std::array<std::string_view, 3> kWords{"closed", "open", "half_open"};
  return kWords.at(static_cast<std::size_t>(circuit));
}

std::string_view to_string(QueuedBy by) {
  constexpr std::array<std::string_view, 7> kWords{
      "", "pause", "ramp", "circuit", "rate", "concurrency", "max_in_flight"};
  return kWords.at(static_cast<std::size_t>(by));
}

std::ostream& operator<<(std::ostream& out, Circuit circuit) { return out << to_string(circuit); }
std::ostream& operator<<(std::ostream& out, QueuedBy by) { return out << to_string(by); }

}  // namespace httpretry
