// Connection: serves one client connection, on a thread of its own.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/testing/certificates.hpp>
#include <lib/testing/channel.hpp>
#include <lib/testing/request_log.hpp>
#include <lib/testing/request_reader.hpp>
#include <lib/testing/step_queue.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace httpretry::faults {

// What all connections of a server share. Each member is safe to use on several threads.
struct Shared {
  Shared(Scenario scenario, const FaultServerOptions& chosen)
      : options(chosen), steps(std::move(scenario)), log(options.max_seen) {
    if (options.tls != Tls::Off) certificates.emplace(options.tls);
  }

  const FaultServerOptions options;
  StepQueue steps;
  RequestLog log;
  std::optional<Certificates> certificates;
};

class Connection {
 public:
  Connection(Shared& shared, std::uint64_t number, Descriptor socket, int stop_fd)
      : shared_(shared), number_(number), channel_(std::move(socket), stop_fd), reader_(channel_) {}

  void run();

 private:
  [[nodiscard]] bool begin();
  [[nodiscard]] bool serve_one();
  [[nodiscard]] bool wait_for_request();
  [[nodiscard]] bool read_and_log(SeenRequest& request, const Step* step);
  [[nodiscard]] bool respond(const SeenRequest& request, const Step& step, bool unread_body);
  void fail_unread(const Step& step);
  [[nodiscard]] bool refuse(int status);
  void tunnel(const SeenRequest& request, const Step& step);

  Shared& shared_;
  const std::uint64_t number_;
  Channel channel_;
  RequestReader reader_;
  bool stale_ = false;  // after Fault::Stale: the next request gets a FIN
};

}  // namespace httpretry::faults
