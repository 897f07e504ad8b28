"""httpretry batch --enqueue and httpretry work: a queue on a real Redis server."""

import json
import pathlib
import re
import signal
import socket
import subprocess
import time

from program import LIMIT, QUICK, Response, blocks_its_signals, main, wait_until
from queue_program import QUIET, QueueTest, SlowProxy


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
        self.assertIn("there is no queue jobs on redis://", self.refused(*self.words("--status")))
        self.enqueue({"url": "http://a/", "id": "x"})
        said = self.enqueue({"url": "http://c/"}, {"id": "x", "url": "http://b/"}, status=2)
        self.assertIn("in.jsonl:2:8: ", said)
        self.assertIn('the queue already has a different job with the id "x": each job', said)
        self.assertEqual(self.status()["queued"], 1)

    def test_a_check_adds_nothing(self):
        self.redis()
        for flag in ("--check", "--dry-run"):
            said = self.enqueue("http://a/", args=(flag,), status=2)
            self.assertIn("cannot be combined with --enqueue", said)
        self.assertIn("there is no queue jobs on redis://", self.refused(*self.words("--status")))

    def test_two_kinds_of_lines_need_two_files(self):
        self.redis()
        self.enqueue("http://127.0.0.1:1/")
        for one, other in (("--results", "--dead"), ("--results", "--unknown"), ("--dead", "--unknown")):
            said = self.work(one, "file", other, "./file", status=2).stderr.decode()
            self.assertIn(f"{one} and {other} name the same file", said)
        self.assertFalse((self.folder / "file").exists())

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
        self.assertRegex(letter["key"], "^[0-9a-f]{32}$")
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

    def test_a_file_of_somebody_elses_without_a_line_end_is_not_written_over(self):
        self.redis()
        (self.folder / "results").write_text("settings")
        self.enqueue({"url": "http://127.0.0.1:1/", "id": "a"})
        self.assertIn("results, at byte 0: not a line that httpretry wrote. Use another file",
                      self.work("--results", "results", status=23).stderr.decode())
        self.assertEqual((self.folder / "results").read_text(), "settings")

    def test_a_host_that_asks_for_a_long_wait_does_not_end_the_run(self):
        self.redis()
        paused = self.server(Response(503, b"", [("Retry-After", "86400")]))
        server = self.server(200)
        self.enqueue({"url": paused.url(), "id": "paused"},
                     *({"url": server.url(), "id": f"job {i}"} for i in range(300)))
        self.work("--drain", "--parallel", "1", *QUIET, status=75)
        status = self.status()
        self.assertEqual((status["done"], status["waiting"], status.get("queued", 0)), (300, 1, 0))

    def test_a_record_that_is_not_ours_stops_nobody(self):
        redis = self.redis()
        server = self.server(200)
        self.enqueue({"url": server.url(), "id": "empty"}, {"url": server.url(), "id": "odd"},
                     {"url": server.url(), "id": "good"})
        redis.ask("HSET", "{hr:jobs}:j", "empty", "q|0|0|1|||0|")
        redis.ask("HSET", "{hr:jobs}:j", "odd", "garbage")
        worker = self.start_worker(*QUIET)
        wait_until(lambda: self.status().get("done") == 1)
        wait_until(lambda: self.status().get("dead") == 1)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 128 + signal.SIGTERM)

    def test_bodies_go_where_they_are_asked_to_go(self):
        self.redis()
        server = self.server(Response(200, b"hello"))
        self.enqueue({"url": server.url(), "id": "a"})
        self.drain("--bodies", "out", *QUIET)
        self.assertEqual((self.folder / "out/a").read_bytes(), b"hello")

    def test_no_body_replaces_the_archive_of_a_worker(self):
        self.redis()
        server = self.server(200)
        (self.folder / "out").mkdir()
        self.enqueue({"url": server.url(), "id": "a", "output": "har"})
        self.drain("--bodies", "out", "--har", "out/har", *QUIET, status=22)
        self.assertIn("the response would replace har, which is the file of the HTTP archive",
                      self.results()[0]["error"]["message"])

    def test_a_worker_without_drain_waits_for_jobs(self):
        self.redis()
        server = self.server(200)
        worker = self.start_worker(*QUIET)
        self.enqueue(server.url())
        server.arrived.get(timeout=LIMIT)
        wait_until(lambda: self.status().get("done") == 1)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=LIMIT), 128 + signal.SIGTERM)

    def test_a_signal_before_the_run_does_not_end_it(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            process = self.start("work", "--queue", f"redis://127.0.0.1:{silent.getsockname()[1]}/0?job=jobs")
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGUSR1)
        error = process.communicate(timeout=LIMIT)[1]
        self.assertEqual(process.returncode, 23, error)

    def test_other_policies_are_a_warning(self):
        self.redis()
        server = self.server(200)
        self.enqueue(server.url())
        self.assertIn("was started with other policies", self.drain("--set", "max_attempts=2"))


    def test_one_job_is_one_job(self):
        self.redis()
        line = {"url": "http://127.0.0.1:1/", "id": "a"}
        self.assertIn("httpretry: 1 job added\n", self.enqueue(line))
        self.assertIn("httpretry: 0 jobs added, 1 was there already\n", self.enqueue(line))

    def test_a_queue_that_is_not_there_is_an_error_and_is_not_made(self):
        redis = self.redis()
        self.enqueue("http://127.0.0.1:1/")
        url = redis.url().replace("jobs", "jbos")
        for args in (("--drain",), ("--status",), ("--results", "x"), ("--dead", "x"), ("--unknown", "x"),
                     ("--retry-unknown",), ("--results", "-")):
            said = self.refused("work", "--queue", url, *args)
            self.assertIn(f"there is no queue jbos on redis://127.0.0.1:{redis.port}/0; queues there: jobs",
                          said)
            self.assertFalse((self.folder / "x").exists())
        self.assertNotIn(b"jbos", redis.ask("KEYS", "*"))

    def test_the_queue_can_come_from_the_environment_and_its_password_is_in_no_message(self):
        redis = self.redis()
        redis.ask("CONFIG", "SET", "requirepass", "hush")
        env = {"HTTPRETRY_QUEUE": f"redis://:hush@127.0.0.1:{redis.port}/0?job=jobs"}
        server = self.server(200)
        said = self.run_program("batch", "--enqueue", self.input(server.url()), env=env).stderr.decode()
        self.assertIn("1 job added", said)
        said += self.run_program("work", "--status", env=env).stdout.decode()
        said += self.run_program("work", "--drain", env=env).stderr.decode()
        self.assertIn("1 of 1 done", said)
        env["HTTPRETRY_QUEUE"] = env["HTTPRETRY_QUEUE"].replace("=jobs", "=jbos")
        said += self.run_program("work", "--drain", env=env, status=23).stderr.decode()
        env["HTTPRETRY_QUEUE"] = env["HTTPRETRY_QUEUE"].replace("hush", "hushhush")
        said += self.run_program("work", "--drain", env=env, status=23).stderr.decode()
        self.assertIn("cannot use redis://127.0.0.1:", said)
        env["HTTPRETRY_QUEUE"] = "redis://:hush@?job=a"
        said += self.run_program("work", "--drain", env=env, status=2).stderr.decode()
        self.assertIn("HTTPRETRY_QUEUE: Redis URL: position 15: it has no host", said)
        self.assertNotIn("hush", said)

    def test_a_worker_without_the_policy_of_a_job_gives_it_back_and_ends(self):
        self.redis()
        server = self.server(200)
        (self.folder / "policy.json").write_text('{"version": 1, "policies": {"careful": {"max_attempts": 2}}}')
        policy = ("--policy", "policy.json")
        self.enqueue({"url": server.url(), "id": "a", "policy": "careful"}, args=policy)
        for args in ((), ("--drain",)):
            said = self.work(*args, *QUIET, status=3).stderr.decode()
            self.assertIn('this worker cannot send the job "a": no policy and no preset is named '
                          '"careful". Start it with the policies that the job was added with', said)
            status = self.status()
            self.assertEqual((status["queued"], status["dead"], server.seen), (1, 0, []))
            self.assertNotIn("worker ", self.work("--status").stdout.decode())
        self.drain(*policy, *QUIET)
        self.assertEqual(self.states(), [("a", "done")])

    def test_a_worker_without_the_files_of_a_job_gives_it_back_and_ends(self):
        self.redis()
        server = self.server(200)
        (self.folder / "files" / "of").mkdir(parents=True)
        (self.folder / "files" / "of" / "a").write_text("hello")
        said = self.enqueue({"url": server.url(), "id": "a", "body_file": "of/a"})
        self.assertIn("1 job has a body_file: only workers with --files DIR send that", said)
        for args in ((), ("--drain",)):
            said = self.work(*args, *QUIET, status=3).stderr.decode()
            self.assertEqual(said.count('this worker cannot send the job "a": its body is in a file. '
                                        "Start it with --files DIR"), 1)
            status = self.status()
            self.assertEqual((status["queued"], status["dead"], server.seen), (1, 0, []))
        self.drain("--files", "files", *QUIET)
        self.assertEqual(self.states(), [("a", "done")])
        self.assertEqual([seen.body for seen in server.seen], [b"hello"])
        self.assertIn("cannot read the directory of --files, none: ",
                      self.work("--drain", "--files", "none", status=23).stderr.decode())

    def test_a_job_reads_no_file_elsewhere(self):
        redis = self.redis()
        server = self.server(200)
        outside = self.folder / "outside"
        outside.write_text("private")
        files = self.folder / "files"
        (files / "of").mkdir(parents=True)
        (files / "of" / "a").write_text("hello")
        (files / "link").symlink_to("of/a")
        (files / "folder").symlink_to(files / "of")
        (files / "out").symlink_to("../outside")
        (files / "up").symlink_to("..")
        (files / "gone").symlink_to("../none")
        for path in (str(outside), "../outside", "of/../../outside", "./of/a", "of//a"):
            said = self.enqueue({"url": server.url(), "id": "x", "body_file": path}, status=2)
            self.assertRegex(said, r"in.jsonl:1:\d+: must be a relative path without \. and \.\.: "
                                   "workers read it below their --files DIR")
        good, bad = ("link", "folder/a"), ("out", "up/outside", "gone")
        self.enqueue(*({"url": server.url(), "id": path, "method": "PUT", "body_file": path}
                       for path in good + bad))
        # As another program could put them there.
        for path in (str(outside), "of/../../outside"):
            line = json.dumps({"url": server.url(), "body_file": path})
            redis.ask("HSET", "{hr:jobs}:j", path, f"q|0|0|9|||0|{line}")
            redis.ask("HINCRBY", "{hr:jobs}:m", "n:q", "1")
            redis.ask("XADD", "{hr:jobs}:s", "*", "i", path)
            bad += (path,)
        self.drain("--files", "files", *QUIET, status=22)
        self.assertEqual(self.states(), sorted([(path, "done") for path in good] +
                                               [(path, "dead") for path in bad]),
                         self.results())
        self.assertEqual({seen.body for seen in server.seen}, {b"hello"})

    def test_a_worker_that_cannot_write_bodies_does_not_begin(self):
        self.redis()
        server = self.server(200)
        self.enqueue({"url": server.url(), "id": "a"})
        (self.folder / "file").write_text("x")
        for where in ("file", "file/below"):
            self.assertIn(f"cannot write bodies into the directory {where}: ",
                          self.work("--drain", "--bodies", where, status=23).stderr.decode())
        self.assertEqual((self.status()["queued"], server.seen), (1, []))


    def test_a_worker_has_the_connections_and_credentials_of_its_command_line(self):
        self.redis()
        server = self.server(200)
        url = f"http://h.invalid:{server.port}/"
        self.enqueue({"url": url, "id": "a"}, {"url": url, "id": "b", "headers": {"Authorization": "Bearer x"}})
        self.drain(*QUIET, "-u", "me:pw", "--connect-to", f"h.invalid:{server.port}:127.0.0.1:{server.port}")
        self.assertEqual(sorted(seen.headers["authorization"] for seen in server.seen),
                         ["Basic bWU6cHc=", "Bearer x"])
        self.assertEqual({seen.headers["accept"] for seen in server.seen}, {"*/*"})

    def test_status_as_json(self):
        self.redis()
        server = self.server(200)
        self.enqueue({"url": server.url(), "id": "a"}, {"url": server.url(), "id": "b",
                                                        "not_before": "2190-01-01T00:00:00Z"})
        self.drain(*QUIET, status=75)
        status = json.loads(self.work("--status", "--format", "json").stdout)
        self.assertGreater(status.pop("next_due_ms"), 1e9)
        self.assertEqual(status, {
            "server": self.queue.url().removesuffix("?job=jobs"), "queue": "jobs", "total": 2, "done": 1, "dead": 0,
            "waiting": 1, "unknown": 0, "queued": 0, "sending": 0, "ended_workers": 0, "late_results": 0,
            "workers": []})


class Waits(QueueTest):
    def test_a_long_wait_is_kept_by_the_server(self):
        self.redis()
        server = self.server(Response(503, b"", [("Retry-After", "3600")]))
        self.enqueue({"url": server.url("/a"), "id": "a"})
        said = self.drain(status=75)
        self.assertIn("0 of 1 done, 1 waiting", said)
        self.assertRegex(said, r"run the same command again in (59|60)\.?\d* min")
        self.assertEqual(self.status()["waiting"], 1)
        self.assertIn("the next waiting job may be sent in", self.work("--status").stdout.decode())

    def test_a_short_wait_and_a_date_are_waited_for(self):
        self.redis()
        server = self.server(Response(503, b"", [("Retry-After", "1")]), 200)
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        self.enqueue({"url": server.url(), "id": "a", "not_before": soon})
        self.assertEqual(self.status()["waiting"], 1)
        self.drain(*QUIET)
        self.assertEqual(len(server.seen), 2)
        self.assertEqual(self.states(), [("a", "done")])


class Enqueue(QueueTest):
    """Jobs that are added where something breaks off."""

    def setUp(self):
        super().setUp()
        self.redis()
        self.proxy = SlowProxy(self.queue.port)
        self.addCleanup(self.proxy.close)
        self.proxy.delay = 0.1

    def begin(self, *lines):
        """Some jobs have been added."""
        adding = self.start("batch", "--queue", self.queue.url(self.proxy.port), "--enqueue",
                            self.input(*lines))
        wait_until(lambda: self.queue.ask("HGET", "{hr:jobs}:m", "n:q").startswith(b"$3"))
        return adding

    def end(self, adding):
        said = adding.stderr.read().decode()
        return adding.wait(timeout=LIMIT), said

    def test_a_signal_ends_it_and_it_is_told_what_was_added(self):
        adding = self.begin(*(f"http://127.0.0.1:1/{i}" for i in range(2000)))
        adding.send_signal(signal.SIGINT)
        status, said = self.end(adding)
        self.assertEqual(status, 128 + signal.SIGINT)
        found = re.search("httpretry: it was stopped: (\\d+) jobs added, up to line (\\d+) of the input", said)
        self.assertIsNotNone(found, said)
        self.assertEqual(found[1], found[2])
        self.assertEqual(self.status()["queued"], int(found[1]))
        self.assertIn("run the same command again: a line that has an id is added only once", said)
        self.assertIn("lines without an id would be added a second time: remove the lines 1 to "
                      f"{found[1]} before", said)

    def test_where_the_server_goes_away_it_is_told_what_may_have_been_added(self):
        adding = self.begin(*({"url": "http://127.0.0.1:1/", "id": f"{i}"} for i in range(2000)))
        self.proxy.delay = 3600
        time.sleep(0.3)  # what was on its way arrives
        count = self.status()["queued"]
        adding.send_signal(signal.SIGTERM)
        status, said = self.end(adding)
        self.assertEqual(status, 128 + signal.SIGTERM)
        self.assertIn(f"{count} jobs added, up to line {count} of the input; those of the lines "
                      f"{count + 1} to {count + 200} may have been added, too", self.plain(said))
        self.assertIn("run the same command again", said)
        self.assertNotIn("without an id", said)
        # That is so.
        self.proxy.delay = 0
        said = self.plain(self.enqueue(*({"url": "http://127.0.0.1:1/", "id": f"{i}"} for i in range(2000))))
        self.assertIn(f"{2000 - count} jobs added, {count} were there already", said)

    @staticmethod
    def plain(said):
        return re.sub(r"(\d) (\d{3})", r"\1\2", said)

    def test_a_signal_before_that_ends_it_at_once(self):
        adding = self.start("batch", "--queue", self.queue.url(), "--enqueue", "-", stdin=subprocess.PIPE)
        self.addCleanup(adding.stdin.close)
        adding.stdin.write(b"http://127.0.0.1:1/\n")
        adding.stdin.flush()
        wait_until(lambda: blocks_its_signals(adding.pid))
        adding.send_signal(signal.SIGINT)
        status, said = self.end(adding)
        self.assertEqual((status, said), (128 + signal.SIGINT, "httpretry: stopped; nothing was added\n"))

    def test_a_full_server_ends_it_and_the_same_command_goes_on(self):
        lines = [{"url": "http://127.0.0.1:1/", "id": f"{i}"} for i in range(2000)]
        adding = self.begin(*lines)
        self.queue.ask("CONFIG", "SET", "maxmemory", "1")
        status, said = self.end(adding)
        self.assertEqual(status, 23)
        self.assertRegex(said, "OOM .*: \\d+ jobs added, up to line")
        self.assertNotIn("may have been", said)
        self.queue.ask("CONFIG", "SET", "maxmemory", "0")
        self.enqueue(*lines)
        self.assertEqual(self.status()["queued"], 2000)


class Usage(QueueTest):
    def test_wrong_options(self):
        url = "redis://127.0.0.1/0?job=a"
        for args, said in (
                (("work",), "--queue URL is missing, and $HTTPRETRY_QUEUE is not set"),
                (("work", "--queue", url, "x"), "work takes no operand: the requests are in the queue"),
                (("work", "--queue", url, "--lease", "1ms"), "option --lease must be 500ms or more"),
                (("work", "--queue", "http://x"), "option --queue: "),
                (("work", "--queue", "redis://127.0.0.1"), "the URL does not name a queue: add ?job=NAME, such as"
                                                           " ?job=orders"),
                (("batch", "--queue", url, "in"), "--queue needs --enqueue"),
                (("batch", "--enqueue", "in"), "--queue URL is missing")):
            self.assertIn(said, self.usage_error(*args))


if __name__ == "__main__":
    main()
