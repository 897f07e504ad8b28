// Calls with credentials of every kind, mixed on shared connections: none, Basic, Digest, tokens,
// client certificates and proxies, over HTTP/1.1 and HTTP/2. Servers, some of whose responses are
// faults, know what each call means, and compare every body, key and credential with it. Calls are
// stopped and clients drained at random moments.
//
//   identity_soak [--calls N] [--at-once N] [--seed N]
#include "http2_fault_server.hpp"
#include "ledger.hpp"

#include <httpretry/body/awaited_body.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>
#include <lib/core/base/text.hpp>
#include <tests/open_files.hpp>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

using namespace httpretry;
using namespace httpretry::ledger;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kChallenge[] = R"(Digest realm="r", nonce="n", qop="auth", algorithm=MD5)";

// Evenly spread, and the same for the same number.
std::uint64_t scatter(std::uint64_t number) {
  number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
  return number ^ (number >> 31U);
}

std::string base64(const std::string& text) {
  std::string encoded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  encoded.resize(static_cast<std::size_t>(size));
  return encoded;
}

enum class Login : std::uint8_t { None, Basic, InUrl, Digest, UnaskedDigest, Token };
constexpr std::size_t kLogins = 6;
enum class Place : std::uint8_t { Plain, Http2, WithCertificates };
constexpr std::size_t kPlaces = 3;
enum class Way : std::uint8_t { Direct, Certified, BasicProxy, DigestProxy };
constexpr std::size_t kWays = 4;

// The request that a call means to send. Both sides derive it from the number of the call.
struct Meaning {
  Meaning(std::uint64_t seed, std::size_t call);

  std::string method, body, key, user;
  Login login;
  Place place;
  Way way;
  bool leaves = false;  // it is redirected to another origin
  std::uint64_t dice;   // for what does not change its meaning

  [[nodiscard]] bool digest() const {
    return login == Login::Digest || login == Login::UnaskedDigest;
  }
  [[nodiscard]] bool unsafe() const { return method == "POST" && key.empty(); }
  // The value of Authorization; of digest its beginning.
  [[nodiscard]] std::string authorization() const {
    switch (login) {
      case Login::None: return "";
      case Login::Token: return "Bearer " + user;
      case Login::Basic:
      case Login::InUrl: return "Basic " + base64(user + ":secret");
      default: return "Digest username=\"" + user + "\"";
    }
  }
};

Meaning::Meaning(std::uint64_t seed, std::size_t call)
    : user("user" + std::to_string(call % 7)), dice(scatter(seed ^ (call << 20U))) {
  static constexpr std::array kMethods{"GET", "HEAD", "PUT", "PUT", "DELETE", "POST", "POST"};
  auto draw = [rest = scatter(dice)](std::uint64_t limit) mutable {
    const auto drawn = rest % limit;
    rest = scatter(rest);
    return drawn;
  };
  method = kMethods[draw(kMethods.size())];
  login = static_cast<Login>(draw(kLogins));
  place = static_cast<Place>(draw(kPlaces));
  way = static_cast<Way>(draw(kWays));
  // The server with certificates speaks HTTP/2 only, which digest does not use. And where a server
  // wants no digest, libcurl forgets the login at a proxy.
  if (digest() && place == Place::WithCertificates) place = Place::Http2;
  if (login == Login::UnaskedDigest && way != Way::Certified) way = Way::Direct;
  leaves = method == "GET" && place != Place::WithCertificates && draw(4) == 0;
  if (method.front() == 'P') {
    body.assign(draw(40) == 0 ? draw(100'000) : draw(3000), static_cast<char>('a' + call % 26));
    body += std::to_string(call);
    if (draw(2) == 0) key = "key-" + std::to_string(call);
  }
}

// The bodies of requests: from memory, from functions, awaited, with and without their size.
Body as_body(const std::string& text, std::uint64_t dice) {
  const auto generate = [text] {
    return [text, at = std::size_t{0}](std::span<char> into) mutable {
      const auto count = text.copy(into.data(), into.size(), at);
      at += count;
      return count;
    };
  };
  const auto pieces = [text]() -> NextPiece {
    return [text, at = std::size_t{0}](Call& call) mutable -> Task<Result<std::string>> {
      const auto soon = call.scheduler().now() + 100us;
      co_await call.scheduler().sleep_until(soon, call.stop());
      auto piece = text.substr(at, 900);
      at += piece.size();
      co_return piece;
    };
  };
  switch (dice % 6) {
    case 0: return Body::generated(generate);
    case 1: return Body::generated(generate, text.size());
    case 2: return awaited_body(pieces);
    case 3: return awaited_body(pieces, text.size());
    default: return text;
  }
}

// Records the result of each call, as the servers and the client saw it.
class Book {
 public:
  Book(std::uint64_t seed, std::size_t calls) : seed_(seed), calls_(calls) {}
  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  [[nodiscard]] Meaning meaning(std::size_t call) const { return {seed_, call}; }
  [[nodiscard]] std::uint64_t draw() { return scatter(seed_ ^ (draws_++ << 40U)); }

  // A whole request that a server has received, for a call that is known.
  struct Received {
    std::string_view method, key, authorization;
    std::uint64_t body_hash;
    bool empty;
    bool certificate;
  };
  enum class Verdict : std::uint8_t { Whole, AsksForChallenge };
  Verdict compare(std::size_t call, Place place, const Received& received) {
    const auto meant = meaning(call);
    ++seen;
    const auto check = [&](bool matches, const char* what) {
      if (!matches) fail("call " + std::to_string(call) + " was seen with another " + what);
    };
    check(received.key == meant.key, "key");
    check(place == meant.place, "server");
    check(received.method.empty() || received.method == meant.method, "method");
    check(received.certificate == (place == Place::WithCertificates && meant.way == Way::Certified),
          "certificate");
    const auto wanted = meant.authorization();
    const bool challenged = meant.digest() && received.authorization.empty();
    if (meant.digest()) {
      check(challenged || received.authorization.starts_with(wanted), "digest");
    } else {
      check(received.authorization == wanted, "Authorization");
    }
    const bool whole = received.body_hash == hash(meant.body);
    if (challenged && (meant.login == Login::Digest || !whole)) {
      check(whole || received.empty, "body, to get a challenge");
      ++probes;
      return Verdict::AsksForChallenge;
    }
    check(whole, "body");
    return Verdict::Whole;
  }
  // `refused`: the response says that nothing was done.
  void execute(std::size_t call, bool refused) {
    auto& entry = calls_[call];
    if (meaning(call).unsafe() && entry.executed) {
      fail("call " + std::to_string(call) + " is unsafe, was executed, and was seen again");
    }
    if (!refused) entry.executed = true;
  }
  // Arrived by a redirect from another origin, with nothing that was meant for that one.
  void arrive(std::string_view authorization, bool certificate) {
    ++arrived;
    if (!authorization.empty() || certificate) fail("credentials have followed a redirect");
  }

  void call_ends(std::size_t call, const Outcome& outcome) {
    const auto meant = meaning(call);
    auto& entry = calls_[call];
    if (++entry.ends != 1) fail("call " + std::to_string(call) + " ended twice");
    if (!outcome) {
      ++errors[static_cast<std::size_t>(outcome.error().code)];
      if (outcome.error().code == Errc::Internal) fail("an error: " + outcome.error().message);
      return;
    }
    if (!outcome->is_2xx()) {
      ++statuses;
      return;
    }
    ++good[static_cast<std::size_t>(meant.login)];
    ++by_way[static_cast<std::size_t>(meant.way)];
    if (outcome->http_version == "2") ++by_http2;
    if (meant.leaves) return;
    if (!entry.executed) fail("call " + std::to_string(call) + " succeeded, and no server did it");
    if (outcome->headers.get("X-Call") != std::to_string(call)) {
      fail("call " + std::to_string(call) + " got the response of another");
    }
  }
  void balance() const {
    for (const auto& entry : calls_) {
      if (entry.ends != 1) fail("a call did not end once");
    }
    for (const auto& count : good) {
      if (count == 0) fail("a kind of credentials never succeeded");
    }
    for (const auto& count : by_way) {
      if (count == 0) fail("a way to the servers never succeeded");
    }
    if (by_http2 == 0 || arrived == 0 || probes == 0) fail("something never happened");
  }

  std::atomic<std::uint64_t> seen = 0, probes = 0, arrived = 0, by_http2 = 0, statuses = 0;
  std::array<std::atomic<std::uint64_t>, kLogins> good{};
  std::array<std::atomic<std::uint64_t>, kWays> by_way{};
  std::array<std::atomic<std::uint64_t>, 16> errors{};

 private:
  struct Entry {
    std::atomic<bool> executed = false;
    std::atomic<std::uint8_t> ends = 0;
  };
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> draws_ = 0;
  std::vector<Entry> calls_;
};

class Servers {
 public:
  Servers(std::uint64_t seed, Book& book)
      : book_(book),
        certified_(seed, [this](const Sight& sight) { saw(sight); }),
        plain_(origin(Place::Plain), options(Tls::Off, false)),
        http2_(origin(Place::Http2), options(Tls::Good, false)),
        basic_(proxy(Way::BasicProxy), options(Tls::Off, true)),
        digest_(proxy(Way::DigestProxy), options(Tls::Off, true)) {}

  [[nodiscard]] std::string url(const Meaning& meant, const std::string& path) const {
    switch (meant.place) {
      case Place::Plain: return plain_.url(path);
      case Place::Http2: return http2_.url(path);
      default: return certified_.url(path);
    }
  }
  [[nodiscard]] std::string proxy_url(Way way) const {
    return way == Way::BasicProxy ? basic_.url("") : digest_.url("");
  }

 private:
  static FaultServerOptions options(Tls tls, bool proxy) {
    FaultServerOptions options;
    options.tls = tls;
    options.proxy = proxy;
    options.max_seen = 1;
    return options;
  }
  Scenario origin(Place place) {
    Step step;
    step.respond = [this, place](const SeenRequest& seen) { return respond(place, seen); };
    Scenario scenario({step});
    scenario.paths.emplace("/http2", Script({Fault::Http2NoEndStream}));  // so that it speaks it
    return scenario;
  }
  Scenario proxy(Way way) {
    Step step;
    step.respond = [this, way](const SeenRequest& seen) {
      const auto login = seen.headers.get("Proxy-Authorization").value_or("");
      if (way == Way::BasicProxy) {
        if (login != "Basic " + base64("proxy:secret"))
          fail("another login at the proxy: " + std::string(login) + " for " + seen.method + " " +
               seen.target);
      } else if (!login.starts_with("Digest username=\"proxy\"")) {
        if (!seen.body.empty()) fail("a body without a login at the proxy");
        return Step(407, Headers{{"Proxy-Authenticate", kChallenge}}, "who?");
      }
      return seen.method == "CONNECT" ? Step(200) : respond(Place::Plain, seen);
    };
    return Scenario({step});
  }

  Step respond(Place place, const SeenRequest& seen) {
    const auto authorization = seen.headers.get("Authorization").value_or("");
    if (seen.target.find("/arrive") != std::string::npos) {
      book_.arrive(authorization, false);
      return Step(200, "arrived");
    }
    const auto id = seen.headers.get("X-Call");
    if (!id) fail("a request without X-Call");
    if (place != Place::WithCertificates && seen.headers.contains("Proxy-Authorization") &&
        seen.target.starts_with("/")) {
      fail("the login of a proxy came to a server");
    }
    if (!seen.body_complete) return Step(400);
    const auto call = number_of(*id);
    const auto verdict =
        book_.compare(call, place,
                      {seen.method, seen.headers.get("Idempotency-Key").value_or(""), authorization,
                       hash(seen.body), seen.body.empty(), false});
    const auto meant = book_.meaning(call);
    if (verdict == Book::Verdict::AsksForChallenge && meant.login == Login::Digest) {
      return Step(401, Headers{{"WWW-Authenticate", kChallenge}}, "who?");
    }
    const bool probe = verdict == Book::Verdict::AsksForChallenge;
    if (meant.leaves) {
      const auto there = meant.dice % 2 == 0 ? certified_.url("/arrive") : other(place, "/arrive");
      return Step(302, Headers{{"Location", there}});
    }
    auto step = fault_or(
        Step(200, Headers{{"X-Call", std::string(*id)}}, std::string(meant.dice % 2000, 'b')));
    const bool refused = step.status == 429 || step.headers.contains("Retry-After");
    if (!probe) book_.execute(call, refused);
    return step;
  }
  [[nodiscard]] std::string other(Place place, const char* path) const {
    return place == Place::Plain ? http2_.url(path) : certified_.url(path);
  }
  Step fault_or(Step good) {
    switch (book_.draw() % 40) {
      case 0: return Fault::Reset;
      case 1: return Fault::Close;
      case 2: good.fault = Fault::Truncate; return good;
      case 3: return {503, "busy"};
      case 4: return {503, Headers{{"Retry-After", "0"}}, "later"};
      case 5: return {429, Headers{{"Retry-After", "0"}}, "less"};
      case 6: good.delay = 5ms; return good;
      default: return good;
    }
  }
  void saw(const Sight& sight) {
    if (!sight.whole) return;
    if (sight.target == "/arrive") return book_.arrive(sight.authorization, sight.certificate);
    const auto call = number_of(sight.id);
    book_.compare(call, Place::WithCertificates,
                  {"", sight.key, sight.authorization, sight.body_hash, false, sight.certificate});
    book_.execute(call, sight.refused);
  }
  [[nodiscard]] std::size_t number_of(std::string_view id) const {
    const auto call = to_number<std::size_t>(id);
    if (!call || *call >= book_.size()) fail("a request of no call");
    return *call;
  }

  Book& book_;
  Http2FaultServer certified_;
  FaultServer plain_;
  FaultServer http2_;
  FaultServer basic_;
  FaultServer digest_;
};

// A certificate and its key, as PEM text.
struct Certificate {
  Certificate() {
    const faults::Certificates made(Tls::SelfSigned);
    const Owned<BIO, BIO_free_all> out(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(out.get(), SSL_CTX_get0_certificate(&made.context()));
    PEM_write_bio_PrivateKey(out.get(), SSL_CTX_get0_privatekey(&made.context()), nullptr, nullptr,
                             0, nullptr, nullptr);
    char* text = nullptr;
    const auto size = BIO_get_mem_data(out.get(), &text);
    pem.assign(text, static_cast<std::size_t>(size));
  }
  std::string pem;
};

// The clients, one for each way; each is drained at times, and another takes its place.
class Clients {
 public:
  explicit Clients(const Servers& servers) : servers_(servers) {
    for (std::size_t i = 0; i < kWays; ++i) clients_[i] = make(static_cast<Way>(i));
  }
  std::shared_ptr<Client> get(Way way) {
    const std::lock_guard lock(mutex_);
    return clients_[static_cast<std::size_t>(way)];
  }
  void drain(Way way, Duration patience) {
    auto next = make(way);
    {
      const std::lock_guard lock(mutex_);
      std::swap(next, clients_[static_cast<std::size_t>(way)]);
    }
    next->drain(patience);
    // Whoever still sends with it may free it; not so a callback, which is on a loop of the client.
    while (next.use_count() > 1) std::this_thread::yield();
  }

 private:
  [[nodiscard]] std::shared_ptr<Client> make(Way way) const {
    RetryPolicy policy;
    policy.max_attempts = 8;
    policy.backoff.initial = 1ms;
    policy.backoff.max_interval = 20ms;
    policy.throttle_backoff.reset();
    policy.attempt_timeout = 2s;
    policy.budget.kind = BudgetPolicy::Kind::None;
    ClientOptions options;
    options.middlewares = {redirect(), retry(policy)};
    options.threads = 2;
    auto& connection = options.connection;
    // Nothing but the certificates of clients tells their sessions apart then.
    connection.verify_tls = false;
    connection.proxy.url = "";
    if (way == Way::Certified) connection.client_certificate.pem = certificate_.pem;
    if (way == Way::BasicProxy || way == Way::DigestProxy) {
      const bool digest = way == Way::DigestProxy;
      connection.proxy.url = servers_.proxy_url(way);
      connection.proxy.credentials.emplace(
          digest ? Credentials::Scheme::Digest : Credentials::Scheme::Basic, "proxy", "secret");
    }
    return std::make_shared<Client>(options);
  }

  const Servers& servers_;
  const Certificate certificate_;
  std::mutex mutex_;
  std::array<std::shared_ptr<Client>, kWays> clients_;
};

// The calls, `at_once` of them at any time.
class Load {
 public:
  Load(Book& book, const Servers& servers) : book_(book), servers_(servers), clients_(servers) {}

  void run(std::size_t at_once) {
    const std::jthread drainer([this](const std::stop_token& over) { drain_some(over); });
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < at_once; ++i) {
      threads.emplace_back([this, i] {
        for (auto call = next_++; call < book_.size(); call = next_++) send(call, i % 4);
      });
    }
    watch();
  }
  [[nodiscard]] int drains() const { return drains_; }

 private:
  [[nodiscard]] Request request(std::size_t call, const Meaning& meant) const {
    auto url = servers_.url(meant, "/" + std::to_string(meant.dice % 5));
    if (meant.login == Login::InUrl) url.insert(url.find("//") + 2, meant.user + ":secret@");
    Request request(meant.method, url);
    request.set_header("X-Call", std::to_string(call));
    if (!meant.key.empty()) request.set_header("Idempotency-Key", meant.key);
    if (!meant.body.empty()) request.set_body(as_body(meant.body, meant.dice / 8));
    if (meant.login == Login::Token) request.set_header("Authorization", meant.authorization());
    auto& options = request.edit_options();
    if (meant.login == Login::Basic) {
      options.credentials.emplace(Credentials::Scheme::Basic, meant.user, "secret");
    }
    if (meant.digest()) {
      options.credentials.emplace(Credentials::Scheme::Digest, meant.user, "secret");
    }
    return request;
  }
  // A fourteenth of the calls is stopped, mostly while it is in flight.
  void send(std::size_t call, std::size_t how) {
    const auto meant = book_.meaning(call);
    CallOptions options;
    const std::stop_source stop;
    if (meant.dice / 64 % 14 == 0) options.stop = stop.get_token();
    auto client = clients_.get(meant.way);
    if (how == 0 && options.stop.stop_possible()) options.timeout = 3ms;
    if (how == 0) {
      book_.call_ends(call, client->send(request(call, meant), options));
    } else {
      auto pending = client->send_async(request(call, meant), options);
      if (options.stop.stop_possible()) {
        pending.wait_for(std::chrono::microseconds(meant.dice / 1024 % 8000));
        stop.request_stop();
      }
      book_.call_ends(call, pending.get());
    }
    ++ended_;
  }
  void drain_some(const std::stop_token& over) {
    std::mt19937_64 random(book_.draw());
    while (!over.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 500));
      clients_.drain(static_cast<Way>(random() % kWays), std::chrono::milliseconds(random() % 50));
      ++drains_;
    }
  }
  void watch() const {
    auto before = ended_.load();
    auto since = Clock::now();
    while (before < book_.size()) {
      std::this_thread::sleep_for(10ms);
      const auto now = ended_.load();
      if (now != before) since = Clock::now();
      before = now;
      if (Clock::now() - since > 120s) fail("calls do not end: " + std::to_string(now) + " have");
    }
  }

  Book& book_;
  const Servers& servers_;
  Clients clients_;
  std::atomic<int> drains_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> ended_ = 0;
};

void print(const Book& book, int drains, double seconds) {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  static constexpr std::array kLoginNames{"none",   "Basic",          "in the URL",
                                          "Digest", "unasked Digest", "token"};
  static constexpr std::array kWayNames{"directly", "with a certificate", "by a proxy with Basic",
                                        "by a proxy with Digest"};
  std::printf(
      "%zu calls in %.1f s; servers saw %llu requests, %llu of them to get a challenge, and "
      "%llu after a redirect to another origin; %d clients drained\n",
      book.size(), seconds, number(book.seen), number(book.probes), number(book.arrived), drains);
  std::printf("succeeded:");
  for (std::size_t i = 0; i < kLogins; ++i)
    std::printf(" %llu %s,", number(book.good[i]), kLoginNames[i]);
  for (std::size_t i = 0; i < kWays; ++i)
    std::printf(" %llu %s,", number(book.by_way[i]), kWayNames[i]);
  std::printf(" %llu over HTTP/2\nfailed: %llu with a status", number(book.by_http2),
              number(book.statuses));
  for (std::size_t i = 0; i < book.errors.size(); ++i) {
    if (book.errors[i] == 0) continue;
    const auto word = to_string(static_cast<Errc>(i));
    std::printf(", %llu %.*s", number(book.errors[i]), static_cast<int>(word.size()), word.data());
  }
  std::printf("\n");
}

std::uint64_t number(const char* text) {
  const auto value = to_number<std::uint64_t>(text);
  if (!value) fail(std::string("\"") + text + "\" is no number");
  return *value;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t calls = 2000;
  std::uint64_t at_once = 32;
  std::uint64_t seed = std::random_device{}();
  for (int i = 1; i < argc; i += 2) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--calls") == 0) {
      calls = number(argv[i + 1]);
    } else if (has_value && std::strcmp(argv[i], "--at-once") == 0) {
      at_once = number(argv[i + 1]);
    } else if (has_value && std::strcmp(argv[i], "--seed") == 0) {
      seed = number(argv[i + 1]);
    } else {
      fail("usage: identity_soak [--calls N] [--at-once N] [--seed N]");
    }
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::printf("identity_soak: %llu calls, seed %llu\n", static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const auto files = open_files();
  const auto began = Clock::now();
  Book book(seed, calls);
  int drains = 0;
  {
    const Servers servers(seed, book);
    Load load(book, servers);
    load.run(at_once);
    drains = load.drains();
  }
  const auto patience = Clock::now() + 20s;
  while (open_files() > files && Clock::now() < patience) std::this_thread::yield();
  if (open_files() > files) fail("descriptors were left open");
  print(book, drains, std::chrono::duration<double>(Clock::now() - began).count());
  book.balance();
}
