// What the tests of sinks have in common.
#pragma once

#include "wire.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/middleware/retry.hpp>

namespace httpretry {

inline Outcome get_into(const FaultServer& server, SinkPtr sink, const std::string& path = "/") {
  auto request = Request::get(server.url(path));
  request.edit_options().sink = std::move(sink);
  return Client({redirect(), retry(hasty())}).send(request);
}

inline SinkPtr append_to(std::string& text) {
  return pass_to([&text](std::string_view bytes) {
    text.append(bytes);
    return true;
  });
}

}  // namespace httpretry
