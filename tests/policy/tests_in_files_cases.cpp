#include "tests/policy/policy_cases.hpp"

namespace httpretry::cases {

std::string file_with_test(std::string_view test) {
  return R"({"version": 1, "tests": [)" + std::string(test) +
         R"(], "endpoints": [{"name": "api", "match": {"host": "a"}, "policy": {}}]})";
}

// clang-format off
const std::vector<Case>& tests() {
  static const std::vector<Case> all = {
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"attempts": 1}})", ""},
      {R"({"request": {"method": "POST", "url": "http://a/", "headers": {"x-a": "b"}}, "expect": {"endpoint": "api"}})", ""},
      {R"({"request": {"url": "http://b/"}, "expect": {"endpoint": null}})", ""},
      {R"({"request": {"url": "http://a/"}, "outcomes": ["503,200", {"status": 200, "body": "", "headers": {"a": "b"}, "delay": "1s", "times": 2}, {"fault": "drip", "interval": "1s", "size": 3}], "expect": {"waits": ["1s", {"max": "2s"}, {"min": "1s", "max": "1s"}], "reason": "success", "status": 200, "success": true}})", ""},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"waits": []}})", ""},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 429, "body": null, "headers": {"a": ["b", "c"], "Retry-After": {"at": "now+60"}, "x-reset": [{"at": "now-1.5s", "as": "epoch"}]}}], "expect": {"attempts": 5}})", ""},

      {R"(7)", "p.json:1:26: /tests/0: expected a test, found 7"},
      {R"({"outcomes": "503", "expect": {"attempts": 1}})", "/tests/0: missing key \"request\""},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503"})", "/tests/0: missing key \"expect\""},
      {R"({"request": {"url": "http://a/"}, "outcome": "503", "expect": {"endpoint": "api"}})", "p.json:1:60: /tests/0/outcome: unknown key; did you mean \"outcomes\"?"},
      {R"({"request": {"url": "http://a/"}, "expect": {"attempts": 1}})", "/tests/0: missing key \"outcomes\": \"attempts\" is expected", false},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {}})", "/tests/0/expect: nothing is expected; the keys are: endpoint, "},

      {R"({"request": {}, "expect": {"endpoint": "api"}})", "/tests/0/request: missing key \"url\""},
      {R"({"request": {"url": "a/b"}, "expect": {"endpoint": "api"}})", "/tests/0/request/url: \"a/b\" is ", false},
      {R"({"request": {"url": 7}, "expect": {"endpoint": "api"}})", "/tests/0/request/url: expected a URL, found 7"},
      {R"({"request": {"url": "http://a/", "method": 7}, "expect": {"endpoint": "api"}})", "/tests/0/request/method: expected a method, found 7"},
      {R"({"request": {"url": "http://a/", "method": "G T"}, "expect": {"endpoint": "api"}})", "/tests/0/request/method: \"G T\" is not a method", false},
      {R"({"request": {"url": "http://a/", "headers": {"x y": "1"}}, "expect": {"endpoint": "api"}})", "/tests/0/request/headers/x y: this cannot be sent as a header", false},
      {R"({"request": {"url": "http://a/", "headers": {"x": 1}}, "expect": {"endpoint": "api"}})", "/tests/0/request/headers/x: expected a string, found 1"},

      {R"({"request": {"url": "http://a/"}, "outcomes": "", "expect": {"attempts": 1}})", "/tests/0/outcomes: an empty text; write \"503,timeout,200\""},
      {R"({"request": {"url": "http://a/"}, "outcomes": [], "expect": {"attempts": 1}})", "/tests/0/outcomes: there must be at least one outcome"},
      {R"({"request": {"url": "http://a/"}, "outcomes": 503, "expect": {"attempts": 1}})", "/tests/0/outcomes: expected a string or an array, found 503"},
      {R"({"request": {"url": "http://a/"}, "outcomes": [503], "expect": {"attempts": 1}})", "/tests/0/outcomes/0: expected a string or an object, found 503"},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"body": "x"}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0: a step has a \"status\" or a \"fault\""},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 99}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0/status: 99 is out of range: 200 to 999"},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 999, "times": 1, "size": 0}], "expect": {"attempts": 1000}})", ""},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 200, "times": 0}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0/times: 0 is out of range: at least 1\n"},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 200, "size": -1}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0/size: -1 is out of range: at least 0\n"},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"staus": 200}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0/staus: unknown key; did you mean \"status\"?"},

      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": null}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0: a step has a \"status\" or a \"fault\"", false},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 200, "headers": {"a": 1}}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0/headers/a: expected a string or {\"at\": \"now+60\"}, found 1"},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 200, "headers": {"a": ["b", {"as": "epoch"}]}}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0/headers/a/1: missing key \"at\""},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 200, "headers": {"a": {"at": "now+1", "as": "epok"}}}], "expect": {"attempts": 1}})", "\"epok\" is not one of http-date, epoch, epoch-ms"},
      {R"({"request": {"url": "http://a/"}, "outcomes": [{"status": 200, "headers": {"a b": "c"}}], "expect": {"attempts": 1}})", "/tests/0/outcomes/0/headers/a b: this cannot be sent as a header", false},

      {R"({"request": {"url": "http://a/"}, "expect": {"endpoint": "ap"}})", "/tests/0/expect/endpoint: there is no entry \"ap\"; did you mean \"api\"?", false},
      {R"({"request": {"url": "http://a/"}, "expect": {"endpoint": ""}})", "/tests/0/expect/endpoint: an empty name; write null for no entry"},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"attempts": 0}})", "/tests/0/expect/attempts: 0 is out of range: 1 to 1000"},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"reason": "sucess"}})", "/tests/0/expect/reason: \"sucess\" is not one of success, "},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"success": 1}})", "/tests/0/expect/success: expected true or false, found 1"},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"status": null}})", "/tests/0/expect/status: expected a number, found null"},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"waits": "1s"}})", "/tests/0/expect/waits: expected an array, found \"1s\""},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"waits": [1]}})", "/tests/0/expect/waits/0: 1 has no unit; write a string such as \"1s\""},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"waits": [{"min": "1s"}]}})", "/tests/0/expect/waits/0: missing key \"max\""},
      {R"({"request": {"url": "http://a/"}, "outcomes": "503", "expect": {"waits": [{"min": "2s", "max": "1s"}]}})", "/tests/0/expect/waits/0: min is greater than max", false},
  };
  return all;
}
// clang-format on

}  // namespace httpretry::cases
