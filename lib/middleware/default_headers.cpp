#include <httpretry/middleware/builtin.hpp>

namespace httpretry {

MiddlewarePtr default_headers(Headers headers) {
  return on_request("default_headers",
                    [headers = std::move(headers)](Request& request, Call& call) {
                      const auto& url = request.parsed_url();
                      if (!url || url->origin() != call.origin()) return;
                      const Headers given = request.headers();
                      for (const auto header : headers) {
                        if (!given.contains(header.name))
                          request.add_header(header.name, header.value);
                      }
                    });
}

}  // namespace httpretry
