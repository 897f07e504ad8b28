// A language model that allows 60 requests and 10,000 tokens in any minute. Each call states what
// it will cost, so the client waits before the server has to refuse a request.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

int main() {
  FaultServer model({Step(200, R"({"answer": "42"})")});
  const auto url = model.url();

  auto rate = RatePolicy::of_requests(50, 1min);
  rate.burst = 10;                                    // may be sent at once after an idle time
  rate.further = {RatePolicy::of_cost(5'000, 1min)};  // counts tokens; its burst is also 5,000
  ClientOptions options;
  options.policies =
      PolicySet::builder().fallback(PolicyBuilder().preset("openai").rate(rate)).build().value();
  Client client(options);
  const auto ask = [&](const std::string& prompt, std::uint64_t max_tokens) {
    const auto tokens = prompt.size() / 4 + max_tokens;  // a token has about four bytes
    return client.send(Request::post(url, prompt).cost(tokens));
  };

  const bool all_sent = ask("What is the answer?", 2'000) && ask("And the question?", 2'500);
  const auto too_long = ask("Explain everything.", 20'000);  // more tokens than the burst
  std::printf("%s\n", too_long ? "sent" : too_long.error().message.c_str());
  return all_sent && !too_long && too_long.error().code == Errc::InvalidRequest ? 0 : 1;
}
