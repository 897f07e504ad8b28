// What a loop has learned about the origins that it sends to.
#pragma once

#include <httpretry/http/headers.hpp>
#include <httpretry/http/time.hpp>

#include <string>
#include <unordered_map>

namespace httpretry {

struct OriginInfo {
  bool speaks_http2 = false;
  long keep_alive_seconds = -1;  // as the server last announced; -1: it did not
  Time addresses_until{};        // libcurl knows the host's addresses until then
};

class Origins {
 public:
  // To be changed; makes an entry where there is none.
  OriginInfo& edit(const std::string& origin);
  [[nodiscard]] const OriginInfo& find(const std::string& origin) const;
  // From a good response.
  void learn(const std::string& origin, const Headers& headers, bool http2);

 private:
  std::unordered_map<std::string, OriginInfo> origins_;
};

}  // namespace httpretry
