// What a Url shares among its copies: libcurl's parsed form, and its parts as text.
#pragma once

#include "lib/http/owned.hpp"

#include <httpretry/http/url.hpp>

#include <curl/curl.h>

namespace httpretry {
namespace detail {

using CurlUrl = Owned<CURLU, curl_url_cleanup>;

// Empty where the URL has none.
std::string url_part(CURLU* url, CURLUPart which, unsigned flags = 0);

}  // namespace detail

struct Url::Parts {
  // Sets the text in `handle`, and takes the result apart.
  static Result<Url> read(detail::CurlUrl handle, std::string_view text, unsigned flags);
  static Result<Url> take_apart(detail::CurlUrl handle);
  // For a URL that needs no libcurl; nullptr for any other.
  static std::shared_ptr<const Parts> read_plain(std::string_view text);
  // What follows from scheme, host and port.
  void complete();

  // Never changed once shared: libcurl copies it for each transfer. Null for a plain URL.
  detail::CurlUrl handle;
  std::string scheme;
  std::string host;
  std::string path;
  std::string query;
  std::string origin;
  std::uint16_t port = 0;
  bool userinfo = false;
  bool named = false;  // the host is a name to look up, not an address or localhost
};

}  // namespace httpretry
