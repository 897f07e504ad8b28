// Values that belong to a call.
#include "conversation.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace httpretry;

namespace {

struct Tenant {
  std::string name;
};
struct Span {
  int attempts = 0;
};

// Counts attempts in the Span of the call, and notes it at its end.
class Tracer final : public Observer {
 public:
  explicit Tracer(std::vector<int>& counts) : counts_(counts) {}
  void call_started(const Call& call, const Request&) noexcept override { call.set(Span()); }
  void attempt_started(const Call& call, const Request&, int) noexcept override {
    ++call.get<Span>()->attempts;
  }
  void call_ended(const Call& call, const Outcome&) noexcept override {
    counts_.push_back(call.get<Span>()->attempts);
  }

 private:
  std::vector<int>& counts_;
};

}  // namespace

TEST_CASE("a context holds one value of each type, and copies share them") {
  Context context;
  CHECK(context.empty());
  CHECK(context.get<Tenant>() == nullptr);
  context.set(Tenant{"a"});
  context.set(7);
  auto copy = context;
  CHECK(copy.get<Tenant>() == context.get<Tenant>());
  copy.set(Tenant{"b"});
  copy.set(std::string("only here"));
  CHECK(context.get<Tenant>()->name == "a");
  CHECK(copy.get<Tenant>()->name == "b");
  CHECK(*copy.get<int>() == 7);
  CHECK(context.get<std::string>() == nullptr);
  context = copy;
  CHECK(*context.get<std::string>() == "only here");
  Context none;
  context = none;
  CHECK(context.empty());
}

TEST_CASE("what a request brings, its middlewares and observers find, and what they set, too") {
  Conversation talk;
  std::vector<int> counts;
  talk.network->say(Response(503)).say(Response(200));
  std::vector<std::string> seen;
  ClientOptions options;
  options.middlewares = {
      retry(), on_request("tenant", [&](Request&, Call& call) {
        seen.push_back(call.get<Tenant>() != nullptr ? call.get<Tenant>()->name : "none");
        call.set(Tenant{"changed"});
      })};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {std::make_shared<Tracer>(counts)};
  Client client(options);
  auto request = Request::get("http://x/");
  request.edit_options().context.set(Tenant{"seven"});
  CHECK(client.send(request));
  CHECK(client.send(Request::get("http://x/")));
  CHECK(seen == std::vector<std::string>{"seven", "changed", "none"});
  CHECK(counts == std::vector<int>{2, 1});
  CHECK(request.options().context.get<Tenant>()->name == "seven");  // the caller's own stays
}
