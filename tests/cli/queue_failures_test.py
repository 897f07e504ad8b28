"""httpretry work where workers die, stand still or are stopped, and where the Redis server is away."""

import signal
import threading
import time

from program import LIMIT, Response, main, wait_until
from queue_program import QUIET, SHORT, QueueTest, SlowProxy


class Crashes(QueueTest):
    def test_a_worker_that_stood_still_is_late(self):
        self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, b"slow", hold=release), Response(200, b"fast"))
        self.enqueue({"url": server.url(), "id": "a"})
        slow = self.start_worker("--drain", *SHORT)
        server.arrived.get(timeout=LIMIT)
        slow.send_signal(signal.SIGSTOP)
        time.sleep(1.5)  # three leases
        self.drain(*SHORT)
        release.set()
        slow.send_signal(signal.SIGCONT)
        self.assertEqual(slow.wait(timeout=LIMIT), 0)
        self.assertIn("1 of 1 done, 1 of this worker too late", slow.stderr.read().decode())
        self.assertEqual([line["body"] for line in self.results()], ["fast"])
        self.assertEqual(self.status()["results that came too late"], 1)

    def test_what_must_not_be_sent_twice_is_unknown_after_a_kill(self):
        self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release))
        self.enqueue({"url": server.url(), "id": "post", "body": "x"})
        worker = self.start_worker(*SHORT)
        server.arrived.get(timeout=LIMIT)
        self.assertEqual(self.status()["sending"], 1)
        worker.kill()
        self.assertIn("1 unknown", self.drain(*SHORT, status=75))
        self.assertEqual(len(server.seen), 1)
        self.assertEqual(self.results(), [])

    def test_a_late_outcome_resolves_what_is_unknown(self):
        self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(201, hold=release))
        self.enqueue({"url": server.url(), "id": "post", "body": "x"})
        worker = self.start_worker("--drain", *SHORT)
        server.arrived.get(timeout=LIMIT)
        worker.send_signal(signal.SIGSTOP)
        time.sleep(1)
        self.drain(*SHORT, status=75)
        self.assertEqual(self.status()["unknown"], 1)
        release.set()
        worker.send_signal(signal.SIGCONT)
        self.assertEqual(worker.wait(timeout=LIMIT), 0, worker.stderr.read())
        self.assertEqual(self.states(), [("post", "done")])
        self.assertEqual(len(server.seen), 1)

    def test_a_job_that_ends_its_workers_is_given_up(self):
        self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release))
        self.enqueue({"url": server.url(), "id": "a"})
        for _ in range(5):
            worker = self.start_worker(*SHORT, *QUIET)
            server.arrived.get(timeout=LIMIT)
            worker.kill()
        self.drain(*SHORT, status=22)
        self.assertEqual(len(server.seen), 5)
        line = self.results()[0]
        self.assertEqual((line["id"], line["state"]), ("a", "dead"))
        self.assertIn("5 workers had it, and none of them said what became of it",
                      line["error"]["message"])
        self.assertEqual(self.status()["dead because their workers ended"], 1)

    def test_the_first_signal_lets_requests_end_and_gives_back_the_others(self):
        self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release), 200)
        self.enqueue(*[{"url": server.url(f"/{i}"), "id": f"{i}"} for i in range(3)])
        worker = self.start_worker("--parallel", "1", *QUIET)
        server.arrived.get(timeout=LIMIT)
        worker.send_signal(signal.SIGINT)
        self.assertIn(b"requests on their way may end", worker.stderr.readline())
        release.set()
        self.assertEqual(worker.wait(timeout=LIMIT), 128 + signal.SIGINT)
        self.assertEqual(len(server.seen), 1)
        # At once, not after a lease.
        self.drain(*QUIET)
        self.assertEqual(self.status()["done"], 3)

    def test_the_second_signal_stops_them(self):
        self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release), Response(200, hold=release))
        self.enqueue({"url": server.url("/get"), "id": "get"},
                     {"url": server.url("/post"), "id": "post", "body": "x"})
        worker = self.start_worker(*QUIET)
        server.arrived.get(timeout=LIMIT)
        server.arrived.get(timeout=LIMIT)
        worker.send_signal(signal.SIGTERM)
        worker.stderr.readline()
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 128 + signal.SIGTERM)
        status = self.status()
        self.assertEqual((status["queued"], status["unknown"]), (1, 1))


class Away(QueueTest):
    def test_results_are_kept_until_the_server_is_back(self):
        redis = self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release), 200)
        self.enqueue({"url": server.url(), "id": "post", "body": "x"})
        worker = self.start_worker("--drain", *QUIET)
        server.arrived.get(timeout=LIMIT)
        redis.kill()
        self.assertIn(b"cannot be reached", worker.stderr.readline())
        release.set()
        time.sleep(0.3)  # the outcome is there, and cannot be filed
        self.assertIsNone(worker.poll())
        redis.again()
        self.assertEqual(worker.wait(timeout=LIMIT), 0)
        self.assertIn(b"it is back", worker.stderr.readline())
        self.assertEqual(self.states(), [("post", "done")])
        self.assertEqual(len(server.seen), 1)

    def test_results_are_kept_while_the_server_is_full(self):
        redis = self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release))
        self.enqueue({"url": server.url(), "id": "post", "body": "x"})
        worker = self.start_worker("--drain", *QUIET)
        server.arrived.get(timeout=LIMIT)
        redis.ask("CONFIG", "SET", "maxmemory", "1")
        release.set()
        self.assertIn(b"results are kept, and filed later", worker.stderr.readline())
        redis.ask("CONFIG", "SET", "maxmemory", "0")
        self.assertEqual(worker.wait(timeout=LIMIT), 0)
        self.assertEqual(self.states(), [("post", "done")])

    def test_results_that_cannot_be_filed_are_an_error(self):
        redis = self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release))
        self.enqueue(server.url())
        worker = self.start_worker("--grace", "300ms", *QUIET)
        server.arrived.get(timeout=LIMIT)
        redis.kill()
        release.set()
        worker.stderr.readline()
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 23)
        self.assertIn("what became of 1 jobs could not be told to the queue",
                      worker.stderr.read().decode())

    def test_a_queue_that_was_deleted_ends_its_workers(self):
        redis = self.redis()
        worker = self.start_worker(*QUIET)
        wait_until(lambda: b"jobs" in redis.ask("KEYS", "*:m"))
        redis.ask("FLUSHALL")
        self.assertEqual(worker.wait(timeout=LIMIT), 23)
        self.assertIn("queue jobs was deleted", worker.stderr.read().decode())

    def test_a_delay_of_two_seconds_changes_nothing_but_the_time(self):
        redis = self.redis()
        proxy = SlowProxy(redis.port)
        self.addCleanup(proxy.close)
        server = self.server(200)
        worker = self.start_worker(*QUIET, port=proxy.port)
        wait_until(lambda: b"jobs" in redis.ask("KEYS", "*:m"))
        proxy.delay = 2
        self.enqueue({"url": server.url(), "id": "a", "body": "x"})
        wait_until(lambda: self.status()["done"] == 1)
        proxy.delay = 0
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 128 + signal.SIGTERM)
        self.assertEqual(worker.stderr.read().decode().count("\n"), 1)
        self.assertEqual(len(server.seen), 1)

    def test_servers_that_cannot_keep_a_queue_are_refused(self):
        self.redis("--maxmemory-policy", "allkeys-lru")
        said = self.refused(*self.words("--drain"))
        self.assertIn("has maxmemory-policy allkeys-lru: when its memory is full it deletes jobs", said)
        self.assertIn("keeps its data in memory only: a restart loses the queue",
                      self.drain("--force"))
        self.queue.kill()
        self.assertIn("cannot use redis://127.0.0.1:", self.refused(*self.words("--drain")))


if __name__ == "__main__":
    main()
