#include "connection_info.hpp"

#include <string_view>

namespace httpretry {
namespace {

std::string text_of(CURL* easy, CURLINFO what) {
  const char* text = nullptr;
  curl_easy_getinfo(easy, what, &text);
  return text == nullptr ? std::string() : std::string(text);
}

long number_of(CURL* easy, CURLINFO what) {
  long number = 0;
  curl_easy_getinfo(easy, what, &number);
  return number;
}

// libcurl has a line for each field; the last is the certificate itself, of many lines.
std::string certificate(const curl_slist* fields) {
  constexpr std::string_view kPem = "cert:";
  std::string text;
  for (; fields != nullptr; fields = fields->next) {
    std::string_view field = fields->data;
    if (equal_ignoring_case(field.substr(0, kPem.size()), kPem)) field.remove_prefix(kPem.size());
    text += field;
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

}  // namespace

ConnectionInfo connection_info(CURL* easy) {
  ConnectionInfo info;
  info.remote_ip = text_of(easy, CURLINFO_PRIMARY_IP);
  info.local_ip = text_of(easy, CURLINFO_LOCAL_IP);
  info.remote_port = static_cast<int>(number_of(easy, CURLINFO_PRIMARY_PORT));
  info.local_port = static_cast<int>(number_of(easy, CURLINFO_LOCAL_PORT));
  info.new_connections = static_cast<int>(number_of(easy, CURLINFO_NUM_CONNECTS));
  info.request_bytes = static_cast<std::uint64_t>(number_of(easy, CURLINFO_REQUEST_SIZE));
  info.verify_result = number_of(easy, CURLINFO_SSL_VERIFYRESULT);
  info.proxy_verify_result = number_of(easy, CURLINFO_PROXY_SSL_VERIFYRESULT);
  info.proxy_status = static_cast<int>(number_of(easy, CURLINFO_HTTP_CONNECTCODE));
  curl_certinfo* chain = nullptr;
  curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain);
  for (int i = 0; chain != nullptr && i < chain->num_of_certs; ++i) {
    info.certificates.push_back(certificate(chain->certinfo[i]));
  }
  return info;
}

}  // namespace httpretry
