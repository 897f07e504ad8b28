// A client with static storage, whose TLS connections and threads are still there when main
// returns: its end must be an ordinary one.
#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>

#include <csignal>
#include <cstdio>

using namespace httpretry;

namespace {

Client make_client() {
  ClientOptions options;
  options.middlewares = {};
  options.connection.verify_tls = false;
  return Client(options);
}

Client client = make_client();  // before libcurl is first used

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  static FaultServer server(Scenario({200}), tls);  // gone before the client is
  const auto blocking = client.get(server.url("/"));
  const auto later = client.send_async(Request::get(server.url("/"))).get();
  if (blocking && later) return 0;
  std::fputs("a request failed\n", stderr);
  return 1;
}
