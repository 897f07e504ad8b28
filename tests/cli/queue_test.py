"""httpretry batch --enqueue and httpretry work: a queue on a real Redis server."""

import json
import signal
import time

from program import LIMIT, QUICK, Response, main, wait_until
from queue_program import QUIET, QueueTest


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

    def test_a_file_of_somebody_elses_without_a_line_end_is_not_written_over(self):
        self.redis()
        (self.folder / "results").write_text("settings")
        self.enqueue({"url": "http://127.0.0.1:1/", "id": "a"})
        self.assertIn("results, at byte 0: not a line of ours. Name another file",
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

    def test_a_worker_without_drain_waits_for_jobs(self):
        self.redis()
        server = self.server(200)
        worker = self.start_worker(*QUIET)
        self.enqueue(server.url())
        server.arrived.get(timeout=LIMIT)
        wait_until(lambda: self.status().get("done") == 1)
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
