// The shortest useful program: GET with retries.
#include <httpretry/httpretry.hpp>

#include <cstdio>

using namespace httpretry;
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "https://example.com/";

  // Ends an attempt that has no response after 10 s.
  Client client(ClientOptions().with_policies(RetryPolicy::standard({.response_timeout = 10s})));
  const Outcome outcome = client.get(url);
  // Prints, for example, "succeeded after 2 attempts in 213 ms: 503, 200".
  std::fprintf(stderr, "%s\n", describe(outcome).c_str());
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return 1;
  }
  std::printf("%d: %s\n", outcome->status, outcome->body.c_str());

  return succeeded(outcome) ? 0 : 1;  // the policy decides: a 404 is no success
}
