#include <httpretry/simulate/model.hpp>

namespace httpretry {

using namespace std::chrono_literals;

ServerModel::ServerModel(Kind which) : kind(which) {
  if (which == Kind::Occ) network = Distribution(Distribution::Kind::Normal, 10ms, 2ms);
  if (which == Kind::Trace) network = Distribution();  // recorded times include the network
}

std::string_view to_string(ServerModel::Kind kind) {
  constexpr std::string_view kWords[] = {"fail", "capacity", "queue", "slope", "occ", "trace"};
  return kWords[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Distribution::Kind kind) {
  constexpr std::string_view kWords[] = {"constant",  "exponential", "normal",
                                         "lognormal", "mix",         "empirical"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace httpretry
