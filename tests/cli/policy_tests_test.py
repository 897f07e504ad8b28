"""policy check runs the tests that stand in a policy file."""

import json
import pathlib

from program import ProgramTest, main

EXAMPLES = pathlib.Path(__file__).parents[2] / "apps" / "examples"
ENDPOINTS = [{"name": "api", "match": {"host": "a.b", "path": "/api/**"},
              "policy": {"max_attempts": 3, "backoff": {"kind": "constant", "interval": "100ms"}}},
             {"name": "gold", "match": {"host": "a.b", "headers": {"x-tier": "gold"}},
              "policy": {"preset": "none", "attempt_timeout": "40s"}}]


def test(url="http://a.b/api/x", outcomes=None, method="GET", headers=None, **expect):
    made = {"request": {"method": method, "url": url, "headers": headers or {}}, "expect": expect}
    return made if outcomes is None else made | {"outcomes": outcomes}


class PolicyTests(ProgramTest):
    def check(self, *tests, status=0):
        """What is said of a file with these tests, each in a line of its own."""
        lines = ",\n".join(map(json.dumps, tests))
        endpoints = json.dumps(ENDPOINTS)
        (self.folder / "p.json").write_text(
            f'{{"version": 1, "endpoints": {endpoints}, "tests": [\n{lines}]}}')
        return self.run_program("policy", "check", "p.json", status=status).stdout.decode()

    def failed(self, **expect):
        """The line for a call with a 503 and a 200, without its position."""
        said = self.check(test(outcomes="503,200", **expect), status=1)
        self.assertEqual(said.count("\n"), 1, said)
        position, pointer, what = said.split(": ", 2)
        self.assertRegex(position, r"^p\.json:2:\d+$")
        self.assertEqual(pointer, f"/tests/0/expect/{next(iter(expect))}")
        return what.rstrip("\n")

    def test_what_holds_is_silent(self):
        self.assertEqual(self.check(
            test(outcomes="503,200", endpoint="api", attempts=2, waits=["100ms"], reason="success",
                 status=200, success=True),
            test(outcomes="503", attempts=3, waits=["100ms", {"max": "1s"}], status=503,
                 reason="attempts_exhausted", success=False),
            test(outcomes="503", method="POST", attempts=1, waits=[], reason="unsafe_to_repeat"),
            test(outcomes=["reset,timeout", {"status": 201, "body": "x"}], attempts=3, status=201),
            test(outcomes=[{"status": 503, "times": 2}, {"fault": "refused"}], attempts=3,
                 success=False),
            test(url="http://elsewhere/", endpoint=None)), "")

    def test_what_does_not_hold_is_told_with_its_place_and_what_happened(self):
        call = "the call succeeded after 2 attempts in 100 ms: 503, 200"
        self.assertEqual(self.failed(attempts=3), f"expected 3, found 2; {call}")
        self.assertEqual(self.failed(reason="not_retryable"),
                         f"expected not_retryable, found success; {call}")
        self.assertEqual(self.failed(status=503), f"expected 503, found 200; {call}")
        self.assertEqual(self.failed(success=False), f"expected false, found true; {call}")
        waits = f"the waits are 100 ms, and {call}"
        self.assertEqual(self.failed(waits=[]), f"expected 0 of them, found 1; {waits}")
        self.assertEqual(self.failed(waits=["1s"]),
                         f"expected 1.00 s for wait 1, found 100 ms; {waits}")
        self.assertEqual(self.failed(waits=[{"min": "1s", "max": "2s"}]),
                         f"expected 1.00 s to 2.00 s for wait 1, found 100 ms to 100 ms; {waits}")
        advice = "httpretry policy explain p.json GET http://a.b/api/x says why"
        self.assertEqual(self.failed(endpoint="gold"),
                         f'expected "gold", found "api"; {advice}')
        self.assertEqual(self.failed(endpoint=None), f'expected no entry, found "api"; {advice}')

    def test_a_call_without_a_response_has_no_status(self):
        said = self.check(test(outcomes="refused", status=503), status=1)
        self.assertIn("expected 503, found no response; the call gave up after 3 attempts", said)

    def test_headers_of_the_request_choose_the_entry_and_its_policy(self):
        self.assertEqual(self.check(
            test(url="http://a.b/x", outcomes="503", headers={"X-Tier": "gold"}, endpoint="gold",
                 attempts=1),
            test(url="http://a.b/x", outcomes="503,200", endpoint=None, attempts=2)), "")

    def test_a_timeout_takes_as_long_as_the_policy_of_the_request_says(self):
        said = self.check(test(url="http://a.b/x", outcomes="timeout", headers={"x-tier": "gold"},
                               success=True), status=1)
        self.assertIn("found false; the call failed after 1 attempt in 40.0 s: timeout", said)

    def test_a_range_holds_the_waits_of_every_draw(self):
        def waits(*, least="150ms", most="300ms", status=0):
            return self.check(test(url="http://c/", outcomes="503,200",
                                   waits=[{"min": least, "max": most}]), status=status)
        self.assertEqual(waits(), "")
        self.assertIn("found 150 ms to 300 ms", waits(least="151ms", status=1))
        self.assertIn("found 150 ms to 300 ms", waits(most="299ms", status=1))
        # One value is the wait of the draw that `plan` uses.
        self.assertEqual(self.check(test(url="http://c/", outcomes="503,200", waits=["225ms"])), "")

    def test_a_range_holds_every_wait_that_max_elapsed_time_allows(self):
        def waits(*most, limit="3500ms", **policy):
            backoff = {"kind": "exponential", "initial": "2s", "multiplier": 1, "max_interval": "2s",
                       "jitter": "full"}
            default = {"preset": "standard", "max_attempts": 4, "max_elapsed_time": limit,
                       "backoff": backoff, **policy}
            case = test(url="http://x/", outcomes="503", waits=[{"max": time} for time in most])
            (self.folder / "w.json").write_text(
                json.dumps({"version": 1, "default": default, "tests": [case]}))
            ran = self.run_program("policy", "check", "w.json", status=(0, 1))
            return [line.split(": ", 2)[2].split(";")[0] for line in ran.stdout.decode().splitlines()]
        # With the longest waits, the call ends after the first one. With others, it goes on.
        self.assertEqual(waits("2s", "1s", "1s"), ["expected 0 s to 1.00 s for wait 2, found 0 s to 2.00 s",
                                                   "expected 0 s to 1.00 s for wait 3, found 0 s to 2.00 s"])
        self.assertEqual(waits("2s", "2s", "2s"), [])
        # No wait is longer than the limit, except with the rule that ignores the wait.
        self.assertEqual(waits("1500ms", "1500ms", limit="1500ms", elapsed_rule="clip_wait"), [])
        self.assertEqual(waits("1500ms", limit="1500ms", max_attempts=2), [])
        self.assertEqual(waits("1500ms", limit="1500ms", max_attempts=2, elapsed_rule="before_wait"),
                         ["expected 0 s to 1.50 s for wait 1, found 0 s to 2.00 s"])

    def test_words_of_outcomes_that_the_library_does_not_know_are_told_with_their_place(self):
        said = self.check(test(outcomes="503,timeot", attempts=2), status=1)
        self.assertRegex(said, r'^p\.json:2:\d+: /tests/0/outcomes: "timeot" is not a status \(200 to '
                               r'999\) or a fault; did you mean "timeout"\?\n$')
        said = self.check(test(outcomes=["503", {"fault": "rset"}], attempts=2), status=1)
        self.assertRegex(said, r'^p\.json:2:\d+: /tests/0/outcomes/1/fault: "rset" is not a fault; '
                               r'did you mean "reset"\?\n$')

    def test_a_step_is_read_as_in_a_scenario(self):
        self.assertEqual(self.check(test(url="http://c/", attempts=2, waits=["20s"], outcomes=[
            {"status": 503, "body": None, "headers": {"Retry-After": {"at": "now+20"}, "a": ["b", "c"]}},
            "200"])), "")
        for value, problem in (("now+200", r'"now\+200" is not a value: write the time as '
                                           r'\{"at": "now\+200"\}'),
                               ({"at": "soon"}, '"soon" is not a time: write it like "now\\+60"')):
            said = self.check(test(outcomes=[{"status": 503, "headers": {"Retry-After": value}}],
                                   attempts=2), status=1)
            self.assertRegex(said, r"^p\.json:2:\d+: /tests/0/outcomes/0/headers/Retry-After(/at)?: " + problem)

    def test_a_test_that_is_malformed_is_an_error_wherever_the_file_is_used(self):
        said = self.check(test(outcomes="503", attemps=2), status=1)
        self.assertIn('/tests/0/expect/attemps: unknown key; did you mean "attempts"?', said)
        self.assertIn(b"/tests/0/expect/attemps", self.run_program(
            "plan", "--policy", "p.json", status=3).stderr)

    def test_a_call_that_never_ends_is_stopped(self):
        (self.folder / "p.json").write_text(json.dumps({
            "version": 1, "default": {"preset": "google-http-client", "backoff": {"kind": "none"}},
            "tests": [test(outcomes="503", reason="success")]}))
        said = self.run_program("policy", "check", "p.json", status=1).stdout.decode()
        self.assertIn("expected success, found canceled", said)

    def test_the_examples_hold_and_each_of_the_twelve_has_a_test(self):
        for file in EXAMPLES.glob("*.json"):
            self.assertEqual(self.run_program("policy", "check", file).stdout, b"", file)
        services = json.loads((EXAMPLES / "twelve_services.json").read_text())
        self.assertEqual(len(services["policies"]), 12)
        entries = {entry["name"] for entry in services["endpoints"]}
        tested = {one["expect"].get("endpoint") for one in services["tests"]}
        self.assertEqual(tested, entries | {None})
        # A test that expects something else fails: they are not passed over.
        for number, one in enumerate(services["tests"]):
            if "attempts" in one["expect"]:
                one["expect"]["attempts"] += 1
                break
        services.pop("$schema")
        (self.folder / "wrong.json").write_text(json.dumps(services))
        said = self.run_program("policy", "check", "wrong.json", status=1).stdout.decode()
        self.assertIn(f"/tests/{number}/expect/attempts: expected 5, found 4; ", said)


if __name__ == "__main__":
    main()
