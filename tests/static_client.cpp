// A client with static storage, whose TLS connections and threads are still there when main
// returns: its end must be an ordinary one.
#include <httpretry/client.hpp>
#include <httpretry/fault_server.hpp>

#include <csignal>
#include <cstdio>
#include <memory>

using namespace httpretry;

namespace {

std::unique_ptr<Client> client;  // made late, destroyed late
Client early;                    // made before libcurl was first used

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  FaultServer server(Scenario({200}), tls);
  ClientOptions options;
  options.connection.ca_file = server.ca_file();
  client = std::make_unique<Client>(options);
  const auto blocking = client->get(server.url("/"));
  const auto later = client->send_async(Request::get(server.url("/"))).get();
  const auto refused = early.send_async(Request::get(server.url("/"))).get();
  if (blocking && later && !refused) return 0;
  std::fputs("a request failed, or one that must fail did not\n", stderr);
  return 1;
}
