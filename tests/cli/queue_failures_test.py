"""httpretry work where workers die, stand still or are stopped, and where the Redis server is away."""

import json
import re
import signal
import threading
import time

from program import LIMIT, Response, main, wait_until
from queue_program import QUIET, SHORT, QueueTest, SlowProxy


class Shortages(QueueTest):
    def test_a_worker_with_few_descriptors_has_no_dead_letters(self):
        self.redis()
        server = self.server(200)
        self.enqueue(*[{"url": server.url(f"/{i}")} for i in range(300)])
        said = self.run_out_of_descriptors(server, *self.words("--drain", "--parallel", "200"), files=64)
        self.assertIn("300 of 300 done", said)
        self.assertEqual(len(server.seen), 300)

    def test_a_worker_that_cannot_send_leaves_its_jobs_to_others(self):
        self.redis()
        server = self.server(200)
        for files in range(30, 5, -1):
            server.seen.clear()
            self.enqueue(*[{"url": server.url(f"/{i}"), "id": f"{files}-{i}"} for i in range(5)])
            ran = self.work("--drain", "--max-idle", 0, files=files, status=(0, 75))
            said = ran.stderr.decode()
            if "ended because no further request could be sent" in said:
                break
            self.drain()  # a job that had no descriptor may wait longer than --max-idle
        else:
            self.fail(f"every worker could send: {said}")
        status = self.status()
        self.assertEqual((status["dead"], status["queued"]), (0, 5 - len(server.seen)))
        self.drain()
        self.assertEqual(len(server.seen), 5)


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
        self.assertEqual(self.status()["results that arrived too late"], 1)

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
        said = self.drain(*SHORT, status=75)
        self.assertIn("1 unknown", said)
        self.assertIn("--unknown FILE writes the jobs that may have been executed; --retry-unknown", said)
        self.assertEqual(len(server.seen), 1)
        self.assertEqual(self.results(), [])

    def test_what_is_unknown_is_an_input_and_is_sent_again_on_request(self):
        self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release), Response(200, hold=release), 201)
        lines = [{"url": server.url("/a"), "id": "a", "body": "x"}, {"url": server.url("/b"), "body": "y"}]
        self.enqueue(*lines, {"url": server.url("/get"), "id": "get", "not_before": "2099-01-01T00:00:00Z"})
        worker = self.start_worker(*SHORT)
        for _ in range(2):
            server.arrived.get(timeout=LIMIT)
        self.assertIn("0 unknown jobs queued again", self.work("--retry-unknown").stderr.decode())
        worker.kill()
        self.drain(*SHORT, *QUIET, status=75)
        self.assertEqual(self.status()["unknown"], 2)
        listed = [json.loads(line) for line in self.work("--unknown", "-").stdout.splitlines()]
        self.assertEqual(listed[0], lines[0])
        self.assertRegex(listed[1].pop("id"), "^[0-9a-f]{8}-2$")
        self.assertEqual(listed[1], lines[1])
        # A file is replaced, because a job may be unknown no more.
        (self.folder / "unknown").write_text("old")
        self.assertIn("2 unknown jobs written to unknown", self.work("--unknown", "unknown").stderr.decode())
        self.assertEqual((self.folder / "unknown").read_bytes(), self.work("--unknown", "-").stdout)
        # Another queue takes it as it is.
        self.run_program("batch", "--check", "unknown")
        self.assertIn("2 unknown jobs queued again", self.work("--retry-unknown").stderr.decode())
        self.assertEqual(self.status()["queued"], 2)
        self.assertEqual(self.work("--unknown", "-").stdout, b"")
        self.drain(*QUIET, status=75)
        self.assertEqual(len(server.seen), 4)
        self.assertEqual([state for _, state in self.states()], ["done", "done"])
        self.assertEqual(self.work("--results", "-").stdout, (self.folder / "results").read_bytes())

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
        self.assertIn("5 workers took it, and none of them reported a result",
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
        self.assertIn(b"waiting for the requests in flight", worker.stderr.readline())
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
        self.assertEqual(self.status()["sending"], 1)
        redis.ask("CONFIG", "SET", "maxmemory", "0")
        self.assertEqual(worker.wait(timeout=LIMIT), 0)
        self.assertIn(b"queue jobs: OOM no longer occurs", worker.stderr.readline())
        self.assertEqual(self.states(), [("post", "done")])

    def test_errors_that_alternate_are_told_once_and_when_they_are_over(self):
        redis = self.redis()
        server = self.server(200)
        worker = self.start_worker(*SHORT, *QUIET)
        self.enqueue(server.url())
        server.arrived.get(timeout=LIMIT)
        wait_until(lambda: self.status().get("done") == 1)
        redis.ask("SET", "{hr:jobs}:z", "text")  # what asks for news fails
        redis.ask("CONFIG", "SET", "maxmemory", "1")  # and what writes
        def seen(code):
            found = re.search(f"errorstat_{code}:count=(\\d+)", redis.ask("INFO", "errorstats").decode())
            return int(found[1]) if found else 0
        wait_until(lambda: seen("OOM") >= 4 and seen("WRONGTYPE") >= 4)
        redis.ask("CONFIG", "SET", "maxmemory", "0")
        redis.ask("DEL", "{hr:jobs}:z")
        lines = [worker.stderr.readline().decode() for _ in range(4)]
        for code in ("OOM", "WRONGTYPE"):
            self.assertEqual([f"jobs: {code} no longer occurs" in line for line in lines].count(True), 1, lines)
            self.assertEqual([f"jobs: {code} " in line and "filed later" in line
                              for line in lines].count(True), 1, lines)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 128 + signal.SIGTERM)

    def test_a_second_signal_does_not_wait_for_a_server_that_is_away(self):
        redis = self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release))
        self.enqueue({"url": server.url(), "id": "a"})
        worker = self.start_worker("--grace", "1h", *QUIET)
        server.arrived.get(timeout=LIMIT)
        redis.kill()
        self.assertIn(b"cannot be reached", worker.stderr.readline())
        release.set()
        worker.send_signal(signal.SIGTERM)
        self.assertIn(b"a second signal stops them", worker.stderr.readline())
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 23)
        self.assertIn("the results of 1 job (a) could not be recorded in the queue: other workers take it "
                      "over when the leases end", worker.stderr.read().decode())

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
        self.assertRegex(worker.stderr.read().decode(),
                         r"the results of 1 job \([0-9a-f]{8}-1\) could not be recorded in the queue")

    def test_of_many_results_that_cannot_be_filed_ten_are_named(self):
        redis = self.redis()
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, hold=release))
        self.enqueue(*({"url": server.url(f"/{i}"), "id": f"j{i}"} for i in range(12)))
        worker = self.start_worker("--grace", "300ms", *QUIET)
        for _ in range(12):
            server.arrived.get(timeout=LIMIT)
        redis.kill()
        release.set()
        worker.stderr.readline()
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 23)
        self.assertRegex(worker.stderr.read().decode(),
                         r"the results of 12 jobs \((j\d+, ){10}…\) could not be recorded in the queue: "
                         "other workers take them over when the leases end")

    def test_a_queue_that_was_deleted_ends_its_workers(self):
        redis = self.redis()
        worker = self.start_worker(*QUIET)
        wait_until(lambda: b"jobs" in redis.ask("KEYS", "*:m"))
        redis.ask("FLUSHALL")
        self.assertEqual(worker.wait(timeout=LIMIT), 23)
        self.assertIn("queue jobs was deleted", worker.stderr.read().decode())

    def test_a_second_entry_of_a_job_does_not_send_it_again(self):
        redis = self.redis()
        server = self.server(Response(200, b"x"))
        self.enqueue({"url": server.url(), "id": "a", "method": "POST", "body": "x"})
        for _ in range(3):
            redis.ask("XADD", "{hr:jobs}:s", "*", "i", "a")
        self.drain()
        self.assertEqual(len(server.seen), 1)
        self.assertEqual(self.states(), [("a", "done")])

    def test_keys_that_are_lost_or_changed_end_a_drain_with_an_error(self):
        for words in (("DEL", "{hr:jobs}:s"), ("DEL", "{hr:jobs}:j"),
                      ("HSET", "{hr:jobs}:m", "n:q", "many"), ("HSET", "{hr:jobs}:m", "n:q", "5"),
                      ("HSET", "{hr:jobs}:m", "n:q", "0"), ("HDEL", "{hr:jobs}:j", "a"),
                      ("SET", "{hr:jobs}:z", "text")):
            for during in (False, True):
                with self.subTest(words=words, during=during):
                    redis = self.redis("--appendonly", "no")
                    hold = threading.Event()
                    self.addCleanup(hold.set)
                    server = self.server(Response(200, b"x", hold=hold if during else None))
                    self.enqueue(*({"url": server.url(), "id": name} for name in "ab"))
                    if not during:
                        redis.ask(*words)
                    worker = self.start_worker("--drain", "--parallel", "1", *QUIET)
                    if during:
                        server.arrived.get(timeout=LIMIT)
                        redis.ask(*words)
                        hold.set()
                    self.assertEqual(worker.wait(timeout=LIMIT), 23)
                    self.assertRegex(worker.stderr.read().decode(),
                                     "queue jobs(: .*WRONGTYPE| is damaged: | was deleted)")
                    redis.kill()

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
        self.enqueue("http://127.0.0.1:1/", args=("--force",))
        said = self.refused(*self.words("--drain"))
        self.assertIn("has maxmemory-policy allkeys-lru: when its memory is full, it evicts jobs", said)
        self.assertIn("keeps its data in memory only: a restart loses the queue",
                      self.work("--force", "--drain", "--set", "max_attempts=1",
                                status=22).stderr.decode())
        self.queue.kill()
        self.assertIn("cannot use redis://127.0.0.1:", self.refused(*self.words("--drain")))


if __name__ == "__main__":
    main()
