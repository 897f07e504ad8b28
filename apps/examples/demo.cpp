// Puts `curl --retry` and httpretry through the same outage, and compares the results. Run it with
// `./dev demo`. The exit status is 0 only if everything that the summary says is true.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr auto kOutage = 3250ms;
constexpr int kReads = 5;
constexpr int kOrders = 3;

constexpr auto kPolicies = R"({
  "version": 1,
  "default": "shop",
  "policies": {
    "shop": {
      "max_attempts": 6,
      "idempotency_key": "Idempotency-Key",
      "breaker": {"kind": "consecutive", "failures": 4, "when_open": "wait",
                  "open_for": {"kind": "constant", "interval": "500ms"}}
    }
  },
  "endpoints": [
    {"name": "report", "match": {"host": "*", "path": "/report"}, "policy": {"preset": "standard"}}
  ]
})";

// A server whose database hangs from the beginning until kOutage has passed. It answers reads with
// a 503. It books orders, but so late that the gateway has answered 504 by then. An order with a
// known Idempotency-Key is not booked again. The quota of /report is used up for an hour.
class Shop {
 public:
  explicit Shop(Time begin) : begin_(begin) {}

  std::string url(std::string_view path) const { return server_.url(path); }

  int booked() const {
    const std::lock_guard lock(mutex_);
    return booked_;
  }

  // Returns when requests arrived, since the beginning.
  std::vector<Duration> arrivals() const {
    std::vector<Duration> found;
    for (const auto& request : server_.seen()) found.push_back(request.arrived - begin_);
    return found;
  }

  int requests_in_the_outage() const {
    const auto all = arrivals();
    return static_cast<int>(
        std::count_if(all.begin(), all.end(), [](Duration arrival) { return arrival < kOutage; }));
  }

 private:
  Step respond(const SeenRequest& request) {
    if (request.path == "/report") return {429, {{"Retry-After", "3600"}}};
    const bool is_down = std::chrono::steady_clock::now() - begin_ < kOutage;
    if (request.method != "POST") return is_down ? Step(503) : Step(200, "the items");
    book(request.headers.get("Idempotency-Key"));
    return is_down ? Step(504) : Step(201, "booked");
  }

  void book(std::optional<std::string_view> key) {
    const std::lock_guard lock(mutex_);
    if (!key || keys_.insert(std::string(*key)).second) ++booked_;
  }

  Scenario scenario() {
    Step step;
    step.respond = [this](const SeenRequest& request) { return respond(request); };
    return {step};
  }

  Time begin_;
  mutable std::mutex mutex_;
  std::set<std::string> keys_;
  int booked_ = 0;
  FaultServer server_{scenario()};  // last: it uses the others
};

// How one request ended.
struct Ending {
  int status = 0;  // 0 if there was no response
  Duration after{0};
  std::string message;  // what the client said about it

  bool is_success() const { return status / 100 == 2; }
};

// How all requests of one client ended.
struct ClientResults {
  std::vector<Ending> reads;
  std::vector<Ending> orders;
  Ending report;
};

// Runs curl with these arguments. `before` precedes the command, for example "timeout 7.5 ". The
// message of the result is everything that curl printed. The status is 0 if curl got no response,
// or was ended before it printed the status.
Ending run_curl(const std::string& before, const std::string& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string command = before +
                              "curl -q --noproxy '*' --no-progress-meter --retry 5 -o /dev/null "
                              "-w '\nstatus %{http_code}' " +
                              arguments + " 2>&1";
  Ending ending;
  FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) return ending;
  for (int c = 0; (c = std::fgetc(output)) != EOF;) ending.message += static_cast<char>(c);
  pclose(output);
  ending.after = std::chrono::steady_clock::now() - begin;
  if (const auto place = ending.message.rfind("\nstatus "); place != std::string::npos) {
    ending.status = std::stoi(ending.message.substr(place + std::strlen("\nstatus ")));
  }
  return ending;
}

// Sends all requests at the same time, each with its own curl, and waits for all of them.
ClientResults send_with_curl(const Shop& shop) {
  std::vector<std::future<Ending>> reads;
  std::vector<std::future<Ending>> orders;
  const auto start = [&](std::string before, std::string arguments) {
    return std::async(std::launch::async, run_curl, std::move(before), std::move(arguments));
  };
  for (int i = 0; i < kReads; ++i) reads.push_back(start("", shop.url("/items")));
  for (int i = 0; i < kOrders; ++i) {
    orders.push_back(start("", "-d 'one, please' " + shop.url("/orders")));
  }
  // This curl would wait for an hour. `timeout` ends it after 7.5 s, when the others have
  // succeeded: they send again after 1, 3 and 7 s, and the outage ends after 3.25 s.
  auto report = start("timeout 7.5 ", shop.url("/report"));
  ClientResults results;
  for (auto& read : reads) results.reads.push_back(read.get());
  for (auto& order : orders) results.orders.push_back(order.get());
  results.report = report.get();
  return results;
}

// Sends all requests at the same time, as send_with_curl does, and waits for all of them.
ClientResults send_with_httpretry(const Shop& shop) {
  Client client(ClientOptions().with_policies(parse_policies(kPolicies, "demo").value()));
  std::vector<OutcomeFuture> reads;
  std::vector<OutcomeFuture> orders;
  for (int i = 0; i < kReads; ++i) {
    reads.push_back(client.send_async(Request::get(shop.url("/items"))));
  }
  for (int i = 0; i < kOrders; ++i) {
    orders.push_back(client.send_async(Request::post(shop.url("/orders"), "one, please")));
  }
  auto report = client.send_async(Request::get(shop.url("/report")));
  const auto ending_of = [](OutcomeFuture& future) {
    const auto outcome = future.get();
    return Ending{.status = outcome ? outcome->status : 0,
                  .after = history_of(outcome).elapsed,
                  .message = describe(outcome)};
  };
  ClientResults results;
  for (auto& read : reads) results.reads.push_back(ending_of(read));
  for (auto& order : orders) results.orders.push_back(ending_of(order));
  results.report = ending_of(report);
  return results;
}

// --- the picture ---

constexpr int kColumns = 60;
constexpr auto kColumn = 125ms;

// Returns a character for each column: the number of requests that arrived in it.
std::string row_of(const Shop& shop, int columns) {
  std::vector<int> counts(kColumns, 0);
  for (const auto arrival : shop.arrivals()) {
    ++counts[static_cast<std::size_t>(std::clamp<long>(arrival / kColumn, 0, kColumns - 1))];
  }
  std::string row;
  for (int i = 0; i < columns; ++i) {
    const int count = counts[static_cast<std::size_t>(i)];
    row += count == 0 ? ' ' : static_cast<char>('0' + std::min(count, 9));
  }
  return row;
}

void draw(Duration passed, const Shop* with_curl, const Shop& with_httpretry) {
  const int columns = static_cast<int>(std::clamp<long>(passed / kColumn + 1, 1, kColumns));
  std::printf("             0 s     1 s     2 s     3 s     4 s     5 s     6 s     7 s\n");
  std::string state(static_cast<std::size_t>(columns), '-');
  for (int i = 0; i < columns && i < kOutage / kColumn; ++i)
    state[static_cast<std::size_t>(i)] = 'x';
  std::printf("the shop     %s\n", state.c_str());
  if (with_curl != nullptr) std::printf("curl         %s\n", row_of(*with_curl, columns).c_str());
  std::printf("httpretry    %s\n", row_of(with_httpretry, columns).c_str());
  std::fflush(stdout);
}

// Draws the picture again and again on a terminal until `is_done`, and otherwise once, at the end.
template <class Done>
void watch(Time begin, const Shop* with_curl, const Shop& with_httpretry, Done is_done) {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const int lines = with_curl != nullptr ? 4 : 3;
  for (bool is_first = true;; is_first = false) {
    const bool is_last = is_done();
    if (is_terminal && !is_first) std::printf("\033[%dA", lines);  // moves the cursor up
    if (is_terminal || is_last) {
      draw(std::chrono::steady_clock::now() - begin, with_curl, with_httpretry);
    }
    if (is_last) return;
    std::this_thread::sleep_for(50ms);
  }
}

// --- the summary ---

int count_successes(const std::vector<Ending>& all) {
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [](const Ending& one) { return one.is_success(); }));
}

Duration last_of(const ClientResults& results) {
  Duration last{0};
  for (const auto* all : {&results.reads, &results.orders}) {
    for (const auto& ending : *all) last = std::max(last, ending.after);
  }
  return last;
}

std::vector<std::string> column_of(const ClientResults& results, const Shop& shop,
                                   std::string report) {
  const auto of = [](int part, int all) {
    return std::to_string(part) + " of " + std::to_string(all);
  };
  return {of(count_successes(results.reads), kReads),
          of(count_successes(results.orders), kOrders),
          std::to_string(shop.booked()),
          std::to_string(shop.requests_in_the_outage()),
          duration_text(last_of(results)),
          std::move(report)};
}

void print_table(const std::vector<std::string>& curl, const std::vector<std::string>& httpretry) {
  const std::vector<std::string> labels = {"reads that succeeded",        "orders that succeeded",
                                           "orders that the shop booked", "requests in the outage",
                                           "the last success came after", "the report"};
  std::printf("\n%-30s%-18s%s\n", "", curl.empty() ? "" : "curl --retry 5", "httpretry");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::printf("%-30s%-18s%s\n", labels[i].c_str(), curl.empty() ? "" : curl[i].c_str(),
                httpretry[i].c_str());
  }
}

// Prints the claim if it is false. Returns `is_true`.
bool check(bool is_true, const char* claim) {
  if (!is_true) std::printf("NOT TRUE THIS TIME: %s\n", claim);
  return is_true;
}

// Prints how curl's requests ended. Returns whether every claim of the text is true.
bool explain_curl(const ClientResults& results, const Shop& shop) {
  std::printf(
      "\ncurl waits 1, 2 and 4 s, not at random, so its requests arrive in bursts. The last\n"
      "one succeeded after %s. It repeats a POST that the server may have executed, so the\n"
      "shop booked orders again. (If you had sent an Idempotency-Key, this shop would have\n"
      "recognized them.) It would wait for the report for an hour:\n"
      "  %s\n",
      duration_text(last_of(results)).c_str(),
      results.report.message.substr(0, results.report.message.find('\n')).c_str());
  // curl 7.88 and 8.14 say "Will retry in 1", and curl 8.23 "Retrying in 1".
  const std::string& output = results.reads.front().message;
  const auto second_wait = output.find(" in 2", output.find(" in 1"));
  bool all_true = check(second_wait != std::string::npos, "curl waits 1 and 2 s");
  all_true &= check(count_successes(results.reads) == kReads, "curl read all items");
  all_true &= check(count_successes(results.orders) == kOrders, "curl placed all orders");
  all_true &= check(shop.booked() > kOrders, "orders of curl were booked again");
  all_true &= check(results.report.message.find(" in 3600") != std::string::npos,
                    "curl waits for the report");
  return all_true;
}

// Prints how the calls of httpretry ended. Returns whether every claim of the text is true.
bool explain_httpretry(const ClientResults& results, const Shop& shop) {
  std::printf(
      "\nhttpretry, with the policy in apps/examples/demo.cpp, stops sending after four failures\n"
      "in a row, and tests the shop with one request every 500 ms. Each order has a key, which\n"
      "is the same in all attempts, so the shop recognizes it. httpretry explains how each call\n"
      "ended, for example an order and the report:\n"
      "  %s\n"
      "  %s\n",
      results.orders.back().message.c_str(), results.report.message.c_str());
  const auto tests = kOutage / 500ms + 1;  // rounded up
  // Each read, each order and the report once, and the tests.
  const auto max = kReads + kOrders + 1 + tests;
  bool all_true =
      check(shop.requests_in_the_outage() <= max, "httpretry sends a test every 500 ms");
  all_true &= check(count_successes(results.reads) == kReads, "httpretry read all items");
  all_true &= check(count_successes(results.orders) == kOrders, "httpretry placed all orders");
  all_true &= check(shop.booked() == kOrders, "each order of httpretry was booked once");
  all_true &= check(results.report.message.find("server_delay_too_long") != std::string::npos,
                    "httpretry does not wait for the report");
  return all_true;
}

}  // namespace

// Runs both clients at the same time, each with its own shop, draws the requests as they arrive,
// and compares the results.
int main() {
  const bool has_curl = std::system("curl --version >/dev/null 2>&1") == 0;
  std::printf(
      "The database of a shop hangs for 3.25 s. The shop answers reads with 503. It books\n"
      "orders, but answers 504. At the same moment, a client sends %d reads, %d orders, and a\n"
      "request for a report whose quota is used up for an hour (429, Retry-After: 3600).\n%s\n\n"
      "Below, x is the outage, and a digit is the number of requests that arrived:\n\n",
      kReads, kOrders,
      has_curl ? "Two clients do so, and each has its own shop."
               : "There is no curl here, so only httpretry runs.");

  const auto begin = std::chrono::steady_clock::now();
  Shop curl_shop(begin);
  Shop shop(begin);
  auto curl_run = std::async(
      std::launch::async, [&] { return has_curl ? send_with_curl(curl_shop) : ClientResults(); });
  auto run = std::async(std::launch::async, [&] { return send_with_httpretry(shop); });
  watch(begin, has_curl ? &curl_shop : nullptr, shop, [&] {
    return curl_run.wait_for(0s) == std::future_status::ready &&
           run.wait_for(0s) == std::future_status::ready;
  });

  const ClientResults curl_results = curl_run.get();
  const ClientResults results = run.get();
  print_table(has_curl ? column_of(curl_results, curl_shop, "waits for an hour")
                       : std::vector<std::string>(),
              column_of(results, shop, "ended after " + duration_text(results.report.after)));
  bool all_true = !has_curl || explain_curl(curl_results, curl_shop);
  all_true &= explain_httpretry(results, shop);
  std::printf(
      "\nWhat to try next:\n"
      "  ./dev install\n"
      "  httpretry plan --outcomes 503,timeout,429:retry-after=2,200 "
      "https://api.example.com/v1/items\n"
      "  httpretry simulate --preset curl --preset standard --model queue "
      "--trigger at=20s,for=10s,capacity=0.1\n");
  return all_true ? 0 : 1;
}
