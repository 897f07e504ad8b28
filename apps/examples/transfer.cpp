// Request and response bodies, credentials, and connection options.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Task<Result<BearerToken>> fetch_token(Client& issuer, std::string url) {
  Outcome answer = co_await issuer.co_send(Request::post(url, "grant_type=client_credentials"));
  if (!answer) co_return answer.error();
  co_return BearerToken(answer->body, 1h);
}

// A certificate and its key, from wherever a program keeps its secrets.
std::string secret(const char* name) {
  return "-----BEGIN " + std::string(name) + "-----\n...\n-----END " + name + "-----\n";
}

void print(const ConnectionInfo& info) { std::printf("%s\n", info.remote_ip.c_str()); }

// Sets certificates and a key as PEM text. Nothing is sent with them, because they are fake.
void set_certificates_from_memory(TransportOptions& connection) {
  const auto company_pem = secret("CERTIFICATE");
  const auto ann_pem = secret("CERTIFICATE") + secret("PRIVATE KEY");
  connection.ca_pem = company_pem;
  connection.client_certificate.pem = ann_pem;
}

void show(const Progress& now) {
  if (now.to_receive && now.received == *now.to_receive) std::puts("everything has arrived");
}

// Sets options of connections and of a request, to show how. Nothing is sent with them, because
// their files, proxies and hosts do not exist.
void set_options(TransportOptions& connection, Request& request) {
  connection.client_certificate.file = "ann.p12";
  connection.client_certificate.key_password = "secret";
  connection.ca_file = "company.pem";
  connection.min_tls = TlsVersion::Tls13;
  connection.pinned_keys = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
  connection.proxy.url = "socks5h://127.0.0.1:1080";
  connection.proxy.credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  connection.proxy.no_proxy = "localhost,.internal";
  connection.unix_socket = "/run/docker.sock";
  connection.connect_to = {"api.example.com:443:127.0.0.1:8443"};
  connection.resolve = {"api.example.com:8443:192.0.2.1,192.0.2.2"};
  connection.ip_version = IpVersion::V4;
  connection.local_interface = "eth0";
  connection.netrc = "";  // ~/.netrc
  connection.cookies = std::make_shared<CookieJar>();
  connection.curl_options = {{"TCP_NODELAY", 0}};
  request.edit_options().credentials.emplace(Credentials::Scheme::Digest, "ann", "secret");
  request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
  request.edit_options().expect_continue_from = 1 << 20;
  request.edit_options().upload_rate = 1 << 20;
  request.edit_options().on_connection = print;
  request.edit_options().on_progress = show;
}

Task<bool> store(std::string bytes) {
  std::printf("%zu bytes\n", bytes.size());
  co_return true;
}

// Adds 1 to `line_number` and returns that line of a body, after 10 ms. After three lines, an empty
// piece ends the body.
Task<Result<std::string>> next_line(Call& call, int& line_number) {
  const auto later = call.scheduler().now() + std::chrono::milliseconds(10);
  co_await call.scheduler().sleep_until(later, call.stop());
  co_return ++line_number <= 3 ? "line " + std::to_string(line_number) + "\n" : std::string();
}

Form pictures(const std::string& path) {
  FormPart part("pictures", Body());
  FormPart file("", Body::file(path));
  file.file_name = "cat.jpg";
  part.files.push_back(file);
  return Form().add(part);
}

// Uploads five kinds of bodies: a file, a generator that each attempt starts again, a generator
// that can run only once, a coroutine, and a form. Returns whether each upload got a response.
bool upload(Client& client, const std::string& url, const std::string& path) {
  // `start` returns a new generator, which writes a thousand letters and then returns 0, the end.
  const auto start = [] {
    return [left = std::size_t{1000}](std::span<char> into) mutable {
      const auto count = std::min(into.size(), left);
      std::fill_n(into.begin(), count, 'a');
      left -= count;
      return count;
    };
  };
  const Outcome file = client.put(url, Body::file(path));
  const Outcome generated = client.put(url, Body::generated(start));
  const auto generate = start();
  const Outcome once = client.put(url, Body::once(generate));
  const auto next = [line_number = 0](Call& call) mutable { return next_line(call, line_number); };
  const Outcome awaited = client.put(url, awaited_body_once(next));
  const Outcome form = client.send(Request::post(url, Body()).set_form(pictures(path)));
  return file && generated && once && awaited && form;
}

int download(Client& client, const std::string& url, const std::string& path) {
  FileOptions options;
  options.keep_partial = true;  // a failed download can be resumed
  const Outcome outcome = client.send(Request::get(url).sink(save_to(path, options)));
  if (!outcome) std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
  return outcome ? 0 : 1;
}

}  // namespace

// Sends a form, downloads into functions and into a file, and uploads several kinds of bodies.
int main() {
  // The same server is the API and the issuer of its tokens.
  FaultServer server(Scenario{{200, "a response, or a token"}});
  const auto api_origin = server.url("/");
  const auto url = server.url("/v1/items");
  Client issuer = Client::bare();  // `client` retries, so a retry here would multiply the attempts
  Client client(ClientOptions().with_attempt_middleware(
      bearer([&](Call&) { return fetch_token(issuer, url); }, {api_origin})));

  Form form;
  form.add("title", "A cat").add_file("picture", "/etc/hostname");
  const Outcome sent = client.send(Request::post(url, Body()).set_form(form));

  auto request = Request::get(url).sink(
      pass_to([](std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }));
  const Outcome printed = client.send(request);
  request.sink(pass_to([](std::string bytes, Call&) { return store(bytes); }));
  const Outcome stored = client.send(request);

  // These options are only set, to show them: nothing is sent with them.
  TransportOptions connection;
  set_options(connection, request);
  TransportOptions without_files;
  set_certificates_from_memory(without_files);

  const int download_status = download(client, url, "/dev/null");
  const bool all_succeeded = sent && printed && stored && upload(client, url, "/etc/hostname");
  return all_succeeded ? download_status : 1;
}
