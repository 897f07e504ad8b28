#include <httpretry/http/detail/misuse.hpp>

#include <httpretry/http/result.hpp>

#include <cstdio>
#include <cstdlib>

namespace httpretry::detail {

void misuse(const char* what) noexcept {
  std::fprintf(stderr, "httpretry: %s\n", what);
  std::abort();
}

void no_value(const Error* error) noexcept {
  if (error == nullptr) misuse("a Result was used after it was moved from");
  std::fprintf(stderr,
               "httpretry: a Result without a value was read with * or ->; test it first, or use "
               "value(), which throws; its error is: %s\n",
               error->message.c_str());
  std::abort();
}

void no_error() noexcept { misuse("error() was called on a Result that has no error"); }

}  // namespace httpretry::detail
