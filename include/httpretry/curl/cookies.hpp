// CookieJar: the cookies that servers have set. Opt-in, and shared by whoever holds it: several
// clients may use one, from many threads.
//
//   options.connection.cookies = std::make_shared<CookieJar>();
//
// Which cookies a server may set, and which requests they are sent with, is libcurl's to say, with
// the list of public suffixes that it was built with. Beside that, cookies are taken from and sent
// to only the origin that a call was addressed to, whatever redirects follow, unless
// TransportOptions::cookies_of_other_origins says otherwise.
//
// 3000 cookies at most, 180 for one domain: beyond it the oldest are dropped.
#pragma once

#include <httpretry/http/result.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

class HTTPRETRY_API CookieJar {
 public:
  CookieJar() = default;
  CookieJar(const CookieJar&) = delete;
  CookieJar& operator=(const CookieJar&) = delete;

  // Adds what stands in a file as Netscape's browser wrote it and curl does: seven fields a line,
  // with tabs between. Errc::InvalidRequest where it cannot be read, or for a line that is none of
  // that, by its number; nothing is added then.
  Result<void> load(const std::string& path);
  // The same from a text; `name` stands for it in messages.
  Result<void> add(std::string_view text, std::string_view name);
  // Writes such a file, session cookies too, readable for its owner only (0600). It is written
  // aside and renamed: an old file survives a failure.
  [[nodiscard]] Result<void> save(const std::string& path) const;
  [[nodiscard]] std::string to_text() const;

  [[nodiscard]] std::size_t size() const;
  void clear();

  // For the transport. The lines that may be for `host`, and what became of them in an exchange.
  [[nodiscard]] std::vector<std::string> lines_for(std::string_view host) const;
  void learn(const std::vector<std::string>& before, const std::vector<std::string>& after);

 private:
  struct Cookie {
    std::string line;
    std::uint64_t age = 0;
  };
  // By the name of the cookie and its path, within a domain without its leading dot.
  using Domain = std::map<std::string, Cookie, std::less<>>;

  void put(std::string line);
  void remove(std::string_view line);
  void drop_oldest(Domain& domain);
  void drop_oldest();

  mutable std::mutex mutex_;
  std::map<std::string, Domain, std::less<>> domains_;
  std::size_t size_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace httpretry
