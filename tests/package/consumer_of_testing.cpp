// Links the test kit, which brings the library along.
#include <httpretry/http/url.hpp>

#include <cstdio>

int main() {
  if (!httpretry::Url::parse("http://localhost:8080/")) return 1;
  std::puts("consumer_of_testing: ok");
}
