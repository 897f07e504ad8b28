#include "named_url.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace httpretry {
namespace {

// Headers without secrets.
constexpr std::string_view kHarmless[] = {
    "Accept",     "Accept-Encoding",   "Accept-Language",    "Cache-Control", "Content-Type",
    "Range",      "Content-Language",  "If-Range",           "If-Match",      "If-None-Match",
    "User-Agent", "If-Modified-Since", "If-Unmodified-Since"};

bool contains(const auto& list, std::string_view name) {
  return std::any_of(std::begin(list), std::end(list),
                     [&](std::string_view known) { return equal_ignoring_case(known, name); });
}

// Removes the credentials, and all headers but harmless ones and those in `allowed`.
void remove_secrets(Request& request, std::span<const std::string> allowed) {
  if (request.options().credentials) request.edit_options().credentials.reset();
  const Headers all = request.headers();
  for (const auto field : all) {
    if (contains(kHarmless, field.name) || contains(allowed, field.name)) continue;
    request.remove_header(field.name);
  }
}

}  // namespace

std::string with_userinfo_of(std::string_view from, std::string to) {
  const auto begin = from.find("://") + 3;
  const auto authority = from.substr(begin, from.find_first_of("/?#", begin) - begin);
  return to.insert(to.find("://") + 3, authority.substr(0, authority.rfind('@') + 1));
}

// `allowed` names headers that another origin may get.
void move_to(Request& request, const Url& url, std::span<const std::string> allowed) {
  const Url from = *request.parsed_url();
  const bool same_origin = url.origin() == from.origin();
  const bool with_user = same_origin && from.has_userinfo();
  request.set_url(with_user ? with_userinfo_of(request.url(), url.to_string()) : url.to_string());
  if (!same_origin) remove_secrets(request, allowed);
}

void move_to_trusted(Request& request, const Url& url) {
  const Url from = *request.parsed_url();
  const auto target = url.to_string();
  request.set_url(from.has_userinfo() ? with_userinfo_of(request.url(), target) : target);
  if (url.origin() != from.origin()) request.remove_header("Host");
}

Error not_followed(const Response& response, CurlCode curl_code, std::string why) {
  Error error(Errc::Protocol, std::move(why));
  error.permanent = true;
  error.curl_code = static_cast<int>(curl_code);
  error.status = response.status;
  error.headers = response.headers;
  error.exchange = response.exchange;
  return error;
}

}  // namespace httpretry
