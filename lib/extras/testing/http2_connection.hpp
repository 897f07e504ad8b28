// Serves HTTP/2, as far as a FaultServer needs it. It reads requests, responds to them in the order
// in which they are complete, and performs all faults that are possible in HTTP/2.
#pragma once

#include <lib/extras/testing/channel.hpp>
#include <lib/extras/testing/connection.hpp>

namespace httpretry::faults {

// Makes TLS connections choose HTTP/2 if the client offers it (ALPN).
void offer_http2(SSL_CTX& context);

// Whether this head is the beginning of the HTTP/2 connection preface, which has the form of a
// request.
[[nodiscard]] bool begins_http2(const SeenRequest& head);

// Serves a connection after that head until it ends. `rest` holds bytes that were already read.
void serve_http2(Shared& shared, std::uint64_t number, Channel& channel, std::string rest);

}  // namespace httpretry::faults
