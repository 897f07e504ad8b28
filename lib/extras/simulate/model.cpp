#include <httpretry/simulate/model.hpp>

#include "lib/core/base/text.hpp"

namespace httpretry {

using namespace std::chrono_literals;

ServerModel::ServerModel(Kind which) : kind(which) {
  if (which == Kind::Occ) network = Distribution(Distribution::Kind::Normal, 10ms, 2ms);
  if (which == Kind::Trace) network = Distribution();  // recorded times include the network
}

std::string_view to_string(ServerModel::Kind kind) {
  return enum_word<ServerModel::Kind::Trace>(
      kind, {"fail", "capacity", "queue", "slope", "occ", "trace"});
}

std::string_view to_string(Distribution::Kind kind) {
  return enum_word<Distribution::Kind::Empirical>(
      kind, {"constant", "exponential", "normal", "lognormal", "mix", "empirical"});
}

}  // namespace httpretry
