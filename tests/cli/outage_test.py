"""Runs of -Z while a server fails: what is sent, and what becomes of the URLs."""

import collections
import json
import threading
import time

from program import LIMIT, ProgramTest, Response, Server, main


class FailingServer(Server):
    """503 while `fails()`, then 200."""

    def __init__(self, fails):
        super().__init__(200)
        self.fails = fails
        self.failed = []  # of each request
        self.responses = self

    def __len__(self):
        return 1

    def __getitem__(self, _):
        self.failed.append(self.fails())
        return Response(503 if self.failed[-1] else 200)

    def sends(self):
        """How many each URL got."""
        return collections.Counter(seen.target for seen in self.seen)

    def good(self):
        return {seen.target for seen, failed in zip(self.seen, self.failed) if not failed}

    def begun_before_a_success(self):
        end = self.failed.index(False) if False in self.failed else len(self.failed)
        return {seen.target for seen in self.seen[:end]}


QUICK = ("--set", "backoff.initial=20ms")


class Outage(ProgramTest):
    def failing_server(self, fails):
        server = FailingServer(fails)
        self.addCleanup(server.close)
        return server

    def failing_for(self, seconds):
        began = []

        def fails():
            began.append(time.monotonic())
            return began[-1] - began[0] < seconds

        return self.failing_server(fails)

    def send(self, urls, *flags, **options):
        (self.folder / "urls").write_text("".join(f'url = "{url}"\n' for url in urls))
        return self.run_program("-Z", "-s", "-K", "urls", *flags, **options)

    def test_no_url_is_lost_in_a_short_outage(self):
        for urls, parallel in ((100, 8), (300, 50)):
            with self.subTest(urls=urls, parallel=parallel):
                server = self.failing_for(1.5)
                self.send([server.url(f"/{i}") for i in range(urls)], "--parallel-max", parallel)
                self.assertEqual(len(server.good()), urls)

    def test_no_further_url_begins_while_nothing_succeeds(self):
        server = self.failing_for(1.5)
        self.send([server.url(f"/{i}") for i in range(100)], "--parallel-max", 16)
        self.assertEqual(len(server.begun_before_a_success()), 16)

    def test_a_server_that_stays_down_gets_one_more_send_for_each_url(self):
        for urls, parallel in ((100, 8), (50, 50)):
            with self.subTest(urls=urls, parallel=parallel):
                server = self.failing_server(lambda: True)
                self.send([server.url(f"/{i}") for i in range(urls)], *QUICK,
                          "--parallel-max", parallel, status=22)
                sends = server.sends()
                self.assertEqual(len(sends), urls)
                # Three calls retry for all. The others that had begun get a second send.
                more = [each for each in sends.values() if each > 2]
                self.assertLessEqual(len(more), 3)
                self.assertLessEqual(max(sends.values()), 5)
                self.assertLessEqual(len(server.seen), urls + parallel + 3 * 4)

    def test_one_success_gives_the_others_their_retries_back(self):
        server = self.failing_server(lambda: True)
        counts = collections.Counter()

        # Each URL fails until one has given up; from then on, every second send.
        def fails():
            counts["all"] += 1
            gave_up = max(server.sends().values(), default=0) == 5
            counts["after"] += gave_up
            return not gave_up or counts["after"] % 2 == 1

        server.fails = fails
        self.send([server.url(f"/{i}") for i in range(60)], *QUICK, "--parallel-max", 1,
                  status=22)
        self.assertGreater(len(server.good()), 50)

    def test_a_healthy_host_is_not_delayed(self):
        done = threading.Event()
        bad = self.failing_server(lambda: not done.is_set())
        good = self.server(*[200] * 100)
        urls = [server.url(f"/{i}") for i in range(100) for server in (bad, good)]

        def wait():
            for _ in range(100):
                good.arrived.get(timeout=LIMIT)
            done.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        self.send(urls, "--parallel-max", 8)
        waiting.join()
        self.assertEqual(len(bad.good()), 100)

    def test_each_host_has_its_own_policy(self):
        servers = [self.failing_server(lambda: True) for _ in range(2)]
        entries = [{"match": {"host": "127.0.0.1", "port": server.port},
                    "policy": {"extends": "p", "max_attempts": attempts}}
                   for server, attempts in zip(servers, (2, 4))]
        policies = {"version": 1, "policies": {"p": {}}, "endpoints": entries}
        (self.folder / "policy.json").write_text(json.dumps(policies))
        urls = [server.url(f"/{i}") for i in range(40) for server in servers]
        self.send(urls, *QUICK, "--policy", "policy.json", "--parallel-max", 80, status=22)
        self.assertEqual([max(server.sends().values()) for server in servers], [2, 4])

    def test_a_budget_of_the_user_counts(self):
        server = self.failing_server(lambda: True)
        self.send([server.url(f"/{i}") for i in range(20)], *QUICK, "--set", "budget.capacity=5",
                  "--parallel-max", 1, status=22)
        self.assertEqual(len(server.seen), 21)


if __name__ == "__main__":
    main()
