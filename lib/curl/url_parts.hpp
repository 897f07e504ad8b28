// What a Url shares among its copies: libcurl's parsed form, and its parts as text.
#pragma once

#include <httpretry/http/url.hpp>

#include <curl/curl.h>

namespace httpretry {
namespace detail {

struct CloseUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using CurlUrl = std::unique_ptr<CURLU, CloseUrl>;

// Empty where the URL has none.
std::string url_part(CURLU* url, CURLUPart which, unsigned flags = 0);

}  // namespace detail

struct Url::Parts {
  detail::CurlUrl handle;  // never changed once shared: libcurl copies it for each transfer
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
