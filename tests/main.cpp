#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <csignal>
#include <cstdio>

// A program that speaks TLS ignores SIGPIPE: OpenSSL writes to sockets that the other side may have
// closed. So do the servers of the tests.
int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a test that hangs shows what it did before
  return doctest::Context(argc, argv).run();
}
