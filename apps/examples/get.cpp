// The shortest useful program: GET with retries.
#include <httpretry/httpretry.hpp>

#include <cstdio>

using namespace httpretry;

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "https://example.com/";

  Client client({redirect(), retry()});
  const Outcome outcome = client.get(url);
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return 1;
  }
  std::printf("%d after %zu attempt(s)\n", outcome->status, outcome->history.attempts.size());

  return 0;
}
