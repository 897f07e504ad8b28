"""redis-server: limits that processes share, each a run of the program."""

import datetime
import signal
import subprocess
import threading

from daemon import ServerTest, free_port, main
from program import Response, wait_until

HOUR = ("--set", 'rate={"limit": "1/h", "burst": 2, "max_wait": "0s"}')
ONCE = ("--set", "max_attempts=1")


class Redis(ServerTest):
    def setUp(self):
        super().setUp()
        self.origin = self.server(200)

    def redis(self, *options, auth=""):
        """Its URL. A busy machine is no server that is away, hence the timeout."""
        port = free_port()
        self.daemon("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", *options, port=port)
        return f"redis://{auth}127.0.0.1:{port}/0?timeout=10000"

    def get(self, *args, status=0, env=None):
        return self.run_program(*args, self.origin.url(), status=status, env=env).stderr.decode()

    def test_runs_share_a_rate(self):
        url = self.redis()
        self.get("--shared", url, *HOUR)
        self.get(*HOUR, env={"HTTPRETRY_SHARED": url})
        said = self.get("--shared", url, *HOUR, status=75)
        self.assertRegex(said, r"not sent: the rate of \S+ allows the request in [0-9.]+ min, too late")
        self.assertEqual(len(self.origin.seen), 2)
        self.get(*HOUR, env={"HTTPRETRY_SHARED": ""})  # not shared

    def test_runs_share_a_breaker(self):
        url = self.redis()
        self.origin.responses = [Response(503)]
        breaker = ("--set", 'breaker={"kind": "consecutive", "failures": 2}', *ONCE)
        self.get("--shared", url, *breaker, status=22)
        self.get("--shared", url, *breaker, status=22)
        said = self.get("--shared", url, *breaker, "--trace", status=75)
        self.assertRegex(said, r"circuit http://\S+ --set: open for .* \(2 failures in a row, of all processes\)")
        self.assertEqual(len(self.origin.seen), 2)

    def test_batch_shares_a_rate(self):
        url = self.redis()
        self.get("--shared", url, *HOUR)
        (self.folder / "jobs").write_text("".join(f"{self.origin.url('/' + str(i))}\n" for i in range(3)))
        self.run_program("batch", "--shared", url, *HOUR, "--max-idle", "1s", "--progress", "none", "jobs",
                         status=75)
        self.assertEqual(len(self.origin.seen), 2)

    def test_the_slots_of_a_run_that_is_killed_come_back(self):
        url = self.redis()
        never = threading.Event()
        self.addCleanup(never.set)
        self.origin.responses = [Response(200, hold=never), Response(200)]
        one = ("--shared", url, "--set", "concurrency.max=1")
        first = self.start(*one, self.origin.url())
        wait_until(lambda: len(self.origin.seen) == 1)
        second = self.start(*one, self.origin.url())
        first.send_signal(signal.SIGKILL)
        self.assertEqual(second.wait(30), 0)
        self.assertEqual(len(self.origin.seen), 2)

    def test_without_a_queue_a_send_waits_for_the_reply_of_the_server_and_not_for_a_slot(self):
        url = self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        self.origin.responses = [Response(200, hold=release)]
        one = ("--shared", url, "--set", 'concurrency={"max": 1, "queue": {"max": 0}}', *ONCE)
        first = self.start(*one, self.origin.url())
        wait_until(lambda: len(self.origin.seen) == 1)
        self.assertIn("queue_full", self.get(*one, status=75))
        release.set()
        first.communicate()
        self.assertEqual((first.returncode, len(self.origin.seen)), (0, 1))

    def test_a_clock_that_is_an_hour_ahead_is_of_no_account(self):
        url = self.redis()
        (self.folder / "ahead.c").write_text("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec* to) {
  int (*real)(clockid_t, struct timespec*) = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(which, to);
  if (which == CLOCK_REALTIME) to->tv_sec += 3600;
  return result;
}
""")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", "ahead.so", "ahead.c", "-ldl"], cwd=self.folder, check=True)
        ahead = {"LD_PRELOAD": str(self.folder / "ahead.so")}
        limits = ("--shared", url, "--set", 'rate={"limit": "2/h", "burst": 2, "max_wait": "0s"}')
        self.get(*limits, env=ahead)
        self.get(*limits)
        # Half an hour is left until the next, by either clock.
        self.get(*limits, "--report", "ahead.json", env=ahead, status=75)
        self.get(*limits, "--report", "right.json", status=75)
        self.assertEqual(len(self.origin.seen), 2)
        right, ahead = (datetime.datetime.fromisoformat(self.report(name)["retry_at"].replace("Z", "+00:00"))
                        for name in ("right.json", "ahead.json"))
        self.assertAlmostEqual((ahead - right).total_seconds(), 3600, delta=120)

    def test_a_password(self):
        url = self.redis("--requirepass", "sesame", auth=":sesame@")
        self.get("--shared", url, *HOUR)
        self.get("--shared", url, *HOUR)
        self.get("--shared", url, *HOUR, status=75)


if __name__ == "__main__":
    main("redis-server", "redis-server")
