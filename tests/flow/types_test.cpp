// g++ 12 destroys an aggregate with a destructor twice in some statements with co_await (task.hpp).
// So no type that users may put into such a statement is one: `X() = default;` is enough.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <string>
#include <type_traits>

using namespace httpretry;

template <class... T>
constexpr bool kSafe = ((!std::is_aggregate_v<T> || std::is_trivially_destructible_v<T>)&&...);

struct Unsafe {
  std::string text;
};
static_assert(!kSafe<Unsafe>);

// http
static_assert(kSafe<Timings, Exchange, Attempt, History, Error, Outcome, Result<void>, Failure>);
static_assert(kSafe<Body, Form, FormPart, Headers, Headers::Field, Response, Url>);
static_assert(kSafe<Request, RequestOptions, Credentials, ConnectionInfo>);
// flow
static_assert(kSafe<Call, Next, BodyStart, FileOptions, Task<Outcome>, Shared<std::string>>);
// retry
static_assert(
    kSafe<Backoff, DelayRange, BudgetClaim, Budget, SendRate, Observed, Rule, Classified>);
static_assert(kSafe<Clocks, RetryState, Decision, Preset, ServerDelay, StatusSet>);
static_assert(kSafe<ErrorRule, PendingRule, RetryOn, ServerDelayPolicy, BudgetPolicy, RetryPolicy>);
// policy
static_assert(kSafe<EndpointPattern, PatternProblem, EndpointIndex, Problem, PolicyValue>);
static_assert(kSafe<PolicyValues, ResolvedPolicy, PolicySet, PolicySet::Candidate>);
static_assert(
    kSafe<CheckedPolicies, ChangedBudget, PolicyReload, PolicySource, PolicySource::Current>);
static_assert(kSafe<PolicyBuilder, PolicySetBuilder, ImportedPolicies>);
// middleware
static_assert(kSafe<RedirectOptions, BearerToken, LogOptions, RetryOptions, RetryCallOptions>);
static_assert(kSafe<AttemptResultBase, AttemptResult<std::string>, AttemptResult<void>,
                    RetryResult<std::string>, AttemptInfo>);
static_assert(kSafe<CallBudget, BlockingClock>);
// curl
static_assert(kSafe<ClientCertificate, ProxyOptions, TransportOptions, CookieJar>);
// client
static_assert(kSafe<Client, ClientOptions, CallOptions>);
// testing
static_assert(kSafe<ScriptedTransport::Seen, Interim, Step, Script, Scenario, SeenRequest>);
static_assert(kSafe<FaultServerOptions>);
