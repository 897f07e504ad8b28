#include "canned_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace httpretry {

CannedServer::CannedServer(std::vector<std::string> answers)
    : answers_(std::move(answers)), server_([this](int listener) { serve(listener); }) {}

// The listener is readable for a new client, and when the server ends.
void CannedServer::serve(int listener) {
  std::vector<pollfd> watched{{listener, POLLIN, 0}};
  for (bool serves = true; serves && ::poll(watched.data(), watched.size(), -1) > 0;) {
    for (std::size_t i = watched.size(); i-- > 1;) {
      if (watched[i].revents == 0 || answer(watched[i].fd)) continue;
      ::close(watched[i].fd);
      watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (watched[0].revents == 0) continue;
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    serves = connection >= 0;
    if (serves) watched.push_back({connection, POLLIN, 0});
    if (serves) ++connections_;
  }
  for (std::size_t i = 1; i < watched.size(); ++i) ::close(watched[i].fd);
}

bool CannedServer::answer(int connection) {
  if (read_until(connection, "\r\n\r\n").empty()) return false;
  const auto number = static_cast<std::size_t>(requests_++);
  write_all(connection, answers_[std::min(number, answers_.size() - 1)]);
  return true;
}

}  // namespace httpretry
