// The lanes of a gate, for those who serve them: Gate and Gate::Turn.
#pragma once

#include "gate.hpp"

namespace httpretry::guard {

// Who waits for one state.
struct Gate::Scope {
  std::vector<Lane*> lanes;
  int waiting = 0;
};

// Sends with the same limits. Only the first in its queue may be next.
struct Gate::Lane {
  // What tells it apart. A new version of a policy file has a lane of its own, with the same
  // states.
  std::shared_ptr<const GuardPolicy> policy;
  std::string host;
  std::string endpoint;
  std::uint64_t credentials = 0;

  std::shared_ptr<SendLimits> limits;
  std::vector<std::pair<const std::string*, Scope*>> scopes;  // each once
  bool two_pauses = false;
  std::map<Turn::Rank, Turn*> queue;
  int users = 0;  // turns that live
  int turns = 0;  // that were granted

  [[nodiscard]] Turn& head() const;
};

}  // namespace httpretry::guard
