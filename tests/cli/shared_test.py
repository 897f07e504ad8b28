"""--shared without a server. With one: servers/redis_test.py."""

import threading

from program import ProgramTest, Response, closed_port, main

HOUR = ("--set", 'rate={"limit": "1/h", "burst": 2, "max_wait": "0s"}')


class Shared(ProgramTest):
    def setUp(self):
        super().setUp()
        self.origin = self.server(200)

    def get(self, *args, status=0, env=None):
        return self.run_program(*args, self.origin.url(), status=status, env=env).stderr.decode()

    def test_a_server_that_is_not_there_is_told_and_the_run_goes_on(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        url = f"redis://:hush@127.0.0.1:{port}/0?workers=4"
        # The next call after the server was found to be away tells of it.
        found_away = threading.Event()
        timer = threading.Timer(0.5, found_away.set)
        self.addCleanup(timer.join)
        self.origin = self.server(Response(200, hold=found_away), 200)
        timer.start()
        # The share of a burst of 2 is 1.
        said = self.get("--shared", url, "--trace", *HOUR, self.origin.url("/first"), status=75)
        self.assertEqual(len(self.origin.seen), 1)
        self.assertRegex(said, rf"httpretry: limits are not shared: redis://127.0.0.1:{port}/0: .*; this "
                               "process continues with 1/4 of each limit until it is back")
        self.assertRegex(said, rf"limits on redis://127.0.0.1:{port}/0: away \(.*\)")
        self.assertNotIn("hush", said)
        self.assertNotIn("not shared", self.get("-s", "--shared", url, *HOUR))

    def test_what_is_wrong_with_the_url_is_an_error(self):
        self.assertIn("option --shared: Redis URL: position 1: rediss:// is not supported",
                      self.usage_error("--shared", "rediss://h", self.origin.url()))
        self.assertIn("(expected redis:// and [USER:PASSWORD@]HOST[:PORT][/DATABASE]"
                      "[?job=NAME&workers=N&timeout=MS])",
                      self.usage_error("--shared", "redis://h/x", self.origin.url()))
        result = self.run_program(self.origin.url(), status=2, env={"HTTPRETRY_SHARED": "redis://"})
        self.assertIn("HTTPRETRY_SHARED: Redis URL: position 9: it has no host", result.stderr.decode())


if __name__ == "__main__":
    main()
