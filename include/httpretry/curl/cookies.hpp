#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/result.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// CookieJar stores the cookies that servers have set. It is opt-in. Several clients may share one
// CookieJar, and it is thread-safe.
//
//   options.connection.cookies = std::make_shared<CookieJar>();
//
// libcurl decides which cookies a server may set and which requests they are sent with, and uses
// its public suffix list for this. In addition, cookies are accepted from and sent to only the
// origin that a call was addressed to, whatever redirects follow.
// TransportOptions::cookies_of_other_origins lifts this restriction.
//
// A CookieJar holds at most 3000 cookies, and 180 per domain. New cookies replace the oldest.
class HTTPRETRY_API CookieJar {
 public:
  // Adds the cookies of a file in the Netscape format, which curl writes: seven fields per line,
  // separated by tabs. Returns Errc::InvalidRequest, with the line number, if the file cannot be
  // read or a line is malformed. In that case no cookie is added.
  Result<void> load(const std::string& path);
  // The same for text in memory. `name` is its name in messages.
  Result<void> add(std::string_view text, std::string_view name);
  // Writes a file in this format, including session cookies, that only its owner can read (0600).
  // The file is written under another name and then renamed, so a failure leaves an existing file
  // unchanged.
  [[nodiscard]] Result<void> save(const std::string& path) const;
  // Returns the text that `save` writes.
  [[nodiscard]] std::string to_text() const;

  [[nodiscard]] std::size_t size() const;
  void clear();

  // For the transport: `lines_for` returns the lines that may apply to a host, and `learn` records
  // how an exchange changed them.
  [[nodiscard]] std::vector<std::string> lines_for(std::string_view host) const;
  void learn(const std::vector<std::string>& before, const std::vector<std::string>& after);

 private:
  struct Cookie {
    std::string line;
    std::uint64_t age = 0;
  };
  // Keyed by domain (without its leading dot), name and path, separated by tabs.
  using Cookies = std::map<std::string, Cookie, std::less<>>;

  void put(std::string line);
  void drop_oldest(Cookies::iterator first, Cookies::iterator last);

  mutable std::mutex mutex_;
  Cookies cookies_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace httpretry
