"""What becomes of the jobs of httpretry batch while a server fails, and what the command says about that."""

import re
import threading

from batch_test import BUSY, BatchTest
from outage_test import FailingServer
from program import QUICK, Response, closed_port, main

# As with the defaults, the breaker stays open for longer than a call waits for its next attempt (QUICK).
BREAKER = ("--set", "breaker.kind=consecutive", "--set", "breaker.failures=4",
           "--set", "breaker.open_for.initial=2s", "--set", "breaker.open_for.max_interval=2s")


class Outages(BatchTest):
    def failing_server(self, fails):
        server = FailingServer(fails)
        self.addCleanup(server.close)
        return server

    def jobs(self, server, count):
        return self.input(*[server.url(f"/{i}") for i in range(count)])

    def test_a_job_is_dead_after_the_attempts_of_its_policy_and_the_message_says_what_outlasts_an_outage(self):
        server = self.failing_server(lambda: True)
        said = self.batch(*QUICK, self.jobs(server, 3), status=22).stderr.decode()
        self.assertEqual(set(server.sends().values()), {5})
        self.assertIn("httpretry: 3 jobs failed after all retries that the policy allows; to make jobs wait until "
                      "an outage ends, use --set breaker.kind=consecutive --set breaker.failures=4 --max-idle 2m; "
                      "--export dead lists the failed jobs as input for another run", said)

    def test_a_job_that_fails_for_another_reason_is_not_blamed_on_an_outage(self):
        server = self.server(404)
        self.assertNotIn("breaker", self.batch(self.input(server.url()), status=22).stderr.decode())

    def test_more_attempts_outlast_a_longer_outage(self):
        server = self.failing_server(lambda: max(server.sends().values(), default=0) < 9)
        self.batch(*QUICK, "--set", "max_attempts=30", "--set", "max_elapsed_time=30m", self.jobs(server, 3))
        self.assertEqual(len(server.good()), 3)

    def test_with_a_breaker_jobs_wait_until_the_server_recovers_and_none_is_dead(self):
        for count in (1, 10):
            with self.subTest(jobs=count):
                server = self.failing_server(lambda: len(server.seen) < 5)
                self.batch("--fresh", "--parallel", "1", *BREAKER, *QUICK, self.jobs(server, count))
                self.assertEqual(self.states(), sorted((str(i + 1), "done") for i in range(count)))

    def test_jobs_that_a_probe_holds_back_follow_soon_after_its_success(self):
        server = self.failing_server(lambda: len(server.seen) < 11)
        # A job that waited for the time limit of a probe would wait longer than --max-idle.
        self.batch("--parallel", "10", *BREAKER, "--set", "breaker.probe_timeout=1h", *QUICK, self.jobs(server, 50))
        self.assertEqual(self.states(), sorted((str(i + 1), "done") for i in range(50)))

    def test_with_a_limit_for_responses_a_breaker_outlasts_a_server_that_does_not_respond(self):
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release))
        file = self.jobs(server, 3)
        self.batch(*BREAKER, "--set", "breaker.open_for.initial=1h", "--set", "breaker.open_for.max_interval=1h",
                   "--set", "response_timeout=50ms", *QUICK, file, status=75)
        self.assertEqual(self.lines(), [])

    def test_a_breaker_outlasts_a_server_to_which_nothing_connects(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        file = self.input(*[f"http://127.0.0.1:{port}/{i}" for i in range(50)])
        said = self.batch(*BREAKER, "--set", "breaker.open_for.initial=1h", "--set",
                          "breaker.open_for.max_interval=1h", file, status=75).stderr.decode()
        self.assertEqual(self.lines(), [])
        self.assertRegex(said, r"all remaining jobs must wait longer than --max-idle \(1\.00 min\); run the same "
                               r"command again at 20\S+ or later, or set a longer --max-idle")

    def test_max_idle_lets_a_run_wait_longer(self):
        server = self.server(BUSY)
        file = self.input(server.url())
        said = self.batch("--max-idle", "90s", file, status=75).stderr.decode()
        self.assertIn("must wait longer than --max-idle (1.50 min); run the same command again at 20", said)

    def test_no_end_is_estimated_while_jobs_wait(self):
        server = self.server(200)
        file = self.input(*[server.url(f"/{i}") for i in range(5)],
                          {"url": server.url(), "not_before": "2190-01-01T00:00:00Z"})
        process = self.batch("--progress", "line", "--rate", "10/s", file, status=75)
        shown = re.findall(r"[^\r\n]* 1 waiting[^\r\n]*", process.stderr.decode())
        self.assertTrue(any("5/6 done" in line for line in shown) or shown, shown)
        self.assertNotIn("ETA", "".join(shown))


if __name__ == "__main__":
    main()
