// An upload by POST that may be retried safely: every attempt has the same Idempotency-Key, so the
// server can recognize a repeated request and process it only once.
//
//   example_idempotent_upload [FILE]     (default: the program itself)
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

using namespace httpretry;

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "/proc/self/exe";
  // The server resets the connection after reading the request, then is busy, then stores the file.
  FaultServer server({Fault::Reset, {503, "busy"}, {201, "stored"}});

  RetryPolicy policy;
  // Without a key, such a POST is not retried after a reset.
  policy.idempotency_key = "Idempotency-Key";
  // The default chain of middlewares, except that retry() has its own policy.
  Client client({redirect(), retry(policy), hedge(), guards()});
  const auto outcome = client.post(server.url("/files"), Body::file(path));
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return 1;
  }
  for (const auto& attempt : outcome->history.attempts) {
    std::printf("attempt %d: %s, sent: %s\n", attempt.number, attempt.rule.c_str(),
                std::string(to_string(attempt.sent)).c_str());
  }

  std::set<std::string> keys;
  bool complete = true;
  for (const auto& seen : server.seen()) {
    keys.emplace(seen.headers.get("Idempotency-Key").value_or(""));
    complete = complete && seen.body_size == std::filesystem::file_size(path);
  }
  std::printf("%d \"%s\"; the server received %zu requests, all complete: %s, with %zu key\n",
              outcome->status, outcome->body.c_str(), server.requests(), complete ? "yes" : "no",
              keys.size());
  return outcome->status == 201 && complete && keys.size() == 1 && server.requests() == 3 ? 0 : 1;
}
