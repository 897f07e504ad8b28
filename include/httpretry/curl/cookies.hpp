// CookieJar: the cookies that servers have set. Opt-in, and shared by whoever holds it: several
// clients may use one, from many threads.
//
//   options.connection.cookies = std::make_shared<CookieJar>();
//
// libcurl decides which cookies a server may set, and which requests they are sent with, using its
// list of public suffixes. In addition, cookies are taken from and sent to only the origin that a
// call was addressed to, whatever redirects follow, unless
// TransportOptions::cookies_of_other_origins is set.
//
// It holds at most 3000 cookies, 180 for one domain. The oldest are dropped for new ones.
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
  // Adds the cookies of a file in Netscape's format, which curl writes: seven fields in each line,
  // separated by tabs. Errc::InvalidRequest, with the line's number, where it cannot be read or a
  // line is malformed; nothing is added then.
  Result<void> load(const std::string& path);
  // The same for a text; `name` is its name in messages.
  Result<void> add(std::string_view text, std::string_view name);
  // Writes such a file, with session cookies, readable only for its owner (0600). It is written
  // under another name and then renamed, so a failure leaves an old file as it was.
  [[nodiscard]] Result<void> save(const std::string& path) const;
  [[nodiscard]] std::string to_text() const;

  [[nodiscard]] std::size_t size() const;
  void clear();

  // For the transport: the lines that may be for `host`, and how an exchange changed them.
  [[nodiscard]] std::vector<std::string> lines_for(std::string_view host) const;
  void learn(const std::vector<std::string>& before, const std::vector<std::string>& after);

 private:
  struct Cookie {
    std::string line;
    std::uint64_t age = 0;
  };
  // By domain (without its leading dot), name and path, with tabs between.
  using Cookies = std::map<std::string, Cookie, std::less<>>;

  void put(std::string line);
  void drop_oldest(Cookies::iterator first, Cookies::iterator last);

  mutable std::mutex mutex_;
  Cookies cookies_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace httpretry
