#include "remote_state.hpp"

namespace httpretry::fleet {

RemoteState::~RemoteState() = default;
RemoteState::Listener::~Listener() = default;

}  // namespace httpretry::fleet
