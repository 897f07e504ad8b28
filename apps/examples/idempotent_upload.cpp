// An upload by POST that survives what a network does to it, and is carried out once: every attempt
// bears the same Idempotency-Key, by which the server knows the request again.
//
//   example_idempotent_upload [FILE]     (itself, where no file is named)
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

using namespace httpretry;

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "/proc/self/exe";
  // Takes the request and breaks the connection; is busy; has it.
  FaultServer server({Fault::Reset, {503, "busy"}, {201, "stored"}});

  RetryPolicy policy;
  policy.idempotency_key = "Idempotency-Key";  // without it a POST that may have arrived is final
  Client client({retry(policy)});
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
  bool whole = true;
  for (const auto& seen : server.seen()) {
    keys.emplace(seen.headers.get("Idempotency-Key").value_or(""));
    whole = whole && seen.body_size == std::filesystem::file_size(path);
  }
  std::printf("%d \"%s\"; the server saw %zu requests, all of them whole: %s, with %zu key\n",
              outcome->status, outcome->body.c_str(), server.requests(), whole ? "yes" : "no",
              keys.size());
  return outcome->status == 201 && whole && keys.size() == 1 && server.requests() == 3 ? 0 : 1;
}
