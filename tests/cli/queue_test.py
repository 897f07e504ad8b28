"""httpretry batch --enqueue and httpretry work: a queue on a real Redis server, and its workers."""

import contextlib
import json
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from program import LIMIT, ProgramTest, QUICK, Response, closed_port, main, wait_until

QUIET = ("--progress", "none")
SHORT = ("--lease", "500ms")


class Redis:
    """A server on a free port; `again` starts it once more after `kill`, with what it had on disk."""

    def __init__(self, folder, *options):
        holder, self.port = closed_port()
        holder.close()
        self.folder, self.options = folder, options
        self.again()

    def again(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", str(self.folder), *self.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.responds)

    def responds(self):
        try:
            return self.ask("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def ask(self, *words):
        """The beginning of the reply to a command."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT) as connection:
            text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            connection.sendall(text.encode())
            return connection.recv(65536)

    def url(self, port=None):
        return f"redis://127.0.0.1:{port or self.port}/0?job=jobs"

    def kill(self):
        self.process.kill()
        self.process.wait()


class SlowProxy:
    """Passes bytes on to a port, `delay` seconds later; what comes back, at once."""

    def __init__(self, port):
        self.target, self.delay = port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            late = queue.Queue()
            for target, args in ((self.read, (client, lambda piece, to=late: to.put(
                                      (time.monotonic() + self.delay, piece)))),
                                 (self.write_late, (late, server)),
                                 (self.read, (server, client.sendall))):
                threading.Thread(target=target, args=args, daemon=True).start()

    @staticmethod
    def read(source, use):
        with contextlib.suppress(OSError), source:
            while piece := source.recv(65536):
                use(piece)
        with contextlib.suppress(OSError):
            use(b"")

    @staticmethod
    def write_late(late, target):
        with contextlib.suppress(OSError), target:
            while True:
                due, piece = late.get()
                time.sleep(max(due - time.monotonic(), 0))
                if not piece:
                    return
                target.sendall(piece)

    def close(self):
        self.listener.close()


@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not installed")
class QueueTest(ProgramTest):
    def redis(self, *options):
        self.queue = Redis(self.folder, *(options or ("--appendonly", "yes")))
        self.addCleanup(self.queue.kill)
        return self.queue

    def input(self, *lines):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        (self.folder / "in.jsonl").write_text(text)
        return "in.jsonl"

    def enqueue(self, *lines, status=0, args=()):
        return self.run_program("batch", "--queue", self.queue.url(), "--enqueue", *args,
                                self.input(*lines), status=status).stderr.decode()

    def words(self, *args, port=None):
        return ("work", "--queue", self.queue.url(port), *args)

    def work(self, *args, status=0, **more):
        return self.run_program(*self.words(*args), status=status, **more)

    def drain(self, *args, status=0):
        return self.work("--drain", *args, status=status).stderr.decode()

    def start_worker(self, *args, port=None):
        return self.start(*self.words(*args, port=port))

    def results(self, name="results"):
        self.work("--results", name, *QUIET)
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def states(self):
        return sorted((line["id"], line["state"]) for line in self.results())

    def status(self):
        text = self.work("--status").stdout.decode()
        found = re.findall(r"^ +([\d ]+)  ([a-z ]+)$", text, re.MULTILINE)
        return {name: int(count.replace(" ", "")) for count, name in found}

    def refused(self, *args):
        return self.run_program(*args, status=23).stderr.decode()


class Queues(QueueTest):
    def test_jobs_are_added_once_sent_once_and_have_one_result(self):
        self.redis()
        server = self.server(503, 200)
        lines = [{"url": server.url(f"/{i}"), "id": f"j{i}"} for i in range(20)]
        self.assertIn("20 jobs added", self.enqueue(*lines))
        self.assertIn("0 jobs added, 20 were there already", self.enqueue(*lines))
        self.assertEqual(self.status()["queued"], 20)
        self.assertIn("20 of 20 done", self.drain(*QUICK))
        self.assertEqual(len(server.seen), 21)
        self.assertEqual(self.states(), sorted((f"j{i}", "done") for i in range(20)))
        # There is nothing left; a file of results is not written twice.
        self.drain(*QUIET)
        self.assertEqual(len(server.seen), 21)
        before = (self.folder / "results").read_bytes()
        self.assertIn("0 results written to results",
                      self.work("--results", "results").stderr.decode())
        self.assertEqual((self.folder / "results").read_bytes(), before)
        # It goes on behind what is there, and a half line goes.
        (self.folder / "results").write_bytes(before[:-5])
        self.assertEqual(len(self.results()), 20)

    def test_lines_without_an_id_are_new_jobs_each_time(self):
        self.redis()
        server = self.server(200)
        for count in (1, 2):
            self.enqueue(server.url())
            self.assertEqual(self.status()["queued"], count)
        self.drain(*QUIET)
        self.assertEqual(len(server.seen), 2)
        self.assertEqual([line["line"] for line in self.results()], [1, 1])

    def test_mistakes_are_all_told_before_anything_is_added(self):
        self.redis()
        said = self.enqueue({"url": "http://a/", "id": "x"}, {"url": "ftp://a/"}, "{", status=2)
        self.assertEqual(len(said.splitlines()), 2, said)
        said = self.enqueue({"url": "http://a/", "id": "x"}, {"url": "http://b/", "id": "x"}, status=2)
        self.assertIn("in.jsonl:2:", said)
        self.assertIn("there is no such queue", self.refused(*self.words("--status")))
        self.enqueue({"url": "http://a/", "id": "x"})
        said = self.enqueue({"url": "http://c/"}, {"id": "x", "url": "http://b/"}, status=2)
        self.assertIn("in.jsonl:2:8: ", said)
        self.assertIn('the queue has a job with the id "x" already', said)
        self.assertEqual(self.status()["queued"], 1)

    def test_results_have_what_those_of_batch_have_and_dead_letters_are_an_input(self):
        self.redis()
        server = self.server(404)
        self.enqueue({"url": server.url("/a"), "id": "a", "key": True, "json": {"n": 1}, "tag": [7]})
        self.assertIn("0 of 1 done, 1 dead", self.drain("--response-headers", "-H", "X: y", status=22))
        line = self.results()[0]
        self.assertEqual((line["id"], line["line"], line["tag"], line["status"], line["state"]),
                         ("a", 1, [7], 404, "dead"))
        self.assertIn("headers", line)
        self.assertEqual(server.seen[0].headers["x"], "y")
        self.work("--dead", "dead")
        letter = json.loads((self.folder / "dead").read_text())
        self.assertEqual((letter["id"], letter["key"], letter["last"]["status"]),
                         ("a", server.seen[0].headers["idempotency-key"], 404))
        self.work("--dead", "dead", *QUIET)
        self.assertEqual(len((self.folder / "dead").read_text().splitlines()), 1)
        server.responses = [Response(200)]
        self.run_program("batch", *QUIET, "dead")
        self.assertEqual(server.seen[1].headers["idempotency-key"], letter["key"])

    def test_a_file_with_other_lines_is_refused_with_the_place(self):
        self.redis()
        self.enqueue("http://127.0.0.1:1/")
        (self.folder / "results").write_text('{"id":"a"}\n')
        self.assertIn("results, at byte 0: not a line of this queue",
                      self.refused(*self.words("--results", "results")))

    def test_bodies_go_where_they_are_asked_to_go(self):
        self.redis()
        server = self.server(Response(200, b"hello"))
        self.enqueue({"url": server.url(), "id": "a"})
        self.drain("--bodies", "out", *QUIET)
        self.assertEqual((self.folder / "out/a").read_bytes(), b"hello")

    def test_a_worker_without_drain_waits_for_jobs(self):
        self.redis()
        server = self.server(200)
        worker = self.start_worker(*QUIET)
        self.enqueue(server.url())
        server.arrived.get(timeout=LIMIT)
        wait_until(lambda: self.status()["done"] == 1)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 128 + signal.SIGTERM)

    def test_other_policies_are_a_warning(self):
        self.redis()
        server = self.server(200)
        self.enqueue(server.url())
        self.assertIn("was begun with other policies", self.drain("--set", "max_attempts=2"))


class Waits(QueueTest):
    def test_a_long_wait_is_kept_by_the_server(self):
        self.redis()
        server = self.server(Response(503, b"", [("Retry-After", "3600")]))
        self.enqueue({"url": server.url("/a"), "id": "a"})
        said = self.drain(status=75)
        self.assertIn("0 of 1 done, 1 waiting", said)
        self.assertRegex(said, r"start the same command again in (59|60)\.?\d* min")
        self.assertEqual(self.status()["waiting"], 1)
        self.assertIn("the next that waits may be sent in", self.work("--status").stdout.decode())

    def test_a_short_wait_and_a_date_are_waited_for(self):
        self.redis()
        server = self.server(Response(503, b"", [("Retry-After", "1")]), 200)
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        self.enqueue({"url": server.url(), "id": "a", "not_before": soon})
        self.assertEqual(self.status()["waiting"], 1)
        self.drain(*QUIET)
        self.assertEqual(len(server.seen), 2)
        self.assertEqual(self.states(), [("a", "done")])


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


class Usage(QueueTest):
    def test_wrong_options(self):
        url = "redis://127.0.0.1/0?job=a"
        for args, said in (
                (("work",), "--queue URL is missing: it names the queue"),
                (("work", "--queue", url, "x"), "work takes no operand: the requests are in the queue"),
                (("work", "--queue", url, "--lease", "1ms"), "option --lease must be 500ms or more"),
                (("work", "--queue", "http://x"), "option --queue: "),
                (("work", "--queue", "redis://127.0.0.1"), "the URL does not name a queue"),
                (("batch", "--queue", url, "in"), "--queue needs --enqueue"),
                (("batch", "--enqueue", "in"), "--queue URL is missing")):
            self.assertIn(said, self.usage_error(*args))


if __name__ == "__main__":
    main()
