// Any text as a URL, and as a reference from it. What is accepted is written, read again, and the
// same; nothing of it could end a line of a request.
#include "lib/core/curl/url_parts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace httpretry;  // NOLINT

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

bool splits_lines(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0 && c <= ' ') || c == 0x7f; });
}

void check(const Url& url) {
  const auto text = url.to_string();
  demand(!splits_lines(text) && !splits_lines(url.host()) && !url.host().empty());
  demand(url.scheme() == "http" || url.scheme() == "https");
  const auto again = Url::parse(text);
  demand(again.has_value());
  demand(again->to_string() == text && again->origin() == url.origin());
  if (!url.has_userinfo()) demand(Url::parse(url.without_secrets())->origin() == url.origin());
}

// What is read without libcurl is what libcurl reads.
void compare_plain(std::string_view text) {
  const auto url = Url::Parts::read_plain(text);
  if (!url) return;
  const auto& plain = url->parts();
  const auto read = Url::Parts::read(detail::CurlUrl(curl_url()), text, 0);
  demand(read.has_value());
  const auto& curl = read->parts();
  demand(plain.text == curl.text && url->origin() == read->origin());
  demand(url->host() == read->host() && plain.port == curl.port);
  demand(url->path() == read->path() && url->query() == read->query());
  demand(plain.host_is_name == curl.host_is_name && !curl.userinfo);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = text.find('\n');
  compare_plain(text.substr(0, line));
  const auto url = Url::parse(text.substr(0, line));
  if (!url) {
    demand(!url.error().message.empty());
    return 0;
  }
  check(*url);
  if (line == std::string_view::npos) return 0;
  if (const auto resolved = url->resolve(text.substr(line + 1))) check(*resolved);
  return 0;
}
