#include <httpretry/middleware/builtin.hpp>

#include <stdexcept>

namespace httpretry {
namespace {

class Timeout final : public Middleware {
 public:
  explicit Timeout(Duration limit) : limit_(limit) {
    if (limit <= Duration::zero()) throw std::invalid_argument("a timeout must be more than zero");
  }
  [[nodiscard]] std::string_view name() const override { return "timeout"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    Call bounded = call.with(later(call.scheduler().now(), limit_), call.stop());
    Outcome outcome = co_await next(std::move(request), bounded);
    co_return outcome;
  }

 private:
  Duration limit_;
};

}  // namespace

MiddlewarePtr timeout(Duration limit) { return std::make_shared<Timeout>(limit); }

}  // namespace httpretry
