// Calls a server that fails in several ways, and prints for each call what was sent, when, and why.
// Run it with `./dev demo`.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Prints each attempt as it ends.
class Printer final : public Observer {
 public:
  void call_started(const Call& /*call*/, const Request& request) noexcept override {
    std::printf("\n%s %s\n", request.method().c_str(), request.url().c_str());
  }
  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    const std::string result =
        attempt.error ? std::string(to_string(*attempt.error)) : std::to_string(attempt.status);
    std::printf("  attempt %d at %8s: %-8s (%s), sent: %s", attempt.number,
                duration_text(attempt.start).c_str(), result.c_str(), attempt.rule.c_str(),
                std::string(to_string(attempt.sent)).c_str());
    if (!attempt.retried) {
      std::printf("\n");
    } else if (attempt.server_delay) {
      std::printf(" -> retry in %s, as the server asked (%s)\n",
                  duration_text(*attempt.wait).c_str(),
                  std::string(attempt.server_delay_source).c_str());
    } else {
      std::printf(" -> retry in %s\n", duration_text(*attempt.wait).c_str());
    }
  }
};

// Prints the result of a call. Returns whether it has a response.
bool print(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  const std::string result = outcome
                                 ? std::to_string(outcome->status) + " \"" + outcome->body + "\""
                                 : outcome.error().message;
  std::printf("  => %s, %zu attempt(s) in %s: %s\n", result.c_str(), history.attempts.size(),
              duration_text(history.elapsed).c_str(),
              std::string(to_string(history.stop_reason)).c_str());
  return outcome.has_value();
}

Step slow(Step step) {
  step.delay = 2s;
  return step;
}

Scenario failures() {
  Scenario scenario;
  scenario.paths["/busy"] = Script({{503}, {503}, {200, "at last"}});
  scenario.paths["/broken"] = Script({Fault::Reset, {200, "works again"}});
  scenario.paths["/slow"] = Script({slow({200, "too late"}), {200, "quick"}});
  scenario.paths["/limited"] = Script({{429, {{"Retry-After", "1"}}}, {200, "welcome back"}});
  scenario.paths["/orders"] = Script({Fault::Reset, Fault::Reset, {201, "ordered"}});
  return scenario;
}

}  // namespace

int main() {
  FaultServer server(failures());
  std::printf("a server that fails on purpose listens on %s\n", server.url().c_str());

  ClientOptions options;
  options.attempt_middlewares = {timeout(500ms)};
  options.observers = {std::make_shared<Printer>()};
  Client client(options);

  bool as_expected = true;
  for (const auto* path : {"/busy", "/broken", "/slow", "/limited"}) {
    as_expected &= print(client.get(server.url(path)));
  }

  std::printf(
      "\n-- a POST that the server may have processed is not retried, unless it has an idempotency "
      "key --\n");
  as_expected &= !print(client.post(server.url("/orders"), "one, please"));
  as_expected &= print(client.send(Request::post(server.url("/orders"), "one, please")
                                       .set_header("Idempotency-Key", "order-7")));

  std::printf("\nthe server received %zu requests\n", server.requests());
  return as_expected ? 0 : 1;
}
