// HTTP/2, as far as a server needs it that plays a scenario. It reads requests, answers them in the
// order in which they are complete, and performs the faults that need no other version.
#pragma once

#include <lib/extras/testing/channel.hpp>
#include <lib/extras/testing/connection.hpp>

namespace httpretry::faults {

// Chooses HTTP/2 over TLS if the client offers it (ALPN).
void offer_http2(SSL_CTX& context);

// Whether this is what a client with HTTP/2 sends first, as if it were the head of a request.
[[nodiscard]] bool begins_http2(const SeenRequest& head);

// Serves a connection after that head until it ends. `rest`: bytes that were already read.
void serve_http2(Shared& shared, std::uint64_t number, Channel& channel, std::string rest);

}  // namespace httpretry::faults
