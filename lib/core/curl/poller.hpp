// Poller: waits for the sockets of a loop. The build picks one of two classes with the same
// functions (HTTPRETRY_POLLER in cmake/README.md).
#pragma once

#ifdef HTTPRETRY_POLLER_IS_POLL
#include "poll_poller.hpp"
#else
#include "epoll_poller.hpp"
#endif

namespace httpretry {

#ifdef HTTPRETRY_POLLER_IS_POLL
using Poller = PollPoller;
#else
using Poller = EpollPoller;
#endif

}  // namespace httpretry
