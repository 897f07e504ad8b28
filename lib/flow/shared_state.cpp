#include <httpretry/flow/shared_state.hpp>

namespace httpretry {

SharedState::~SharedState() = default;
SharedState::Listener::~Listener() = default;

}  // namespace httpretry
