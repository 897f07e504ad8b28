#include "conversation.hpp"
#include "heard.hpp"
#include "policies.hpp"

#include "lib/core/chain/nested_retry.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/middleware/retry_call.hpp>

#include <doctest/doctest.h>

using namespace httpretry;

namespace {}  // namespace

TEST_CASE("the function of retry_call is known to run inside of it, also one that throws") {
  bool inside = false;
  CHECK_THROWS((void)retry_call(steady_policy(), [&]() -> AttemptResult<> {
    inside = inside_retry();
    throw 7;
  }));
  CHECK(inside);
  CHECK_FALSE(inside_retry());
}

TEST_CASE("a call that retries inside the function of retry_call is warned of, once in a program") {
  Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({retry(steady_policy())});
  auto plain = talk.client({});
  const Heard heard;

  (void)client.get("http://x/");
  (void)retry_call(steady_policy(), [&] {
    return AttemptResult<>(plain.get("http://x/") ? Class::Success : Class::Permanent);
  });
  auto once = Request::get("http://x/");
  once.edit_options().retry = false;
  (void)retry_call(steady_policy(),
                   [&] { return (void)client.send(once), AttemptResult<>::success(); });
  CHECK(heard.text().empty());

  (void)retry_call(steady_policy(),
                   [&] { return (void)client.get("http://x/"), AttemptResult<>::success(); });
  CHECK(heard.text().starts_with(
      "warning: httpretry: a call that retries was made inside the function"));

  (void)retry_call(steady_policy(),
                   [&] { return (void)client.get("http://x/"), AttemptResult<>::success(); });
  CHECK(heard.text().find("warning", 1) == std::string::npos);
}
