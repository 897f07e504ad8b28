// A program without RTTI: CMake compiles this file with -fno-rtti.
#include "conversation.hpp"

#include <httpretry/http/context.hpp>

#include <doctest/doctest.h>

#ifdef __GXX_RTTI
#error "this file must be compiled with -fno-rtti"
#endif

using namespace httpretry;

namespace {

struct Tenant {
  int number;
};

// Has the name of a middleware of the library.
class Retry final : public Middleware {
 public:
  [[nodiscard]] std::string_view name() const override { return "retry"; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    tenant = call.get<Tenant>()->number;
    return next(std::move(request), call);
  }
  int tenant = 0;
};

// Passes everything on to a ManualScheduler.
class ProgramsScheduler final : public Scheduler {
 public:
  [[nodiscard]] Time now() const override { return clock_.now(); }
  [[nodiscard]] WallTime wall_now() const override { return clock_.wall_now(); }
  void post(std::coroutine_handle<> handle) override { clock_.post(handle); }
  Task<bool> sleep_until(Time when, std::stop_token stop) override {
    return clock_.sleep_until(when, std::move(stop));
  }
  void run_until(const std::atomic<bool>& done) override { clock_.run_until(done); }

 private:
  ManualScheduler clock_;
};

}  // namespace

TEST_CASE("a program without RTTI has its own middlewares, schedulers and values of a context") {
  const auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(200));
  const auto mine = std::make_shared<Retry>();
  ClientOptions options;
  options.middlewares = {mine};
  options.transport = network;
  options.scheduler = std::make_shared<ProgramsScheduler>();
  Client client(options);

  auto request = Request::get("http://x/");
  request.edit_options().context.set(Tenant{6});
  request.edit_options().context.set(Tenant{7});
  CHECK(client.send(request)->status == 200);
  CHECK(mine->tenant == 7);
  CHECK(request.options().context.get<int>() == nullptr);
}
