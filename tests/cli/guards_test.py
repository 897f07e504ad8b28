"""What holds requests back: pause, rate, concurrency, breaker."""

import json
import xml.etree.ElementTree

from program import ProgramTest, Response, main

RATE = ("--set", 'rate={"limit": "1/h", "max_wait": "0s"}')
BREAKER = ("--set", 'breaker={"kind": "consecutive", "failures": 1}', "--set", "pause=none")
ONCE = ("--set", "max_attempts=1")


class Guards(ProgramTest):
    def said(self, *args, **how):
        return self.run_program(*args, **how).stderr.decode()

    def test_a_second_url_that_the_rate_refuses_is_75(self):
        server = self.server(200)
        said = self.said(*RATE, "--report", "report.json", server.url("/a"), server.url("/b"), status=75)
        self.assertEqual(len(server.seen), 1)
        self.assertRegex(said, rf"^httpretry: \[2\] \(75\) GET {server.url('/b')}: not sent: the rate of "
                               rf"{server.url('')} allows the request in \S+ \S+, too late for max_elapsed_time, "
                               rf"max_wait or the deadline; come back at \S+ \(rate_limited\)\n$")
        first, second = self.report()
        self.assertEqual((first["outcome"], second["outcome"]), ("response", "error"))
        self.assertEqual((second["error"]["kind"], second["error"]["maybe_sent"]),
                         ("rate_limited", False))
        self.assertEqual((second["attempts"], second["stop_reason"]), ([], "rate_limited"))
        self.assertEqual(second["limits"],
                         {"rate_wait_ms": 0, "concurrency": None, "paused_until": None})
        self.assertIsNotNone(second["retry_at"])

    def test_an_attempt_takes_its_cost_from_a_rate_that_counts_costs(self):
        server = self.server(503, 200)
        rate = ("--set", 'rate=[{"limit": "100/s", "burst": 9}, '
                         '{"limit": "100/d", "counts": "cost", "max_wait": "0s"}]')
        said = self.said(*rate, "--retry-delay", "0.01", "--cost", "50", server.url("/a"), server.url("/b"), status=75)
        self.assertEqual([seen.target for seen in server.seen], ["/a", "/a"])
        self.assertIn("[2] (75) GET ", said)
        self.said(*rate, "--cost", "0", *[server.url()] * 3)

    def test_a_cost_that_no_rate_can_ever_allow_fails_at_once(self):
        server = self.server(200)
        rate = ("--set", 'rate={"limit": "100/m", "counts": "cost", "burst": 20}')
        said = self.said(*rate, "--cost", "21", "--report", "report.json", server.url(), status=2)
        self.assertIn(f"the request costs 21, but the rate of {server.url('')} allows at most 20 at once (its burst)",
                      said)
        self.assertEqual(self.report()["error"]["kind"], "invalid_request")
        self.assertEqual([attempt["sent"] for attempt in self.report()["attempts"]], ["never"])
        self.assertEqual(server.seen, [])
        self.said(*rate, "--cost", "20", server.url())
        said = self.said("--cost", "many", server.url(), status=2)
        self.assertIn("--cost", said)

    def test_worse_than_held_back_is_what_came_of_another_url(self):
        server = self.server(404, 200)
        self.run_program(*RATE, "-f", server.url("/a"), server.url("/b"), status=22)

    def test_a_breaker_that_opens_in_the_middle_leaves_the_status_of_what_came(self):
        server = self.server(503)
        said = self.said(*BREAKER, "--trace", server.url(), status=22)
        self.assertEqual(len(server.seen), 1)
        self.assertRegex(said, r"circuit http://\S+ --set: open for \d.* s \(1 failure in a row\)")
        self.assertRegex(said, r"not sent: the circuit of http://\S+ is open \(1 failure in a row\)")

    def test_a_dry_run_says_so_and_refuses_nothing(self):
        server = self.server(503, 200)
        said = self.said("--set", 'breaker={"kind": "consecutive", "failures": 1, "dry_run": true}',
                         "--trace", server.url())
        self.assertIn(", a dry run: nothing is refused", said)
        self.assertEqual(len(server.seen), 2)

    def test_a_pause_holds_the_next_url(self):
        server = self.server(Response(429, headers=[("Retry-After", "1")]), 200)
        said = self.said(*ONCE, "--trace", "--report", "report.json", server.url("/a"),
                         server.url("/b"), status=22)
        self.assertRegex(said, r"pause http://\S+: for 1.00 s \(retry-after\)")
        self.assertRegex(said, r"200 after [\d.]+ m?s, of which .* held back by pause")
        self.assertRegex(said, r"pause http://\S+: over")
        attempt = self.report()[1]["attempts"][0]
        self.assertEqual(attempt["queued_by"], "pause")
        self.assertGreater(attempt["queued_ms"], 0)

    def test_a_limit_that_follows_is_traced(self):
        server = self.server(200)
        said = self.said("--set", 'concurrency={"kind": "aimd", "initial": 1, "max": 9}', "--trace",
                         *(server.url(f"/{i}") for i in range(10)))
        self.assertRegex(said, r"concurrency http://\S+ --set: from 1 to 2")


class Plan(ProgramTest):
    def plan(self, *args, status=0):
        return self.run_program("plan", *args, status=status).stdout.decode()

    def test_calls_wait_for_the_slower_of_two_rates(self):
        rates = 'rate=[{"limit": "60/m", "burst": 4}, {"limit": "600/m", "counts": "cost"}]'
        for cost, waits in (("1", [0, 0, 0, 0, 1000]), ("200", [0, 0, 0, 20000, 40000])):
            calls = json.loads(self.plan("--parallel", 5, "--set", rates, "--cost", cost, "--outcomes", "200",
                                         "--format", "json"))
            self.assertEqual([call["attempts"][0]["queued_ms"] for call in calls], waits)
        said = self.plan("--repeat", 2, "--set", rates, "--cost", "601", "--outcomes", "200")
        self.assertIn("invalid_request", said)

    def test_calls_at_once_wait_for_the_rate(self):
        said = self.plan("--parallel", 7, "--set", 'rate={"limit": "1/s", "burst": 5}',
                         "--outcomes", "200")
        rows = [line.split() for line in said.splitlines() if " 200 " in line]
        self.assertEqual([row[2] + row[3] for row in rows], ["0s"] * 5 + ["1.00s", "2.00s"])
        self.assertIn("sends in each second: 5 1 1\n"
                      "7 calls, 7 attempts, the last ends at 2.00 s\n", said)

    def test_who_is_refused_is_shown_without_a_send(self):
        said = self.plan("--parallel", 4, "--set",
                         'concurrency={"max": 2, "queue": {"max": 1}}', "--outcomes", "200")
        self.assertEqual([line.split()[:2] for line in said.splitlines() if "queue_full" in line],
                         [["4", "-"], ["1", "not"]])
        self.assertIn("1 not sent: queue_full (too many sends are waiting for the limit of "
                      "http://localhost, or this one has waited too long)\n", said)
        refused = self.plan("--repeat", 3, *ONCE, *BREAKER).split("call 3\n")[1]
        self.assertEqual(refused, "ends before it is sent, at 0 s: circuit_open (the circuit of "
                                  "http://localhost is open (1 failure in a row))\n")

    def test_calls_that_begin_in_time_are_refused_until_the_circuit_lets_them_probe(self):
        said = self.plan("--repeat", 8, "--rate", "1/s", *ONCE, *BREAKER)
        rows = [line.split() for line in said.splitlines()[2:10]]
        self.assertEqual([(row[0], row[1]) for row in rows],
                         [("1", "1"), ("2", "-"), ("3", "-"), ("4", "-"), ("5", "-"), ("6", "1"),
                          ("7", "-"), ("8", "-")])
        self.assertEqual(rows[1], ["2", "-", "1.00", "s", "-", "not", "sent", "-", "-", "-",
                                   "circuit_open"])
        refused = "not sent: circuit_open (the circuit of http://localhost is open"
        self.assertIn(f"4 {refused} (1 failure in a row))\n2 {refused} (a probe failed))\n", said)
        self.assertIn("sends in each second: 1 0 0 0 0 1\n8 calls, 2 attempts", said)

    def test_a_tenth_of_a_call_a_second(self):
        said = self.plan("--repeat", 3, "--rate", "0.1", "--outcomes", "200")
        self.assertIn("sends in each second: 1 0 0 0 0 0 0 0 0 0 1 …\n"
                      "3 calls, 3 attempts, the last ends at 20.0 s\n", said)

    def test_json_has_all_calls(self):
        calls = json.loads(self.plan("--parallel", 3, "--format", "json", "--set",
                                     'rate={"limit": "1/s"}', "--outcomes", "200"))
        self.assertEqual([call["attempts"][0]["queued_ms"] for call in calls], [0, 1000, 2000])
        self.assertEqual([call["limits"]["rate_wait_ms"] for call in calls], [0, 1000, 2000])

    def test_the_drawing_has_a_row_for_each_call(self):
        text = self.plan("--parallel", 50, "--format", "svg", "--set", 'concurrency={"max": 9}',
                         "--outcomes", "200")
        texts = [each.text for each in xml.etree.ElementTree.fromstring(text).iter()
                 if each.text and each.tag.endswith("text")]
        self.assertEqual([each for each in texts if each.startswith("call ")],
                         [f"call {i}" for i in range(1, 41)])
        self.assertIn("and 10 more calls", texts)

    def test_options_that_exclude_each_other(self):
        for args, problem in ((("--repeat", "2", "--parallel", "2"),
                               "--repeat and --parallel cannot be combined"),
                              (("--parallel", "0"), "option --parallel must be from 1 to 1000"),
                              (("--rate", "1"), "--rate needs --repeat"),
                              (("--parallel", "2", "--rate", "1"), "--rate needs --repeat"),
                              (("--repeat", "2", "--rate", "0"),
                               "option --rate must be 0.001 calls a second or more"),
                              (("--repeat", "2", "--rate", "1/h"),
                               'option --rate: "1/h" is not a number of calls per second')):
            said = self.run_program("plan", *args, status=2).stderr.decode()
            self.assertIn(problem, said)


class Explain(ProgramTest):
    def explained(self, policy, method="GET"):
        path = self.folder / "policy.json"
        path.write_text(json.dumps({"version": 1, "default": policy}))
        said = self.run_program("policy", "explain", path, method, "http://h/").stdout.decode()
        return [line for line in said.splitlines() if "shared by" in line]

    def test_what_holds_back_in_words(self):
        self.assertEqual(self.explained({}), [])
        self.assertEqual(
            self.explained({"rate": {"limit": "10/s", "burst": 10, "max_wait": "2s"},
                            "breaker": {"preset": "hystrix"},
                            "concurrency": {"max": 3, "scope": "policy",
                                            "queue": {"max": 9, "timeout": "1m"}}}),
            ["breaker: opens at 10 failures of 20 in 10.0 s, the first time for 5.00 s; 1 success "
             "closes it (shared by http://h)",
             "rate: 10 in 1.00 s, burst 10: 100 calls at once take 9.00 s; a request that would wait longer "
             "than 2.00 s is refused (shared by http://h)",
             "concurrency: 3 at once, and 9 wait for at most 1.00 min (shared by the policy)"])
        self.assertEqual(
            self.explained({"breaker": {"failures": 5, "probes": 2, "applies_to": "retries",
                                        "dry_run": True, "scope": "credentials"},
                            "concurrency": {"kind": "aimd"}}),
            ["breaker: opens at 10 failures of 20 in 10.0 s, or at 5 failures in a row, the first "
             "time for 5.00 s; 2 successes close it; applies only to retries; a dry run: nothing is "
             "refused (shared by http://h, by credentials)",
             "concurrency: 20 at once initially, then 1 to 64, and 1000 wait "
             "(shared by http://h)"])
        self.assertEqual(
            self.explained({"breaker": {"kind": "share", "scope": "endpoint"}}),
            ["breaker: refuses a share of the sends while fewer than 50 % of those in 2.00 min "
             "succeed (shared by http://h)"])
        self.assertEqual(
            self.explained({"breaker": {"slow_after": "2s", "slow_ratio": 0.8, "when_open": "wait"}}),
            ["breaker: opens at 10 failures of 20 in 10.0 s, or 16 of 20 in 10.0 s that take over "
             "2.00 s, the first time for 5.00 s; 1 success closes it; while it is open, calls wait "
             "(shared by http://h)"])
        self.assertEqual(
            self.explained({"breaker": {"kind": "consecutive", "failures": 1}}),
            ["breaker: opens at 1 failure, the first time for 5.00 s; 1 success closes it "
             "(shared by http://h)"])

    def test_what_may_be_under_way_in_words(self):
        self.assertEqual(
            self.explained({"budget": {"kind": "concurrent"}}),
            ["budget: 3 retries and hedges in flight at once, from 20 calls in flight on 20 % of them; the "
             "next is refused until one has ended or there are more calls; each process counts its own "
             "(shared by http://h)"])
        self.assertEqual(
            self.explained({"budget": {"kind": "concurrent", "ratio": 0, "min": 1, "scope": "policy"}}),
            ["budget: 1 retry or hedge in flight at once; the next is refused until one has ended; each "
             "process counts its own (shared by the policy)"])
        self.assertIn("0 retries and hedges in flight at once, from 3 calls in flight on 33.4 % of them",
                      self.explained({"budget": {"kind": "concurrent", "ratio": 0.334, "min": 0,
                                                 "scope": "endpoint"}})[0])

    def test_when_it_hedges_in_words(self):
        self.assertEqual(
            self.explained({"hedge": {"after": "200ms"}}),
            ["hedge: sends again if no response has begun after 200 ms (fixed); 1 for an attempt; "
             "the budget is 5 % of the calls of the last 10 s, so the first one needs 20 calls; "
             "max_attempts 5 counts it (shared by http://h)"])
        self.assertEqual(
            self.explained({"max_attempts": "unlimited",
                            "hedge": {"after": "p99.9", "budget": "none", "max_hedges": 2,
                                      "scope": "policy"}}),
            ["hedge: sends again if no response has begun after as long as 99.9 % of the responses "
             "of the last 30 s took, 2.00 ms or more; none if that is greater than 5.00 s; while there are "
             "fewer than 50 samples none; 2 for an attempt; no budget of its own "
             "(shared by the policy)"])
        self.assertIn("fewer than 9 samples after 300 ms; ",
                      self.explained({"hedge": {"after": "p95", "initial": "300ms", "min_samples": 9,
                                                "budget": 1}})[0])
        self.assertIn("the first one needs 1 call; ",
                      self.explained({"hedge": {"after": "1s", "budget": 1}})[0])
        post = {"hedge": {"after": "1s", "methods": ["GET", "POST"]}}
        self.assertEqual(self.explained(post, "POST"),
                         ["hedge: none for POST: executing it twice may do harm (shared by http://h)"])
        self.assertIn("sends again", self.explained({**post, "idempotency_key": "Key"}, "POST")[0])
        self.assertEqual(self.explained(post, "PUT"),
                         ["hedge: none for PUT: hedge.methods are GET, POST (shared by http://h)"])


if __name__ == "__main__":
    main()
