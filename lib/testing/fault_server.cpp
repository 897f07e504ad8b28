#include <httpretry/testing/testing.hpp>

#include <lib/testing/acceptor.hpp>
#include <lib/testing/socket_address.hpp>

#include <atomic>
#include <utility>

namespace httpretry {

struct FaultServer::State {
  State(Scenario scenario, const FaultServerOptions& options)
      : shared(std::move(scenario), options),
        reservation(faults::bind_to(shared.options.address, shared.options.port)),
        port(faults::port_of(reservation)) {
    listen();
  }

  void listen() { acceptor.emplace(shared, port, accepted); }

  faults::Shared shared;
  std::atomic<std::size_t> accepted{0};
  // Bound but never listening. While the server is stopped, it keeps the port reserved, and
  // connections are refused.
  const faults::Descriptor reservation;
  const std::uint16_t port;
  std::optional<faults::Acceptor> acceptor;
  const std::string no_file;
};

FaultServer::FaultServer(Scenario scenario, FaultServerOptions options)
    : state_(std::make_unique<State>(std::move(scenario), options)) {}

FaultServer::~FaultServer() = default;

std::uint16_t FaultServer::port() const { return state_->port; }

std::string FaultServer::url(std::string_view path) const {
  const auto& options = state_->shared.options;
  auto host = options.address;
  if (host == "0.0.0.0" || host == "::") host = "localhost";
  if (host.find(':') != std::string::npos) host = '[' + host + ']';
  const auto* scheme = options.tls == Tls::Off ? "http://" : "https://";
  return (scheme + host + ':' + std::to_string(port())).append(path);
}

const std::string& FaultServer::ca_file() const {
  const auto& certificates = state_->shared.certificates;
  return certificates ? certificates->ca_file() : state_->no_file;
}

void FaultServer::stop() { state_->acceptor.reset(); }

void FaultServer::restart() {
  stop();
  state_->listen();
}

std::vector<SeenRequest> FaultServer::seen() const { return state_->shared.log.all(); }

std::size_t FaultServer::requests() const { return state_->shared.log.count(); }

bool FaultServer::wait_for_requests(std::size_t count, Duration limit) const {
  return state_->shared.log.wait_for(count, limit);
}

std::size_t FaultServer::connections() const { return state_->accepted; }

}  // namespace httpretry
