#include <httpretry/middleware/builtin.hpp>

namespace httpretry {
namespace {

class DefaultHeaders final : public Middleware {
 public:
  explicit DefaultHeaders(Headers headers) : headers_(std::move(headers)) {}
  [[nodiscard]] std::string_view name() const override { return "default_headers"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    const auto& url = request.parsed_url();
    if (url && url->origin() == call.origin()) add_missing(request);
    return next(std::move(request), call);
  }

 private:
  void add_missing(Request& request) const {
    const Headers given = request.headers();
    for (const auto field : headers_) {
      if (!given.contains(field.name)) request.add_header(field.name, field.value);
    }
  }
  Headers headers_;
};

}  // namespace

MiddlewarePtr default_headers(Headers headers) {
  return std::make_shared<DefaultHeaders>(std::move(headers));
}

}  // namespace httpretry
