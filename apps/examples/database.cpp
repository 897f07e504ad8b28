// Uses retry_call for something that is not HTTP: a database transaction, with the policy and the
// guards of the program's requests.
#include <httpretry/httpretry.hpp>
#include <httpretry/middleware/guarded.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Stands for a database library.
struct DatabaseError : std::runtime_error {
  DatabaseError(int number, const std::string& text) : std::runtime_error(text), code(number) {}
  int code;
};
constexpr int kDeadlock = 1213;
constexpr int kTooManyConnections = 1040;

class Database {
 public:
  // Returns the new balance.
  int withdraw(int amount) {
    switch (++calls_) {
      case 1: throw DatabaseError(kDeadlock, "deadlock");
      case 2: throw DatabaseError(kTooManyConnections, "too many connections");
      default: break;
    }
    if (amount > balance_) throw DatabaseError(1, "not enough money");
    return balance_ -= amount;
  }

 private:
  int calls_ = 0;
  int balance_ = 100;
};

// Converts an error of the database to its meaning for retries.
AttemptResult<int> withdraw(Database& database, int amount) {
  using Result = AttemptResult<int>;
  try {
    return Result::success(database.withdraw(amount));
  } catch (const DatabaseError& error) {
    if (error.code == kDeadlock) return Result::transient(error.what());
    if (error.code == kTooManyConnections) return Result::throttle(error.what()).after(20ms);
    return Result::permanent(error.what());
  }
}

}  // namespace

int main() {
  RetryPolicy policy;
  policy.max_attempts = 5;
  policy.backoff.initial = 10ms;

  policy.guards.rate = RatePolicy::per_second(50);
  policy.guards.breaker.emplace().open_for.initial = 2s;
  const auto guards = std::make_shared<CallGuards>(policy, "the database");  // one for all calls

  Database database;
  const auto done = retry_call(policy, guarded(guards, [&] { return withdraw(database, 30); }));
  const auto refused =
      retry_call(policy, guarded(guards, [&] { return withdraw(database, 1'000); }));

  // The first call succeeded at its third attempt, and reduced the balance from 100 to 70. The
  // second one was to withdraw more than that, which is an error without retries.
  for (const auto& attempt : done.history.attempts) {
    std::printf("attempt %d: %s\n", attempt.number, attempt.rule.c_str());
  }
  std::printf("refused: %s\n", refused.last.reason.c_str());
  return done && *done.last.value == 70 && !refused ? 0 : 1;
}
