// A worker that shares its limits with other workers, on any number of machines, through a Redis
// server. Start several at once:
//
//   example_shared_limits policy.json redis://localhost/0?workers=4 https://api.example.com/items
#include <httpretry/fleet/redis.hpp>
#include <httpretry/httpretry.hpp>

#include <cstdio>
#include <string>

using namespace httpretry;

namespace {

Client worker(const std::string& policies, const std::string& redis_url) {
  ClientOptions options;
  options.policies = PolicySource::watch(policies).value();
  options.shared_state = redis(redis_url);
  return Client(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: example_shared_limits POLICY_FILE REDIS_URL URL\n");
    return 2;
  }
  Client client = worker(argv[1], argv[2]);
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    const Outcome outcome = client.get(argv[3]);
    if (!succeeded(outcome)) ++failed;
  }
  std::printf("%d of 100 calls failed\n", failed);
  return failed == 0 ? 0 : 1;
}
