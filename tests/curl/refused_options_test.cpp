// A build of libcurl may lack options. A client reports that when it is made, or works without
// them.
#include "lib/core/curl/loop.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/curl/cookies.hpp>
#include <httpretry/testing/testing.hpp>

#include <curl/curl.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdarg>
#include <set>
#include <string>

#undef curl_easy_setopt

using namespace httpretry;

namespace {

// Tells the function below what to refuse on this thread, and records what was set.
struct Options {
  std::set<CURLoption> seen;
  CURLoption refused = CURLOPT_LASTENTRY;
};
thread_local Options* options_here = nullptr;

const char* name_of(CURLoption option) {
  const auto* about = curl_easy_option_by_id(option);
  return about == nullptr ? "an unknown option" : about->name;
}

}  // namespace

// In place of libcurl's, for all of this program.
extern "C" CURLcode curl_easy_setopt(CURL* easy, CURLoption option, ...) {
  using Function = CURLcode (*)(CURL*, CURLoption, ...);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "curl_easy_setopt"));
  static_assert(sizeof(void*) == sizeof(long) && sizeof(void*) == sizeof(curl_off_t));
  std::va_list values;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvarargs"  // libcurl declares it so
  va_start(values, option);
#pragma GCC diagnostic pop
  void* value = va_arg(values, void*);
  va_end(values);
  if (options_here != nullptr) {
    options_here->seen.insert(option);
    if (options_here->refused == option) return CURLE_UNKNOWN_OPTION;
  }
  return real(easy, option, value);
}

namespace {

// Runs `work` while this option is refused. Returns the options that were set.
template <class Work>
std::set<CURLoption> with_refused(CURLoption refused, const Work& work) {
  struct Here {
    explicit Here(Options& options) { options_here = &options; }
    ~Here() { options_here = nullptr; }
  };
  Options options;
  options.refused = refused;
  const Here here(options);
  work();
  return options.seen;
}

// Builds without RTSP, without proxies or with another TLS library lack these.
const std::set<CURLoption> kNotNeeded{CURLOPT_RTSP_REQUEST, CURLOPT_PROXY,
                                      CURLOPT_NOPROXY,      CURLOPT_CAPATH,
                                      CURLOPT_PROXY_CAPATH, CURLOPT_CA_CACHE_TIMEOUT};

ClientOptions plain() {
  ClientOptions options;
  options.middlewares = {};
  return options;
}

ClientOptions with_tls() {
  auto options = plain();
  options.connection.ca_pem = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
  options.connection.pinned_keys = "sha256//" + std::string(43, 'A') + "=";
  options.connection.client_certificate.file = "/nowhere/ann.pem";
  options.connection.client_certificate.key_file = "/nowhere/ann.key";
  options.connection.client_certificate.key_password = "secret";
  return options;
}

ClientOptions with_certificate_from_memory() {
  auto options = plain();
  options.connection.ca_path = "/nowhere";
  options.connection.client_certificate.pem =
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
      "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n";
  return options;
}

ClientOptions with_proxy() {
  auto options = plain();
  options.connection.proxy.url = "https://127.0.0.1:1";
  options.connection.proxy.no_proxy = "example";
  options.connection.proxy.ca_file = "/nowhere/ca.pem";
  options.connection.proxy.credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  return options;
}

ClientOptions with_ways() {
  auto options = plain();
  options.connection.unix_socket = "/nowhere/socket";
  options.connection.local_interface = "lo";
  options.connection.connect_to = {"a:1:b:2"};
  options.connection.resolve = {"a:1:127.0.0.1"};
  options.connection.netrc = "/nowhere/netrc";
  options.connection.cookies = std::make_shared<CookieJar>();
  options.connection.curl_options = {{"TCP_NODELAY", 0}};
  return options;
}

}  // namespace

TEST_CASE("an option that libcurl refuses is reported when the client is made, or not needed") {
  int refused = 0;
  for (const auto& make : {plain, with_tls, with_certificate_from_memory, with_proxy, with_ways}) {
    const auto seen = with_refused(CURLOPT_LASTENTRY, [&] { const Client client(make()); });
    CHECK(seen.size() > 40);
    for (const auto option : seen) {
      CAPTURE(name_of(option));
      std::string message;
      with_refused(option, [&] {
        try {
          const Client client(make());
        } catch (const std::exception& error) {  // a curl_options has words of its own
          message = error.what();
        }
      });
      const bool must = kNotNeeded.count(option) == 0 ||
                        (option == CURLOPT_PROXY && make == &with_proxy) ||
                        (option == CURLOPT_NOPROXY && make == &with_proxy) ||
                        (option == CURLOPT_CAPATH && make == &with_certificate_from_memory);
      CHECK((message.find(name_of(option)) != std::string::npos) == must);
      if (must) ++refused;
    }
  }
  CHECK(refused > 200);
}

TEST_CASE("a libcurl that is too old is refused") {
  auto about = *curl_version_info(CURLVERSION_NOW);
  about.version_num = 0x075800;
  CHECK_NOTHROW(check_libcurl(about));
  about.version_num = 0x0757FF;
  about.version = "7.87.0";
  try {
    check_libcurl(about);
    FAIL("was accepted");
  } catch (const std::runtime_error& error) {
    const std::string said = error.what();
    CHECK(said.find("needs libcurl 7.88 or later") != said.npos);
    CHECK(said.find("runs with 7.87.0") != said.npos);
  }
}

TEST_CASE("a request goes out without the options that are not needed") {
  const FaultServer server;
  for (const auto option : kNotNeeded) {
    CAPTURE(name_of(option));
    with_refused(option, [&] {
      Client client(plain());
      for (int round = 0; round < 2; ++round) CHECK(client.get(server.url()));
    });
  }
}

// A client does not try options that only some of its requests need.
TEST_CASE("an option that only this request needs is an error of its call") {
  const FaultServer server;
  auto request = Request::put(server.url(), std::string("body"));
  request.edit_options().credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  request.edit_options().upload_rate = 1 << 20;
  request.edit_options().on_progress = [](const Progress&) {};
  request.edit_options().on_connection = [](const ConnectionInfo&) {};
  const auto tried = with_refused(CURLOPT_LASTENTRY, [&] { const Client client(plain()); });
  const auto used = with_refused(CURLOPT_LASTENTRY, [&] {
    Client client(plain());
    CHECK(client.send(request));
  });
  std::set<std::string> only_used;
  for (const auto option : used) {
    if (tried.count(option) > 0) continue;
    only_used.insert(name_of(option));
    CAPTURE(name_of(option));
    Outcome outcome = Error(Errc::Internal);
    with_refused(option, [&] { outcome = Client(plain()).send(request); });
    if (option == CURLOPT_CERTINFO) {
      CHECK(outcome);
      continue;
    }
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Internal);
    CHECK(outcome.error().permanent);
    CHECK(outcome.error().message.find(name_of(option)) != std::string::npos);
    CHECK(outcome.error().exchange.sent == Sent::Never);
  }
  CHECK(only_used == std::set<std::string>{"CERTINFO", "CLOSESOCKETDATA", "CLOSESOCKETFUNCTION",
                                           "HTTPAUTH", "MAX_SEND_SPEED_LARGE", "NOPROGRESS",
                                           "OPENSOCKETDATA", "OPENSOCKETFUNCTION", "PASSWORD",
                                           "SHARE", "USERNAME"});
}
