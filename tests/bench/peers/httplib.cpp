#include "threads.hpp"

#include <httplib.h>

namespace bench {

std::unique_ptr<Peer> make_peer(const Target& target, int width) {
  return std::make_unique<Threads>(width, [&target] {
    auto client = std::make_shared<httplib::Client>(target.host, target.port);
    client->set_keep_alive(true);
    client->set_tcp_nodelay(true);
    return [client, path = target.path] {
      const auto result = client->Get(path);
      check_answer(result ? result->status : 0, result && result->has_header("Content-Type"),
                   result && !result->body.empty());
    };
  });
}

}  // namespace bench
