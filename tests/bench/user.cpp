// A program as a user writes it: bench_user URL COUNT sends that many GETs, one after the other.
#include <httpretry/client/client.hpp>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: user URL COUNT\n", 2;
  const char* url = argv[1];
  httpretry::Client client;
  for (long left = std::atol(argv[2]); left > 0; --left) {
    const auto outcome = client.get(url);
    if (!outcome) return std::cerr << outcome.error().message << '\n', 1;
    if (outcome->status != 200 || outcome->body.empty()) return std::cerr << "no body\n", 1;
  }
}
