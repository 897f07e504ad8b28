// The keys of `tests`. This file reads and checks tests; `httpretry policy check` runs them.
#include "policy_set_data.hpp"

#include <httpretry/http/url.hpp>
#include <httpretry/policy/policy_test.hpp>

#include <algorithm>

namespace httpretry::detail::policy_file {
namespace {

using JsonType = JsonNode::Type;

constexpr Text kMethod("a method", valid_header_name);

bool parse_url(const JsonNode& json, std::string& text, Problems& problems) {
  if (!expect(json, JsonType::String, "a URL", problems)) return false;
  text = json.text;
  const auto url = Url::parse(text);
  return url || refuse(json, problems, described(json) + " is " + url.error().message);
}
constexpr Custom<std::string> kUrl(parse_url);

bool parse_headers(const JsonNode& json, Headers& headers, Problems& problems) {
  if (!expect(json, JsonType::Object, "an object", problems)) return false;
  auto good = true;
  for (const auto* const header : json.children) {
    const auto is_text = expect(*header, JsonType::String, "a string", problems);
    if (is_text && !headers.try_add(header->key, header->text)) {
      problems.error(*header, "this cannot be sent as a header");
    }
    good = good && !header->has_error;
  }
  return good;
}
constexpr Custom<Headers> kHeaders(parse_headers);

constexpr Key kRequestKeys[] = {
    key<&PolicyTest::Request::method>("method", kMethod).not_null(),
    key<&PolicyTest::Request::url>("url", kUrl).needed().not_null(),
    key<&PolicyTest::Request::headers>("headers", kHeaders).not_null(),
};

// A step is only checked here, with the keys of a scenario. It is passed on as it is written, and
// the module `testing` reads it.
constexpr std::string_view kTimeForms[] = {"http-date", "epoch", "epoch-ms"};
constexpr Word<int> kTimeForm{Words(kTimeForms)};
constexpr Key kTimeKeys[] = {
    loader_key("at", kAnyText).needed().not_null(),
    loader_key("as", kTimeForm),
};

// Checks the value of a header: a string, or a time such as {"at": "now+60"}.
bool check_header(const JsonNode& json, Problems& problems) {
  if (json.is(JsonType::Object)) {
    return read_object(json, kTestTime, kCheckOnly, "an object", problems);
  }
  return expect(json, JsonType::String, R"(a string or {"at": "now+60"})", problems);
}

// Checks the headers of a step. An array is several headers with the same name.
bool check_headers(const JsonNode& json, Headers& /*headers*/, Problems& problems) {
  if (!expect(json, JsonType::Object, "an object", problems)) return false;
  auto good = true;
  for (const auto* const header : json.children) {
    if (!valid_header_name(header->key)) {
      good = refuse(*header, problems, "this cannot be sent as a header");
    } else if (header->is(JsonType::Array)) {
      for (const auto* const value : header->children) good &= check_header(*value, problems);
    } else {
      good &= check_header(*header, problems);
    }
  }
  return good;
}
constexpr Custom<Headers> kStepHeaders(check_headers);

constexpr double kMost = 9007199254740992;  // 2^53, the limit of exact integers in a double
constexpr Number<int> kStatus(200, 999);
constexpr Number<std::uint64_t> kTimes(1, kMost);
constexpr Number<std::uint64_t> kSize(0, kMost);

constexpr Key kStepKeys[] = {
    loader_key("status", kStatus),     loader_key("headers", kStepHeaders),
    loader_key("body", kAnyText),      loader_key("delay", kDuration),
    loader_key("fault", kAnyText),     loader_key("times", kTimes),
    loader_key("interval", kDuration), loader_key("size", kSize),
};

// Reads one of the outcomes of a test: a text such as "503,timeout,200", or a step. Returns false
// and reports a problem if it is neither.
bool parse_outcome(const JsonNode& json, PolicyTest::Outcomes& outcomes, Problems& problems) {
  outcomes.place = problems.place_of(json);
  if (json.is(JsonType::String)) {
    outcomes.text = json.text;
    return !json.text.empty() || refuse(json, problems, "an empty text; write \"503,timeout,200\"");
  }
  if (!read_object(json, kTestStep, kCheckOnly, "a string or an object", problems)) return false;
  if (json.find("status") == nullptr && json.find("fault") == nullptr) {
    return refuse(json, problems, "a step has a \"status\" or a \"fault\"");
  }
  outcomes.is_step = true;
  outcomes.text = compact(json);
  return true;
}
constexpr Custom<PolicyTest::Outcomes> kOutcome(parse_outcome);
constexpr List kOutcomes(kOutcome, "a string or an array", "there must be at least one outcome",
                         true);

constexpr Key kWaitKeys[] = {
    key<&PolicyTest::Wait::least>("min", kDuration).not_null(),
    key<&PolicyTest::Wait::most>("max", kDuration).needed().not_null(),
};

bool parse_wait(const JsonNode& json, PolicyTest::Wait& wait, Problems& problems) {
  wait.range = json.is(JsonType::Object);
  if (!wait.range) {
    const auto good = kDuration.read(json, &wait.most, problems);
    wait.least = wait.most;
    return good;
  }
  if (!read_object(json, kTestWait, &wait, "a duration or an object", problems)) return false;
  return wait.least <= wait.most || refuse(json, problems, "min is greater than max");
}
constexpr Custom<PolicyTest::Wait> kWait(parse_wait);
constexpr List kWaits(kWait, "an array");

// Reads the entry that a test expects a request to match: its name, or null if no entry should
// match, so that the default policy applies.
using Name = std::optional<std::string>;
constexpr Custom<Name> kEndpointName([](const JsonNode& json, Name& name, Problems& problems) {
  name = json.text;
  if (json.is(JsonType::Null)) return true;
  if (!expect(json, JsonType::String, "the name of an entry, or null", problems)) return false;
  if (json.text.empty()) problems.error(json, "an empty name; write null for no entry");
  return true;
});

constexpr Number<int> kCount(1, 1000);
constexpr Word<Reason> kReason{Words::up_to(Reason::Canceled)};

constexpr Key kExpectKeys[] = {
    key<&PolicyTest::Expected::endpoint>("endpoint", kEndpointName).not_null(),
    key<&PolicyTest::Expected::attempts>("attempts", kMaybe<kCount>).not_null(),
    key<&PolicyTest::Expected::waits>("waits", kMaybe<kWaits>).not_null(),
    key<&PolicyTest::Expected::reason>("reason", kMaybe<kReason>).not_null(),
    key<&PolicyTest::Expected::status>("status", kMaybe<kStatus>).not_null(),
    key<&PolicyTest::Expected::success>("success", kMaybe<kFlag>).not_null(),
};

template <class T, const Shape& shape>
constexpr Custom<T> object_of([](const JsonNode& json, T& object, Problems& problems) {
  return read_object(json, shape, &object, "an object", problems);
});

constexpr Key kTestKeys[] = {
    key<&PolicyTest::request>("request", object_of<PolicyTest::Request, kTestRequest>)
        .needed()
        .not_null(),
    key<&PolicyTest::outcomes>("outcomes", kOutcomes).not_null(),
    key<&PolicyTest::expected>("expect", object_of<PolicyTest::Expected, kTestExpect>)
        .needed()
        .not_null(),
};

// Reads a test of the file: a request, the outcomes of its attempts, and what to expect. Also
// stores the place of each expectation, for the report of one that fails. Returns false and reports
// problems if the test is wrong.
bool read_test(const JsonNode& json, PolicyTest& test, Problems& problems) {
  if (!read_object(json, kTest, &test, "a test", problems)) return false;
  const auto& expected = *json.member("expect");
  if (expected.children.empty()) {
    return refuse(
        expected, problems,
        "nothing is expected; the keys are: endpoint, attempts, waits, reason, status, success");
  }
  for (const auto* const member : expected.children) {
    test.places.emplace(member->key, problems.place_of(*member));
    // Only "endpoint" can be checked without outcomes, because it needs no attempt.
    if (!test.outcomes.empty() || member->key == "endpoint") continue;
    return refuse(json, problems,
                  "missing key \"outcomes\": " + quoted_text(member->key) + " is expected");
  }
  return true;
}

}  // namespace

constinit const Shape kTest{.name = "test", .keys = kTestKeys};
constinit const Shape kTestRequest{.name = "test_request", .keys = kRequestKeys};
constinit const Shape kTestStep{.name = "test_step", .keys = kStepKeys};
constinit const Shape kTestTime{.name = "test_time", .keys = kTimeKeys};
constinit const Shape kTestWait{.name = "test_wait", .keys = kWaitKeys};
constinit const Shape kTestExpect{.name = "test_expect", .keys = kExpectKeys};

// Reads the tests of a policy file. `data` has the entries of its "endpoints", to which the tests
// refer by name. Reports problems, and leaves out a test that cannot be read.
std::vector<PolicyTest> read_tests(const JsonNode& tests, const PolicySet::Data& data,
                                   Problems& problems) {
  // An entry with an error of its own may be missing from `data`. So after any error, a test is not
  // blamed if the entry that it names is missing.
  const bool has_all_entries = !problems.failed();
  std::vector<std::string_view> names;
  for (const auto& entry : data.entries) names.push_back(entry.resolved.endpoint);
  std::vector<PolicyTest> all;
  for (const auto* const json : tests.children) {
    PolicyTest test;
    if (!read_test(*json, test, problems)) continue;
    // "" if the test expects that no entry matches, or does not say which one.
    const auto endpoint = test.expected.endpoint.value_or("");
    const bool exists = std::ranges::find(names, endpoint) != names.end();
    if (has_all_entries && !endpoint.empty() && !exists) {
      // The test has this member, because `endpoint` is not empty. The error is reported at it.
      const auto& name = *json->member("expect")->member("endpoint");
      problems.error(name,
                     "there is no entry " + described(name) + problems.suggestion(endpoint, names));
    }
    all.push_back(std::move(test));
  }
  return all;
}

}  // namespace httpretry::detail::policy_file
