// EitherStop: a stop token that is stopped when either of two others is.
#pragma once

#include <stop_token>

namespace httpretry {

// A stop callback that stops `source`.
struct RequestStop {
  std::stop_source source;
  void operator()() { source.request_stop(); }
};

class EitherStop {
 public:
  EitherStop(const std::stop_token& one, const std::stop_token& other)
      : on_one_(one, RequestStop{either_}), on_other_(other, RequestStop{either_}) {}
  [[nodiscard]] const std::stop_token& token() const { return token_; }

 private:
  std::stop_source either_;
  std::stop_token token_ = either_.get_token();
  std::stop_callback<RequestStop> on_one_;
  std::stop_callback<RequestStop> on_other_;
};

}  // namespace httpretry
