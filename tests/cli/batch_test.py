"""httpretry batch: the input, the runs, what they leave, and the questions to a journal."""

import json
import os
import pathlib
import pty
import re
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

from program import LIMIT, NOT_HERE, PROGRAM, ProgramTest, QUICK, Response, clean_environment, closed_port, main, wait_until

QUIET = ("--progress", "none")
BUSY = Response(503, b"", [("Retry-After", "3600")])


class BatchTest(ProgramTest):
    def input(self, *lines, name="in.jsonl"):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        (self.folder / name).write_text(text)
        return name

    def batch(self, *args, status=0, **more):
        return self.run_program("batch", *args, status=status, **more)

    def lines(self, name="in.jsonl.results.jsonl"):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def states(self, name="in.jsonl.results.jsonl"):
        return sorted((line["id"], line["state"]) for line in self.lines(name))

    def refused(self, *args, status=2):
        ran = self.batch(*args, status=status)
        self.assertEqual(ran.stdout, b"")
        return ran.stderr.decode()


class Runs(BatchTest):
    def test_each_job_has_one_line_and_a_second_run_sends_nothing(self):
        server = self.server(503, 200)
        file = self.input(*[server.url(f"/{i}") for i in range(20)])
        self.batch(*QUICK, file)
        sent = len(server.seen)
        self.assertEqual(sent, 21)
        self.assertEqual(self.states(), sorted((str(i + 1), "done") for i in range(20)))
        before = (self.folder / "in.jsonl.results.jsonl").read_bytes()
        self.batch(file)
        self.assertEqual(len(server.seen), sent)
        self.assertEqual((self.folder / "in.jsonl.results.jsonl").read_bytes(), before)

    def test_a_results_line_is_the_report_with_id_tag_line_and_body(self):
        server = self.server(Response(200, b'{"\xc3\xa4":1}', [("X", "y")]), Response(200, b"\xff\0"))
        file = self.input({"url": server.url("/a"), "id": "x", "tag": {"k": [1]}},
                          {"url": server.url("/b"), "json": {"n": 1.50}, "headers": {"A": "b"}})
        self.batch("--response-headers", "--parallel", "1", "-H", "C: d", file)
        first, second = self.lines()
        self.assertEqual((first["id"], first["line"], first["tag"], first["body"], first["status"]),
                         ("x", 1, {"k": [1]}, '{"ä":1}', 200))
        self.assertEqual(len(first["attempts"]), 1)
        self.assertIn(["X", "y"], first["headers"])
        self.assertEqual((second["id"], second["body_base64"], second["method"]), ("2", "/wA=", "POST"))
        posted = server.seen[1]
        self.assertEqual((posted.body, posted.headers["content-type"], posted.headers["a"],
                          posted.headers["c"]), (b'{"n":1.5}', "application/json", "b", "d"))

    def test_bodies_go_where_they_are_asked_to_go(self):
        server = self.server(Response(200, b"hello"))
        file = self.input({"url": server.url(), "id": "a/b"}, {"url": server.url(), "output": "d/e.txt"})
        self.batch("--bodies", "out", file)
        by_id = {line["id"]: line for line in self.lines()}
        self.assertEqual(by_id["a/b"]["body_file"], "out/a%2Fb")
        self.assertEqual((self.folder / "out/a%2Fb").read_bytes(), b"hello")
        self.assertEqual((self.folder / "out/d/e.txt").read_bytes(), b"hello")
        self.batch("--bodies", "none", "--fresh", self.input(server.url()))
        self.assertNotIn("body", self.lines()[0])

    def test_a_directory_that_cannot_have_the_bodies_ends_the_run_before_it_sends(self):
        server = self.server(200)
        file = self.input(server.url())
        (self.folder / "file").write_text("x")
        for where in ("file", "file/below", "/proc/nope"):
            self.assertIn(f"cannot write bodies into the directory {where}: ",
                          self.refused("--bodies", where, file, status=23))
        self.assertEqual(server.seen, [])
        self.batch("--bodies", "out", file)
        self.assertEqual(len(server.seen), 1)

    def test_only_their_owner_can_read_the_files_of_a_run(self):
        self.addCleanup(os.umask, os.umask(0))
        server = self.server(Response(200, b"hello"), Response(404))
        file = self.input({"url": server.url(), "id": "a"}, {"url": server.url(), "id": "b"})
        self.batch("--bodies", "out", "--dead", "dead", "--har", "har", "--parallel", "1", file, status=22)
        for name in ("out/a", "dead", "har", "in.jsonl.results.jsonl", "in.jsonl.httpretry.db"):
            with self.subTest(name):
                self.assertEqual(oct((self.folder / name).stat().st_mode & 0o777), oct(0o600))

    def test_no_link_leads_a_body_out_of_its_directory(self):
        server = self.server(Response(200, b"hello"))
        out, outside = self.folder / "out", self.folder / "outside"
        (out / "d").mkdir(parents=True)
        outside.mkdir()
        (outside / "old").write_text("kept")
        (out / "inside").symlink_to("d")
        (out / "up").symlink_to(outside)
        (out / "file").symlink_to("../outside/old")
        (out / "gone").symlink_to("../outside/new")
        good, bad = ("inside/a", "d/b"), ("up/x", "up/y/z", "file", "gone")
        self.batch("--bodies", "out", self.input(
            *({"url": server.url(), "id": path, "output": path} for path in good + bad)), status=22)
        self.assertEqual(self.states(), sorted([(path, "done") for path in good] +
                                               [(path, "dead") for path in bad]))
        self.assertEqual(sorted(path.name for path in (out / "d").iterdir()), ["a", "b"])
        self.assertEqual([path.name for path in outside.iterdir()], ["old"])
        self.assertEqual((outside / "old").read_text(), "kept")
        self.assertEqual(len(server.seen), 2)

    def test_no_body_replaces_a_file_of_the_run(self):
        server = self.server(Response(200, b"hello"))
        (self.folder / "link").symlink_to(".")
        files = {"input": "in.jsonl", "journal": "in.jsonl.httpretry.db", "results": "in.jsonl.results.jsonl",
                 "dead letters": "d/dead", "HTTP archive": "har"}
        (self.folder / "d").mkdir()
        for flags in ((), ("--bodies", "."), ("--bodies", self.folder), ("--bodies", "link")):
            file = self.input(*({"url": server.url(), "output": name} for name in files.values()))
            said = self.refused(*flags, "--dead", "d/dead", "--har", "har", file)
            self.assertEqual([line.partition(" the response ")[2] for line in said.splitlines()],
                             [f'would go to "{name}", which is the file of the {purpose}'
                              for purpose, name in files.items()])
        # Files that are named by the numbers of lines.
        self.assertIn('would go to "1", which is the file of the input',
                      self.refused("--bodies", ".", self.input(server.url(), name="1")))
        self.assertEqual(server.seen, [])
        self.batch("--bodies", "out", self.input({"url": server.url(), "output": "in.jsonl"}))
        self.assertEqual((self.folder / "out/in.jsonl").read_bytes(), b"hello")

    def test_no_body_replaces_a_file_beside_the_target_of_a_link_to_the_journal(self):
        server = self.server(200)
        (self.folder / "d").mkdir()
        (self.folder / "link").symlink_to("d/j")
        self.batch("--journal", "d/j", self.input(server.url()))
        names = [place + suffix for place in ("d/j", "link") for suffix in ("-wal", "-shm", "-lock")]
        file = self.input(server.url(), *({"url": server.url(), "output": name} for name in names))
        said = self.refused("--journal", "link", file)
        self.assertEqual([line.partition(" the response ")[2] for line in said.splitlines()],
                         [f'would go to "{name}", which is the file of the journal' for name in names])

    def test_no_body_replaces_a_file_that_only_a_later_run_has(self):
        server = self.server(Response(429, headers=[("Retry-After", "3600")]), Response(200, b"hello"))
        file = self.input({"url": server.url(), "output": "har"}, {"url": server.url(), "output": "b"})
        self.batch("--parallel", "1", "--set", "pause=none", "--max-idle", "1ms", file, status=75)
        with sqlite3.connect(self.folder / (file + ".httpretry.db")) as journal:
            journal.execute("UPDATE state SET until = 0 WHERE until IS NOT NULL")
        journal.close()
        self.batch("--har", "har", file, status=22)
        self.assertEqual(self.states(), [("1", "dead"), ("2", "done")])
        self.assertIn("the response would replace har, which is the file of the HTTP archive",
                      self.lines()[-1]["error"]["message"])
        self.assertEqual(len(server.seen), 2)

    def test_an_archive_is_written_even_if_the_metrics_cannot_be(self):
        file = self.input(self.server(200).url())
        said = self.refused("--metrics", "/dev/full", "--har", "har", file, status=23)
        self.assertIn("cannot write to /dev/full: No space left on device", said)
        self.assertEqual(len(json.loads((self.folder / "har").read_text())["log"]["entries"]), 1)

    def test_a_directory_is_no_journal(self):
        self.assertEqual(self.refused("--status", ".", status=23), "httpretry: . is a directory\n")

    def test_a_body_that_is_too_long_is_left_out_of_the_results(self):
        server = self.server(Response(200, b"x" * 65537))
        self.batch(self.input(server.url()))
        self.assertEqual(self.lines()[0]["body_omitted"], True)

    def test_dead_letters_are_the_input_of_the_next_run(self):
        server = self.server(404)
        file = self.input({"url": server.url("/a"), "id": "a", "key": True, "body": "x"}, server.url("/b"))
        self.batch("--dead", "dead.jsonl", file, status=22)
        letters = self.lines("dead.jsonl")
        self.assertEqual([letter["last"]["status"] for letter in letters], [404, 404])
        key = server.seen[[s.target for s in server.seen].index("/a")].headers["idempotency-key"]
        self.assertEqual({letter["id"]: letter.get("key") for letter in letters}, {"a": key, "2": None})
        server.responses = [Response(200)]
        self.batch("dead.jsonl")
        self.assertEqual(self.states("dead.jsonl.results.jsonl"), [("2", "done"), ("a", "done")])
        self.assertEqual(server.seen[-1].headers.get("idempotency-key", key), key)

    def test_a_finished_run_exits_as_before(self):
        server = self.server(404)
        file = self.input(server.url())
        for _ in range(2):
            self.batch(file, status=22)
        self.assertEqual(len(server.seen), 1)

    def test_a_request_that_must_not_be_repeated_is_dead_after_one_send(self):
        server = self.server(Response(200, reset=True))
        self.batch(self.input({"url": server.url(), "body": "x"}), status=22)
        self.assertEqual(self.lines()[0]["stop_reason"], "unsafe_to_repeat")
        self.assertEqual(len(server.seen), 1)

    def test_keys_are_made_at_the_import_and_survive_restarts(self):
        server = self.server(Response(503, reset=True), Response(503))
        file = self.input({"url": server.url(), "body": "x", "key": True},
                          {"url": server.url(), "body": "y"})
        self.batch("--set", "max_attempts=1", "--dead", "dead", "--set", "idempotency_key=X-Key",
                   *QUICK, file, status=22)
        keys = {bytes(seen.body): seen.headers["x-key"] for seen in server.seen}
        self.assertEqual(len(set(keys.values())), 2)
        server.responses = [Response(200)]
        self.batch("--set", "idempotency_key=X-Key", "dead")
        for seen in server.seen:
            self.assertEqual(seen.headers["x-key"], keys[bytes(seen.body)])

    def test_standard_input_is_kept_in_the_journal(self):
        server = self.server(200)
        self.batch("--journal", "j.db", "-", stdin=server.url().encode() + b"\n")
        self.batch("--journal", "j.db", "-", stdin=b"")
        self.assertEqual(len(server.seen), 1)
        self.assertEqual(self.states("j.db.results.jsonl"), [("1", "done")])
        self.assertIn("standard input needs --journal FILE", self.refused("-"))
        lines = f"{server.url()}\n{server.url('/2')}\n".encode()
        self.batch("--journal", "j.db", "-", stdin=lines)
        self.assertEqual([seen.target for seen in server.seen], ["/", "/2"])
        ran = self.batch("--journal", "j.db", "-", stdin=b"http://h.invalid/\n" + lines, status=2)
        self.assertIn(b"standard input:1:1: it does not begin with the lines of the journal (2).", ran.stderr)
        self.assertEqual(len(server.seen), 2)

    def test_new_lines_are_new_jobs(self):
        server = self.server(200)
        file = self.input(server.url("/1"))
        self.batch(file)
        with (self.folder / file).open("a") as out:
            out.write(server.url("/2"))
        self.batch(file)
        self.assertEqual([seen.target for seen in server.seen], ["/1", "/2"])

    def test_fresh_begins_anew_and_keeps_what_was_there(self):
        server = self.server(200)
        file = self.input(server.url("/1"))
        self.batch(file)
        self.batch("--fresh", self.input(server.url("/2")))
        self.assertEqual([seen.target for seen in server.seen], ["/1", "/2"])
        self.assertEqual(self.lines("in.jsonl.results.jsonl.old")[0]["url"], server.url("/1"))
        said = self.batch("--status", "in.jsonl.httpretry.db.old").stdout.decode()
        self.assertRegex(said, r"(?m)^ +1  done$")

    def test_without_results_the_journal_knows(self):
        server = self.server(200)
        file = self.input(server.url())
        self.batch("--no-results", file)
        self.assertFalse((self.folder / "in.jsonl.results.jsonl").exists())
        said = self.refused("--results", "other", file, status=23)
        self.assertIn("was run without results", said)
        self.batch("--no-results", file)

    def test_a_journal_goes_on_with_its_own_files(self):
        server = self.server(200)
        file = self.input(server.url())
        self.batch("--dead", "dead", file)
        said = self.refused("--results", "other", "--dead", "dead", file, status=23)
        self.assertIn("in.jsonl.results.jsonl: use this file again, or start over with --fresh", said)
        self.assertIn("was read as auto", self.refused("--input-format", "urls", "--dead", "dead", file, status=23))


class Waits(BatchTest):
    def test_a_long_wait_is_kept_in_the_journal_and_the_run_says_when_to_come_back(self):
        server = self.server(BUSY)
        file = self.input(*[server.url(f"/{i}") for i in range(50)])
        said = self.batch("--parallel", "1", file, status=75).stderr.decode()
        self.assertRegex(said, r"run the same command again at 20\d\d-\d\d-\d\dT\S+Z or later")
        self.assertEqual(len(server.seen), 1)  # the host asked for a wait
        self.batch("--parallel", "1", "--max-idle", "2s", file, status=75)
        self.assertEqual(len(server.seen), 1)  # and is left alone by the next run, too
        status = self.batch("--status", file + ".httpretry.db").stdout.decode()
        self.assertRegex(status, r"(?m)^ +1  waiting$")
        self.assertRegex(status, r"(?m)^ +49  queued$")
        self.assertIn("the next waiting job may be sent at 20", status)
        waiting = self.batch("--export", "waiting", file + ".httpretry.db").stdout.decode()
        self.assertEqual(json.loads(waiting)["url"], server.url("/0"))
        told = self.batch("--explain", file + ".httpretry.db", "1").stdout.decode()
        self.assertRegex(told, r"state +waiting")
        self.assertIn("it is sent at 20", told)

    def test_other_hosts_go_on_while_one_waits(self):
        busy, good = self.server(BUSY), self.server(200)
        lines = [s.url(f"/{i}") for i in range(30) for s in (busy, good)]
        # A send that the pause held back waits for a minute.
        self.batch("--parallel", "2", "--max-idle", "20s", self.input(*lines), status=75)
        self.assertEqual(len(good.seen), 30)
        self.assertLessEqual(len(busy.seen), 2)

    def test_not_before_is_a_date(self):
        server = self.server(200)
        file = self.input({"url": server.url("/now"), "not_before": "2020-01-01T00:00:00Z"},
                          {"url": server.url("/later"), "not_before": "2190-01-01T00:00:00Z"})
        self.batch(file, status=75)
        self.assertEqual([seen.target for seen in server.seen], ["/now"])

    def test_a_deadline_that_has_passed_ends_a_job_without_a_send(self):
        server = self.server(200)
        self.batch(self.input({"url": server.url(), "deadline": "2020-01-01T00:00:00Z"}), status=22)
        self.assertEqual(server.seen, [])
        told = self.batch("--explain", "in.jsonl.httpretry.db", "1").stdout.decode()
        self.assertIn("its deadline, 2020-01-01T00:00:00.000Z, has passed", told)

    def test_a_short_wait_is_waited_for(self):
        busy = Response(503, b"", [("Retry-After", "1")])
        server = self.server(busy, 200)
        file = self.input(server.url())
        self.batch("--set", "server_delay.max=10ms", "--durability", "process", file)
        self.assertEqual(len(server.seen), 2)

    def test_what_a_breaker_holds_back_waits_and_is_not_dead(self):
        server, good = self.server(500), self.server(200)
        file = self.input(*[s.url(f"/{i}") for i in range(30) for s in (server, good)])
        policy = {"version": 1, "default": {"max_attempts": 1, "budget": "none", "breaker": {
            "kind": "consecutive", "failures": 3, "open_for": {"initial": "10m", "max_interval": "10m", "jitter": "none"}}}}
        (self.folder / "policy.json").write_text(json.dumps(policy))
        self.batch("--policy", "policy.json", "--parallel", "1", file, status=22)
        self.assertEqual((len(server.seen), len(good.seen)), (3, 30))
        said = self.batch("--status", file + ".httpretry.db").stdout.decode()
        self.assertRegex(said, r"(?m)^ +3  dead$")
        self.assertRegex(said, r"(?m)^ +1  waiting$")
        self.assertRegex(said, r"(?m)^ +26  queued$")

    def test_high_priority_goes_first(self):
        server = self.server(200)
        lines = [{"url": server.url(f"/{i}"), "priority": "low"} for i in range(5)]
        self.batch("--parallel", "1", self.input(*lines, {"url": server.url("/high"), "priority": "high"}))
        self.assertEqual(server.seen[0].target, "/high")

    def test_the_cost_of_a_line_is_taken_from_a_rate(self):
        server = self.server(200)
        policy = self.folder / "policy.json"
        policy.write_text('{"version": 1, "default": {"rate": {"limit": "100/d", "counts": "cost"}}}')
        lines = [{"url": server.url("/a"), "cost": 100}, {"url": server.url("/b"), "cost": 0},
                 {"url": server.url("/c"), "cost": 101}]
        self.batch("--policy", policy, "--dead", "dead.jsonl", self.input(*lines), status=22)
        self.assertEqual(sorted(seen.target for seen in server.seen), ["/a", "/b"])
        dead = (self.folder / "dead.jsonl").read_text()
        self.assertIn("the request costs 101", dead)
        self.assertIn('"cost":101', dead.replace(" ", ""))

    def test_max_failures_ends_a_run(self):
        server = self.server(404)
        file = self.input(*[server.url(f"/{i}") for i in range(100)])
        said = self.batch("--parallel", "1", "--max-failures", "3", file, status=22).stderr.decode()
        self.assertIn("ended because 3 failed", said)
        self.assertEqual(len(server.seen), 3)


class Telemetry(BatchTest):
    def test_metrics_traces_log_lines_and_archive_are_those_of_the_run(self):
        server = self.server(503, 200)
        collector = self.server(Response(200, b"{}", [("Content-Type", "application/json")]))
        file = self.input(*[server.url(f"/{i}") for i in range(5)])
        ran = self.batch(*QUICK, *QUIET, "--metrics", "m.prom", "--har", "run.har",
                         f"--otlp={collector.url()}", "--log-json", file)
        lines = [json.loads(line) for line in ran.stderr.decode().splitlines()]
        self.assertTrue(any("503" in json.dumps(line) for line in lines))
        metrics = (self.folder / "m.prom").read_text()
        self.assertRegex(metrics, r'(?m)^http_client_request_duration_seconds_count\{[^}]*"503"[^}]*\} 1$')
        self.assertGreaterEqual(len(collector.seen), 1)
        self.assertEqual(len(server.seen), 6)
        entries = json.loads((self.folder / "run.har").read_text())["log"]["entries"]
        self.assertEqual(sorted(one["response"]["status"] for one in entries), [200] * 5 + [503])
        self.assertTrue(all("traceparent" in seen.headers for seen in server.seen))


class Input(BatchTest):
    def test_every_mistake_is_named_and_nothing_is_sent(self):
        server = self.server(200)
        file = self.input(server.url(), {"url": server.url(), "tga": 1}, "nonsense",
                          {"url": server.url(), "policy": "nope"}, {"url": server.url(), "body_file": "none"})
        for flags in ((), ("--check",), ("--dry-run",)):
            said = self.refused(*flags, file).splitlines()
            self.assertEqual(len(said), 4, said)
            self.assertRegex(said[0], r'^in\.jsonl:2:\d+: /tga: unknown key; did you mean "tag"\?$')
            self.assertTrue(said[1].startswith("in.jsonl:3:1: "), said[1])
            self.assertRegex(said[2], r'^in\.jsonl:4:\d+: no policy and no preset is named "nope"$')
            self.assertRegex(said[3], r"^in\.jsonl:5:\d+: /body_file: cannot read body file none: No such file or dir")
        self.assertEqual(server.seen, [])
        self.assertEqual(os.listdir(self.folder), [file])

    def test_a_changed_line_is_named_and_nothing_is_sent(self):
        server = self.server(200)
        lines = [server.url(f"/{i}") for i in range(20)]
        self.batch(self.input(*lines))
        sent = len(server.seen)
        lines[16] = server.url("/other")
        self.assertIn("in.jsonl:17:1: this line has changed since it was read", self.refused(self.input(*lines)))
        self.assertEqual(len(server.seen), sent)

    def test_check_and_dry_run_send_and_keep_nothing(self):
        server = self.server(200)
        file = self.input(server.url(), {"url": "https://b.example/", "body": "x"})
        self.assertEqual(self.batch("--check", file).stdout, b"")
        said = self.batch("--dry-run", "--rate", "1/m", file).stdout.decode()
        self.assertRegex(said, r"(?m)^ +2  requests$")
        self.assertRegex(said, r"(?m)^ +1  host https://b\.example$")
        self.assertRegex(said, r"(?m)^ +1  must not be sent twice, and have no key$")
        self.assertIn("at least 2.00 min, because of --rate", said)
        self.assertIn("about 100 ms with 64 at a time, if each takes 100 ms", said)
        self.assertEqual(server.seen, [])
        self.assertEqual(os.listdir(self.folder), [file])
        long_list = self.input(*[server.url()] * 400)
        said = self.batch("--dry-run", "--rate", "1/8760h", long_list).stdout.decode()
        self.assertRegex(said, r"(?m)^at least \d+ min, because of --rate$")

    def test_lines_may_have_only_one_form(self):
        file = self.input("http://a.example/", '{"url":"http://a.example/"}')
        self.assertIn("in.jsonl:1:1: ", self.refused("--check", "--input-format", "jsonl", file))
        self.assertIn("in.jsonl:2:1: ", self.refused("--check", "--input-format", "urls", file))
        self.batch("--check", "--input-format", "auto", file)

    def test_an_input_that_cannot_be_read_is_an_error(self):
        self.assertIn("cannot read nothing: No such file or directory", self.refused("nothing", status=23))


class Questions(BatchTest):
    def test_status_explain_and_export(self):
        good, bad = self.server(200), self.server(404)
        file = self.input(good.url("/1"), {"id": "x", "url": bad.url("/2")})
        self.batch(file, status=22)
        journal = file + ".httpretry.db"
        status = self.batch("--status", journal).stdout.decode()
        self.assertRegex(status, r"(?m)^runs     1, the last began at 20")
        self.assertRegex(status, r"(?m)^ +1  done$")
        self.assertRegex(status, r"(?m)^ +1  dead$")
        told = self.batch("--explain", journal, "x").stdout.decode()
        self.assertRegex(told, r"(?m)^job +x, line 2$")
        self.assertRegex(told, r"(?m)^state +dead, status 404 \(not_retryable\)$")
        self.assertRegex(told, r"(?m)^next +nothing, because it failed for good; --export dead prints it for another run$")
        self.assertRegex(told, r'(?m)^result +\{"id":"x"')
        self.assertIn('has no job with the id "y"', self.refused("--explain", journal, "y", status=1))
        self.assertEqual(json.loads(self.batch("--export", "dead", journal).stdout), {"id": "x", "url": bad.url("/2")})
        self.assertEqual(self.batch("--export", "unknown", journal).stdout, b"")
        self.assertEqual(self.batch("--export", "queued", journal).stdout, b"")

    def test_a_file_that_is_no_journal_is_an_error(self):
        self.assertIn("no: there is no such journal", self.refused("--status", "no", status=23))
        (self.folder / "text").write_text("some text that is long enough to be no database at all, really")
        self.assertIn("the file is damaged, or is not a journal", self.refused("--status", "text", status=23))

    def test_wrong_options_are_errors(self):
        self.assertIn("expected one operand, the input", self.refused())
        self.assertIn("expected one operand, the journal", self.refused("--status"))
        self.assertIn("--explain needs two operands, JOURNAL and ID", self.refused("--explain", "j"))
        self.assertIn("option --export", self.refused("--export", "sent", "j"))
        self.assertIn('option --rate: "fast" is not a rate, such as 100/s', self.refused("--rate", "fast", "x"))
        self.assertIn("option --rate: the time must be greater than zero", self.refused("--rate", "1/0s", "x"))
        self.assertIn("option --parallel must be 1 or more", self.refused("--parallel", "0", "x"))
        self.assertIn("option --bodies needs a value that is not empty", self.refused("--bodies=", "x"))
        self.assertIn('option -H: expected "Name: value"', self.refused("-H", "nonsense", "x"))
        self.assertIn("option --key-lifetime", self.refused("--key-lifetime", "long", "x"))

    def test_no_file_is_written_over_another(self):
        file = self.input("http://127.0.0.1:1/")
        (self.folder / "link").symlink_to(file)
        for options in (("--results", file), ("--dead", "link"), ("--journal", file),
                        ("--results", "a", "--dead", "./a"), ("--journal", "j", "--results", "j")):
            with self.subTest(options=options):
                shown = self.refused(*options, file)
                self.assertIn(" is the file for the ", shown)
                self.assertIn(" and cannot also be that for the ", shown)
                self.assertIn(": use another one", shown)
        self.assertIn("expected a file for the results, not standard output: a later run continues it",
                      self.refused("--results", "-", file))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), [file, "link"])

    def test_what_is_written_beside_a_run_is_not_written_over_its_files(self):
        file = self.input("http://127.0.0.1:1/")
        (self.folder / "link").symlink_to("j")
        flags = ("--journal", "j", "--results", "r", "--dead", "d")
        for option, what in (("--metrics", "metrics"), ("--har", "HTTP archive")):
            for path, of in ((file, "input"), ("j", "journal"), ("./r", "results"), ("d", "dead letters")):
                with self.subTest(option=option, path=path):
                    self.assertIn(f"{path} is the file for the {of} and cannot also be that for the {what}: use another one",
                                  self.refused(*flags, option, path, file))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), [file, "link"])

    def test_messages_are_not_written_into_the_files_of_a_run(self):
        file = self.input("http://127.0.0.1:1/")
        with (self.folder / "r").open("wb") as messages:
            ran = subprocess.run([PROGRAM, "batch", "--log-json", "--results", "r", file], cwd=self.folder,
                                 stderr=messages, timeout=LIMIT, env=clean_environment(), check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("/dev/stderr is the file for the results and cannot also be that for the messages",
                      (self.folder / "r").read_text())
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), [file, "r"])


class Ends(BatchTest):
    def held(self):
        release = threading.Event()
        self.addCleanup(release.set)
        return release, self.server(Response(200, b"ok", hold=release))

    def test_the_first_signal_lets_requests_end_and_the_second_stops_them(self):
        for number, status in ((signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for gently in (True, False):
                with self.subTest(signal=number, gently=gently):
                    release, server = self.held()
                    file = self.input({"url": server.url("/p"), "body": "x"},
                                      *[server.url(f"/{i}") for i in range(9)], name=f"{status}{gently}")
                    process = self.start("batch", *QUIET, "--parallel", "2", file)
                    for _ in range(2):
                        server.arrived.get(timeout=LIMIT)
                    process.send_signal(number)
                    self.assertIn(b"a second signal stops them", process.stderr.readline())
                    if gently:
                        release.set()
                    else:
                        process.send_signal(number)
                    process.communicate(timeout=LIMIT)
                    self.assertEqual(process.returncode, status)
                    said = self.batch("--status", file + ".httpretry.db").stdout.decode()
                    self.assertRegex(said, r"(?m)^ +2  done$" if gently else r"(?m)^ +1  unknown$")
                    self.assertRegex(said, r"(?m)^ +8  queued$" if gently else r"(?m)^ +9  queued$")

    def test_the_grace_ends_requests_that_do_not_end(self):
        _, server = self.held()
        process = self.start("batch", *QUIET, "--grace", "50ms", self.input(server.url()))
        server.arrived.get(timeout=LIMIT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)

    def test_a_post_that_was_given_back_before_its_send_may_be_sent_now(self):
        server = self.server(200)
        file = self.input(*[{"url": server.url(), "body": "x"}] * 2)
        process = self.start("batch", "--progress", "json", "--grace", "1ms", "--set", "rate.limit=2/m",
                             "--set", "rate.burst=1", "--set", "max_elapsed_time=5m", file)
        while json.loads(process.stderr.readline())["done"] != 1:
            process.send_signal(signal.SIGUSR1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, len(server.seen)), (143, 1))
        journal = file + ".httpretry.db"
        self.assertIn("the next waiting job may be sent now\n", self.batch("--status", journal).stdout.decode())
        status = json.loads(self.batch("--status", "--format", "json", journal).stdout)
        self.assertEqual(status["waiting"], 1)
        self.assertRegex(status["next_due"], "^20")
        self.assertIn("it is sent when its turn comes",
                      self.batch("--explain", journal, "2").stdout.decode() +
                      self.batch("--explain", journal, "1").stdout.decode())

    def test_what_may_have_been_executed_is_unknown_after_a_kill(self):
        release, server = self.held()
        file = self.input({"url": server.url("/p"), "body": "x", "id": "p"}, server.url("/g"))
        process = self.start("batch", *QUIET, file)
        for _ in range(2):
            server.arrived.get(timeout=LIMIT)
        process.kill()
        process.communicate()
        release.set()
        said = self.batch(file, status=75).stderr.decode()
        self.assertIn("--export unknown lists the requests that may have been executed", said)
        self.assertEqual([seen.target for seen in server.seen].count("/p"), 1)
        self.assertEqual(self.states(), [("2", "done")])
        unknown = self.batch("--export", "unknown", file + ".httpretry.db").stdout
        self.assertEqual(json.loads(unknown)["id"], "p")
        told = self.batch("--explain", file + ".httpretry.db", "p").stdout.decode()
        self.assertIn("nothing, until --retry-unknown sends it again", told)
        self.batch("--retry-unknown", file)
        self.assertEqual(self.states(), [("2", "done"), ("p", "done")])

    def test_a_key_that_a_server_may_have_forgotten_is_not_sent_again(self):
        release, server = self.held()
        file = self.input({"url": server.url("/p"), "body": "x", "key": "k"})
        process = self.start("batch", *QUIET, file)
        server.arrived.get(timeout=LIMIT)
        process.kill()
        process.communicate()
        release.set()
        self.batch("--key-lifetime", "0s", file, status=75)
        self.assertEqual(len(server.seen), 1)
        told = self.batch("--explain", file + ".httpretry.db", "1").stdout.decode()
        self.assertIn("key_too_old", told)

    def test_a_second_process_is_told_who_has_the_journal(self):
        release, server = self.held()
        file = self.input(server.url())
        process = self.start("batch", *QUIET, file)
        server.arrived.get(timeout=LIMIT)
        said = self.refused(file, status=23)
        self.assertIn(f"is in use by process {process.pid}: wait until it ends, or use another journal", said)
        status = self.batch("--status", file + ".httpretry.db").stdout.decode()
        self.assertIn(f"is running as process {process.pid}", status)
        release.set()
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(server.seen), 1)

    def test_a_second_process_does_not_get_the_results_or_dead_letters_of_the_first(self):
        for what in ("--results", "--dead"):
            with self.subTest(what):
                release, server = self.held()
                first = self.input(server.url("/1"), name=what[2:] + "1")
                second = self.input(server.url("/2"), name=what[2:] + "2")
                out = ("--no-results", what, what[2:]) if what == "--dead" else (what, what[2:])
                process = self.start("batch", *QUIET, *out, first)
                server.arrived.get(timeout=LIMIT)
                for more in ((), ("--fresh",)):
                    said = self.refused(*QUIET, *more, *out, second, status=23)
                    self.assertIn("is being written by another run: wait until that ends, or use another file", said)
                release.set()
                process.communicate(timeout=LIMIT)
                self.assertEqual(process.returncode, 0)
                self.assertEqual([seen.target for seen in server.seen], ["/1"])
                if what == "--results":
                    self.assertEqual(self.states("results"), [("1", "done")])

    def test_results_that_another_program_replaces_are_an_error_of_the_run(self):
        release, server = self.held()
        file = self.input(server.url())
        process = self.start("batch", *QUIET, "--results", "r", file)
        server.arrived.get(timeout=LIMIT)
        (self.folder / "r").rename(self.folder / "aside")
        (self.folder / "r").write_text("")
        release.set()
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 23, said)
        self.assertIn(b"r was replaced while it was being written", said)


class Shortages(BatchTest):
    def test_too_few_descriptors_cost_no_job_and_are_told_once(self):
        server = self.server(Response(200, b"ok"))
        for flags, line in (((), {}), (("--bodies", "out"), {}), ((), {"method": "POST", "body": "x"})):
            with self.subTest(flags=flags, line=line):
                server.seen.clear()
                file = self.input(*[{"url": server.url(f"/{i}"), **line} for i in range(300)])
                said = self.run_out_of_descriptors(server, "batch", "--fresh", "--parallel", "200", *flags,
                                                   file, files=64)
                self.assertIn("Too many open files", said)
                self.assertEqual(self.states(), sorted((str(i + 1), "done") for i in range(300)))
                self.assertEqual(len(server.seen), 300)

    def test_a_run_that_cannot_send_ends_with_its_jobs_queued(self):
        server = self.server(200)
        file = self.input(*[server.url(f"/{i}") for i in range(5)])
        kept = 0
        for files in range(8, 40):
            with self.subTest(files=files):
                ran = self.batch("--fresh", "--max-idle", 0, file, files=files, status=(0, 23, 70, 75))
                if ran.returncode != 75:
                    continue
                self.assertIn("5 not sent; ended because no further request could be sent", ran.stderr.decode())
                self.assertEqual(self.lines(), [])
                kept += 1
        self.assertGreater(kept, 0)
        self.batch(file)
        self.assertEqual(len(self.lines()), 5)


class FullDisks(BatchTest):
    """A file system of 400 KiB, for one of the files of a run at a time."""

    def small_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=False,
                          capture_output=True).returncode != 0:
            self.skipTest(NOT_HERE + "no right to mount a file system")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        return disk

    def test_a_full_disk_ends_the_run_with_the_reason_and_the_next_run_goes_on(self):
        disk = self.small_disk()
        server = self.server(Response(200, b"x" * 20000))
        places = {"journal": ("--bodies", "none", "--journal", "disk/j.db", "--results", "r.jsonl"),
                  "results": ("--journal", "j.db", "--results", "disk/r.jsonl"),
                  "bodies": ("--bodies", "disk/out", "--journal", "j.db", "--results", "r.jsonl")}
        for what, flags in places.items():
            with self.subTest(what):
                server.seen.clear()
                subprocess.run(["mount", "-o", "remount,size=400k", disk], check=True)
                lines = [{"url": server.url(f"/{i}"), "method": "POST", "tag": "t" * 2000} for i in range(150)]
                file = self.input(*lines)
                said = self.batch("--parallel", "4", *QUIET, *flags, file, status=23).stderr.decode()
                self.assertRegex(said, r"(?s)disk/.*(No space left on device|database or disk is full)")
                self.assertIn("free some space and run the same command again", said)
                subprocess.run(["mount", "-o", "remount,size=40m", disk], check=True)
                status = (0, 75)
                self.batch("--parallel", "4", *QUIET, *flags, file, status=status)
                results = self.lines("disk/r.jsonl" if what == "results" else "r.jsonl")
                journal = "disk/j.db" if what == "journal" else "j.db"
                unknown = [json.loads(line) for line in
                           self.batch("--export", "unknown", journal).stdout.splitlines()]
                ids = [line["id"] for line in results + unknown]
                self.assertEqual(sorted(ids, key=int), [str(i + 1) for i in range(150)])
                targets = [seen.target for seen in server.seen]
                self.assertEqual(len(targets), len(set(targets)))  # none twice
                for name in ("j.db", "r.jsonl"):
                    (self.folder / name).unlink(missing_ok=True)
                    (disk / name).unlink(missing_ok=True)


class Recipes(BatchTest):
    """The recipes of lib/extras/batch/README.md, run as they stand there."""

    def setUp(self):
        super().setUp()
        page = pathlib.Path(__file__).parents[2] / "lib/extras/batch/README.md"
        recipes = page.read_text().split("## Recipes")[1]
        self.scripts = re.findall(r"```sh\n(.*?)```", recipes, re.DOTALL)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "httpretry").symlink_to(PROGRAM)

    def shell(self, script, status=0):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(["sh", "-c", script], cwd=self.folder, capture_output=True, timeout=LIMIT,
                              env=clean_environment() | {"PATH": path}, check=False)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout.decode()

    def test_a_list_of_files_is_mirrored(self):
        server = self.server(Response(200, b"content"))
        self.input(server.url("/a/b.txt"), server.url("/c"), name="urls.txt")
        self.shell(self.scripts[0])
        host = self.folder / "mirror" / f"127.0.0.1:{server.port}"
        self.assertEqual((host / "a/b.txt").read_bytes() + (host / "c").read_bytes(), b"contentcontent")

    def test_events_are_posted_and_those_that_failed_again_with_the_same_keys(self):
        server = self.server(500, 500, 500, 500, 500, 200)
        self.input({"n": 1}, {"n": 2}, {"n": 3}, name="events.jsonl")
        script = self.scripts[1].replace("https://api.example.com/v1/events", server.url())
        script = script.replace("--rate", "--parallel 1 --set backoff.initial=1ms --rate")
        said = self.shell(script)
        self.assertIn("because of --rate", said)
        keys = {}
        for seen in server.seen:
            keys.setdefault(seen.body, set()).add(seen.headers["idempotency-key"])
        self.assertEqual([len(each) for each in keys.values()], [1, 1, 1])
        self.assertEqual(len(server.seen), 8)

    def test_a_nightly_job_goes_on_with_its_list(self):
        server = self.server(200, BUSY, 200)
        (self.folder / "nightly").write_text(self.scripts[2])
        (self.folder / "make-list").write_text(
            "#!/bin/sh\necho made >> made\n" + "".join(f"echo {server.url(f'/{i}')}\n" for i in range(3)))
        for name in ("nightly", "make-list"):
            (self.folder / name).chmod(0o755)
        self.assertEqual(self.shell("./nightly"), "")
        self.assertEqual(self.shell("./nightly"), "")
        self.assertEqual((self.folder / "made").read_text(), "made\n")
        targets = [seen.target for seen in server.seen]
        self.assertEqual(len(targets), len(set(targets)))
        (self.folder / "make-list").write_text("#!/bin/sh\necho nonsense\n")
        for made in self.folder.glob("20*"):
            made.unlink()
        self.assertIn(":1:1: ", self.shell("./nightly"))


class Shown(BatchTest):
    def test_a_summary_by_host_status_and_reason_is_the_end(self):
        good, bad = self.server(200), self.server(404)
        file = self.input(*[good.url(f"/{i}") for i in range(3)], bad.url())
        said = self.batch(file, status=22).stderr.decode().splitlines()
        host = lambda server: re.escape(f"127.0.0.1:{server.port}")
        self.assertTrue(any(re.match(rf" +3  done +200  {host(good)}$", line) for line in said), said)
        self.assertTrue(any(re.match(rf" +1  dead +404  {host(bad)} \(not_retryable\)$", line) for line in said), said)
        self.assertEqual(said[-1], "httpretry: 3 of 4 done, 1 dead")

    def test_a_signal_asks_how_far_it_is_as_json(self):
        release = threading.Event()
        self.addCleanup(release.set)
        server = self.server(Response(200, b"ok", hold=release))
        process = self.start("batch", "--progress", "json", self.input(*[server.url(f"/{i}") for i in range(5)]))
        for _ in range(5):
            server.arrived.get(timeout=LIMIT)
        process.send_signal(signal.SIGUSR1)
        while (line := json.loads(process.stderr.readline()))["in_flight"] != 5:
            pass
        self.assertEqual((line["total"], line["done"], line["queued"], line["paused"]), (5, 0, 5, []))
        release.set()
        process.communicate(timeout=LIMIT)

    def test_a_signal_during_the_import_asks_how_far_the_run_is(self):
        server = self.server(200)
        process = self.start("batch", "--progress", "json", "--journal", "j.db", "--results", "results", "-",
                             stdin=subprocess.PIPE)
        wait_until(lambda: (self.folder / "j.db-lock").exists())
        process.send_signal(signal.SIGUSR1)
        process.communicate(server.url().encode(), timeout=LIMIT)
        self.assertEqual((process.returncode, len(server.seen)), (0, 1))

    def test_lines_are_for_logs_and_one_line_for_terminals(self):
        server = self.server(200)
        file = self.input(*[server.url(f"/{i}") for i in range(3)])
        said = self.batch("--progress", "lines", file).stderr.decode()
        self.assertRegex(said.splitlines()[0], r"^0/3 done · 0 in flight · 0\.0/s$")
        end, terminal = pty.openpty()
        process = subprocess.Popen([PROGRAM, "batch", "--fresh", file], stderr=terminal, stdout=subprocess.DEVNULL,
                                   cwd=self.folder, env=clean_environment())
        os.close(terminal)
        self.addCleanup(os.close, end)
        said = b""
        try:
            while piece := os.read(end, 4096):
                said += piece
        except OSError:
            pass
        process.wait(timeout=LIMIT)
        self.assertIn("0/3 done · ", said.decode())
        self.assertIn("3 of 3 done", said.decode())


if __name__ == "__main__":
    main()
