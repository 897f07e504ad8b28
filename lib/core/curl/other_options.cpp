// The libcurl options that have no member in TransportOptions (TransportOptions::curl_options):
// which of them are refused, and what to use instead.
#include "easy.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace httpretry {
namespace {

struct Refused {
  std::string_view names;  // with a space before and after each
  const char* why;
};

// The options that the library sets or relies on. Listed by name, because other versions of libcurl
// have other options.
constexpr std::array kRefused{
    Refused{" CAINFO CAINFO_BLOB CAPATH CA_CACHE_TIMEOUT ",
            "use TransportOptions::ca_file, ca_pem, ca_path and ca_reload"},
    Refused{" PROXY_CAINFO PROXY_CAINFO_BLOB PROXY_CAPATH ",
            "use TransportOptions::proxy.ca_file and proxy.ca_pem"},
    Refused{" PROXYHEADER ", "use TransportOptions::proxy.headers"},
    Refused{" SSLCERT SSLCERT_BLOB SSLCERTTYPE SSLKEY SSLKEY_BLOB SSLKEYTYPE KEYPASSWD ",
            "use TransportOptions::client_certificate"},
    Refused{" SSL_VERIFYPEER SSL_VERIFYHOST ", "use TransportOptions::verify_tls"},
    Refused{" PROXY_SSL_VERIFYPEER PROXY_SSL_VERIFYHOST ",
            "use TransportOptions::proxy.verify_tls"},
    Refused{" SSLVERSION PROXY_SSLVERSION ", "use TransportOptions::min_tls and max_tls"},
    Refused{" PINNEDPUBLICKEY ", "use TransportOptions::pinned_keys"},
    Refused{" PROXY PRE_PROXY PROXYPORT PROXYTYPE PROXYUSERPWD PROXYUSERNAME PROXYPASSWORD "
            "PROXYAUTH NOPROXY ",
            "use TransportOptions::proxy"},
    Refused{" UNIX_SOCKET_PATH ABSTRACT_UNIX_SOCKET ", "use TransportOptions::unix_socket"},
    Refused{" INTERFACE ", "use TransportOptions::local_interface"},
    Refused{" IPRESOLVE ", "use TransportOptions::ip_version"},
    Refused{" CONNECT_TO ", "use TransportOptions::connect_to"},
    Refused{" RESOLVE ", "use TransportOptions::resolve"},
    Refused{" DNS_CACHE_TIMEOUT DNS_USE_GLOBAL_CACHE DNS_SERVERS DNS_INTERFACE DNS_LOCAL_IP4 "
            "DNS_LOCAL_IP6 DOH_URL DOH_SSL_VERIFYHOST DOH_SSL_VERIFYPEER DOH_SSL_VERIFYSTATUS "
            "QUICK_EXIT ",
            "libcurl looks up no names; use TransportOptions::lookup"},
    Refused{" NETRC NETRC_FILE ", "use TransportOptions::netrc"},
    Refused{" COOKIE COOKIEFILE COOKIEJAR COOKIELIST COOKIESESSION ",
            "use TransportOptions::cookies"},
    Refused{" USERAGENT ", "use TransportOptions::user_agent"},
    Refused{" MAXAGE_CONN ", "use TransportOptions::max_idle"},
    Refused{" CONNECTTIMEOUT CONNECTTIMEOUT_MS ", "use TransportOptions::connect_timeout"},
    Refused{" TIMEOUT TIMEOUT_MS SERVER_RESPONSE_TIMEOUT ACCEPTTIMEOUT_MS ",
            "use the time limits of a policy or a request, listed in time.hpp"},
    Refused{" MAXFILESIZE MAXFILESIZE_LARGE ", "use max_body of the client or the request"},
    Refused{" MAX_SEND_SPEED_LARGE ", "use RequestOptions::upload_rate"},
    Refused{" EXPECT_100_TIMEOUT_MS ", "use RequestOptions::expect_timeout"},
    Refused{" HTTP_VERSION PIPEWAIT ", "use RequestOptions::http_version"},
    Refused{" FRESH_CONNECT FORBID_REUSE CONNECT_ONLY ", "use RequestOptions::fresh_connection"},
    Refused{" USERPWD USERNAME PASSWORD HTTPAUTH AWS_SIGV4 UNRESTRICTED_AUTH ",
            "use RequestOptions::credentials"},
    Refused{" XOAUTH2_BEARER ", "use the middleware bearer()"},
    Refused{" ACCEPT_ENCODING TRANSFER_ENCODING HTTP_CONTENT_DECODING HTTP_TRANSFER_DECODING ",
            "use RequestOptions::compressed"},
    Refused{" CERTINFO ", "use RequestOptions::on_connection"},
    Refused{" NOPROGRESS PROGRESSFUNCTION XFERINFOFUNCTION XFERINFODATA ",
            "use RequestOptions::on_progress"},
    Refused{" HTTPHEADER REFERER RANGE TIMECONDITION TIMEVALUE TIMEVALUE_LARGE ",
            "set the header of the request"},
    Refused{" URL CURLU PATH_AS_IS PORT DEFAULT_PROTOCOL REQUEST_TARGET CUSTOMREQUEST HTTPGET POST "
            "PUT UPLOAD "
            "NOBODY POSTFIELDS COPYPOSTFIELDS POSTFIELDSIZE POSTFIELDSIZE_LARGE INFILESIZE "
            "INFILESIZE_LARGE MIMEPOST HTTPPOST RESUME_FROM RESUME_FROM_LARGE ",
            "the URL, the method and the body are those of the request"},
    Refused{" FOLLOWLOCATION MAXREDIRS AUTOREFERER POSTREDIR ",
            "use the middleware redirect(), which keeps secrets from other origins"},
    Refused{" PROTOCOLS PROTOCOLS_STR REDIR_PROTOCOLS REDIR_PROTOCOLS_STR ALTSVC ALTSVC_CTRL HSTS "
            "HSTS_CTRL ",
            "a request goes to the origin of its URL, by http or https, and nowhere else"},
    Refused{" FAILONERROR HEADER HTTP09_ALLOWED IGNORE_CONTENT_LENGTH KEEP_SENDING_ON_ERROR CRLF "
            "TRANSFERTEXT SUPPRESS_CONNECT_HEADERS HEADEROPT ERRORBUFFER NOSIGNAL PRIVATE SHARE "
            "STDERR VERBOSE RTSP_REQUEST SSL_SESSIONID_CACHE ",
            "the library relies on its value"},
};

[[noreturn]] void refuse_curl_option(const std::string& name, const std::string& why) {
  throw std::invalid_argument("TransportOptions::curl_options: " + printable(name) + ": " + why);
}

// Returns the name as libcurl lists it, without the prefix.
std::string without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "CURLOPT_";
  return std::string(name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name);
}

// Returns libcurl's description of the option, or nullptr. Old names map to the current ones.
const curl_easyoption* description_of(const CurlOption& option) {
  const auto* by_name = curl_easy_option_by_name(without_prefix(option.name).c_str());
  return by_name == nullptr ? nullptr : curl_easy_option_by_id(by_name->id);
}

// Sets the option with the type of argument that libcurl expects for it.
CURLcode set_on(CURL* easy, const curl_easyoption& about, const CurlOption& option) {
  if (const auto* text = std::get_if<std::string>(&option.value)) {
    return curl_easy_setopt(easy, about.id, text->c_str());
  }
  const long number = std::get<long>(option.value);
  if (about.type == CURLOT_OFF_T) {
    return curl_easy_setopt(easy, about.id, static_cast<curl_off_t>(number));
  }
  return curl_easy_setopt(easy, about.id, number);
}

// Checks one option of TransportOptions::curl_options, and tries its value on the unused handle
// `easy`. Throws std::invalid_argument, by way of `refuse`, if the option is unknown to this
// libcurl, is one that the library sets itself, or takes a pointer, or if libcurl does not accept
// the value.
void check_curl_option(CURL* easy, const CurlOption& option) {
  const auto* description = description_of(option);
  if (description == nullptr) {
    refuse_curl_option(option.name, std::string("libcurl ") + libcurl().version +
                                        " has no such option; expected a name such as TCP_NODELAY");
  }
  // kRefused has the options that the library sets or relies on. An entry may have several names in
  // one text, with a space before and after each.
  const auto name = " " + std::string(description->name) + " ";
  const auto* refused = std::ranges::find_if(
      kRefused, [&](const Refused& entry) { return entry.names.find(name) != entry.names.npos; });
  if (refused != kRefused.end()) refuse_curl_option(option.name, refused->why);
  const auto type = description->type;
  const bool takes_text = type == CURLOT_STRING;
  const bool takes_number = type == CURLOT_LONG || type == CURLOT_VALUES || type == CURLOT_OFF_T;
  if (!takes_text && !takes_number) {
    refuse_curl_option(option.name, "it takes a pointer; only numbers and strings can be set");
  }
  const auto* text = std::get_if<std::string>(&option.value);  // nullptr if the value is a number
  if (takes_text != (text != nullptr)) {
    refuse_curl_option(option.name, takes_text ? "it takes a string, not a number"
                                               : "it takes a number, not a string");
  }
  if (text != nullptr && text->find('\0') != text->npos) {
    refuse_curl_option(option.name, "a NUL byte is not allowed");
  }
  const auto code = set_on(easy, *description, option);
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code == CURLE_OK) return;
  refuse_curl_option(option.name, std::string("libcurl refuses it: ") + curl_easy_strerror(code));
}

}  // namespace

CurlOption::CurlOption(std::string option, std::variant<long, std::string> new_value)
    : name(std::move(option)), value(std::move(new_value)) {}

void check_curl_options(const std::vector<CurlOption>& options) {
  if (options.empty()) return;
  const Owned<CURL, curl_easy_cleanup> easy(curl_easy_init());
  if (!easy) throw std::bad_alloc();
  for (const auto& option : options) check_curl_option(easy.get(), option);
}

void Easy::set_curl_option(const CurlOption& option) {
  const auto* about = description_of(option);
  const auto code = set_on(handle(), *about, option);
  if (code != CURLE_OK) fail(about->id, code);
}

}  // namespace httpretry
