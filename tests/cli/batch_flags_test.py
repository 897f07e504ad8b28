"""The flags of httpretry batch: those that httpretry has too, and what is said about those that it does not have."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from batch_test import BatchTest
from program import LIMIT, PROGRAM, Response, blocks_its_signals, clean_environment, main, wait_until

ME = "Basic bWU6cHc="  # me:pw


class UnknownOptions(BatchTest):
    TABLE = (
        (("--retry", "3"), "option --retry is unknown to batch; use --set max_attempts=4"),
        (("--retry=0",), "use --set max_attempts=1"),
        (("--retry", "many"), "use --set max_attempts=4 (for 3 retries)"),
        (("--retry",), "use --set max_attempts=4 (for 3 retries)"),
        (("--max-retries", "2"), "use --set max_attempts=3"),
        (("--max-attempts", "2"), "use --set max_attempts=2"),
        (("-m", "5"), "use --set max_elapsed_time=5s (all attempts of a request together), or --set "
                      "attempt_timeout=5s (each attempt)"),
        (("-m0.5",), "use --set max_elapsed_time=500ms ("),
        (("--max-time", "1m"), "use --set max_elapsed_time=60s ("),
        (("--timeout", "x"), "use --set max_elapsed_time=60s ("),
        (("--retry-max-time", "60"), "option --retry-max-time is unknown to batch; use --set max_elapsed_time=60s"),
        (("--retry-max-time", "0"), "use --set max_elapsed_time=none"),
        (("--retry-delay", "1"), "use --set backoff.kind=constant --set backoff.interval=1s"),
        (("--retry-delay", "0"), "backoff.interval=1s"),
        (("--retry-all-errors",), "use --set 'retry_on.statuses=[\"4xx\", \"5xx\"]'"),
        (("--retry-connrefused",), "leave it out: most policies retry after a refused connection"),
        (("-L",), "option -L is unknown to batch; leave it out: up to 10 redirects of a request are followed"),
        (("-o", "f"), 'use --bodies DIR, or the field "output" of the line'),
        (("-d", "secret"), 'use one of the fields "body", "json", "body_base64" and "body_file" of the line'),
        (("-X", "PUT"), 'use the field "method": "PUT" of the line'),
        (("-X",), 'use the field "method": "POST" of the line'),
        (("-X", "{}"), 'use the field "method": "POST" of the line'),
        (("-w", "%{json}"), "use --results FILE: each line is the report of a request"),
        (("-f",), "leave it out: a response of 400 or more is a failure, and the exit status is 22"),
        (("-sS",), "option -s (in -sS) is unknown to batch; use --progress none"),
        (("--fail-early",), "use --max-failures 1"),
        (("--until", "status=200"), "option --until is unknown to batch; only httpretry URL... has it"),
        (("--speed-time", "3"), "use --set stall_timeout=3s"),
        (("--hsts", "f"), "is curl's, and deliberately missing here: a request goes to the origin"),
        (("--ratte", "3"), "option --ratte is unknown; did you mean --rate?"),
    )

    def test_the_message_says_what_to_use_instead(self):
        for args, expected in self.TABLE:
            with self.subTest(args=args):
                said = self.refused("in.jsonl", *args)
                self.assertIn(expected, said)
                self.assertNotIn("secret", said)

    def test_each_setting_that_a_message_names_is_valid(self):
        server = self.server(200)
        file = self.input(server.url())
        for flag in ("max_attempts=4", "max_elapsed_time=500ms", "max_elapsed_time=none", "attempt_timeout=5s",
                     'retry_on.statuses=["4xx", "5xx"]', "repeat=always", "idempotency_key=Idempotency-Key"):
            self.batch("--check", "--set", flag, file)
        self.batch("--check", "--set", "backoff.kind=constant", "--set", "backoff.interval=1s", file)

    def test_a_worker_says_the_same(self):
        ran = self.run_program("work", "--retry", "3", status=2)
        if b"unknown command" in ran.stderr:
            self.skipTest("this program was built without queues")
        self.assertIn("option --retry is unknown to work; use --set max_attempts=4", ran.stderr.decode())


class Credentials(BatchTest):
    def sent(self, *flags, **line):
        server = self.server(200)
        file = self.input({"url": server.url(), **line})
        self.batch("--fresh", *flags, file)
        return server.seen[0].headers.get("authorization")

    def test_a_request_without_credentials_gets_those_of_the_command_line(self):
        self.assertEqual(self.sent("-u", "me:pw"), ME)
        self.assertIsNone(self.sent())
        self.assertEqual(self.sent("-u", "me:pw", headers={"authorization": "Bearer x"}), "Bearer x")
        self.assertEqual(self.sent("-u", "me:pw", "-H", "Authorization: Bearer y"), "Bearer y")
        server = self.server(200)
        self.batch("-u", "me:pw", "--fresh", self.input(server.url().replace("//", "//you:word@")))
        self.assertEqual(server.seen[0].headers["authorization"], "Basic eW91OndvcmQ=")

    def test_each_host_of_the_list_gets_them_and_the_target_of_a_redirect_does_not(self):
        other = self.server(200)
        servers = [self.server(Response(302, b"", [("Location", other.url())])), self.server(200)]
        self.batch("-u", "me:pw", self.input(*[server.url() for server in servers]))
        self.assertEqual([server.seen[0].headers.get("authorization") for server in (*servers, other)],
                         [ME, ME, None])

    def test_digest(self):
        challenge = Response(401, b"", [("WWW-Authenticate", 'Digest realm="r", nonce="n"')])
        server = self.server(challenge, 200)
        self.batch("-u", "me:pw", "--digest", self.input(server.url()))
        self.assertIn('Digest username="me"', server.seen[1].headers["authorization"])

    def test_netrc(self):
        (self.folder / ".netrc").write_text("machine 127.0.0.1 login me password pw\n")
        self.assertEqual(self.sent("--netrc-file", ".netrc"), ME)
        server = self.server(200)
        self.batch("-n", "--fresh", self.input(server.url()), env={"HOME": str(self.folder)})
        self.assertEqual(server.seen[0].headers["authorization"], ME)

    def test_a_netrc_file_may_be_a_pipe(self):
        server = self.server(200)
        file = self.input(server.url("/1"), server.url("/2"))
        (self.folder / "netrc").write_text("machine 127.0.0.1 login me password pw\n")
        os.mkfifo(self.folder / "pipe")
        with subprocess.Popen(["sh", "-c", "cat netrc > pipe"], cwd=self.folder):
            self.batch("--parallel", "1", "--netrc-file", "pipe", file)
        self.assertEqual([seen.headers.get("authorization") for seen in server.seen], [ME, ME])

    def test_a_password_is_asked_for_before_anything_is_sent(self):
        server = self.server(200)
        said, status = self.type_at_terminal("batch", "-u", "me", self.input(server.url()), typed=b"pw\n",
                                             question=b"Enter host password for user 'me':")
        self.assertEqual((status, server.seen[0].headers["authorization"]), (0, ME), said)
        self.assertIn("no password given; expected NAME:PASSWORD", self.refused("-u", "me", "in.jsonl"))

    def test_a_password_is_in_no_output_and_in_no_file(self):
        server = self.server(503, 200, 401)
        ran = self.batch("-u", "me:hush-hush", "--log-json", "--response-headers", "--har", "har", "--dead", "dead",
                         "--parallel", "1", self.input(server.url("/1"), server.url("/2")), status=22)
        files = [path.read_bytes() for path in self.folder.iterdir()]
        self.assertGreaterEqual(len(files), 4)
        for text in (ran.stdout, ran.stderr, *files):
            self.assertNotIn(b"hush-hush", text)
            self.assertNotIn(base64.b64encode(b"me:hush-hush").rstrip(b"="), text)

    def test_a_check_asks_for_no_password(self):
        self.batch("--check", "-u", "me", self.input("http://a.example/"))

    def test_a_signal_ends_the_question(self):
        said, status = self.type_at_terminal("batch", "-u", "me", self.input("http://h.invalid/"), typed=b"\x03",
                                             question=b"user 'me':")
        self.assertTrue(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, said)

    def test_a_signal_ends_the_wait_for_a_pipe_even_if_it_was_ignored(self):
        os.mkfifo(self.folder / "pipe")
        file = self.input("http://h.invalid/")
        program = subprocess.Popen(["sh", "-c", 'trap "" INT && exec "$0" "$@"', PROGRAM, "batch", "--netrc-file", "pipe",
                                    file], cwd=self.folder, env=clean_environment(), stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        wait_until(lambda: blocks_its_signals(program.pid))
        program.send_signal(signal.SIGINT)
        self.assertEqual(program.wait(timeout=LIMIT), -signal.SIGINT)

    def test_a_proxy_gets_its_own(self):
        proxy = self.server(200)
        self.batch("-x", proxy.url(), "-U", "me:pw", self.input("http://h.invalid/"))
        self.assertEqual((proxy.seen[0].target, proxy.seen[0].headers["proxy-authorization"]),
                         ("http://h.invalid/", ME))
        server = self.server(200)
        self.batch("-x", proxy.url(), "--noproxy", "127.0.0.1", "--fresh", self.input(server.url()))
        self.assertEqual((len(proxy.seen), len(server.seen)), (1, 1))


class Connections(BatchTest):
    def test_addresses_of_the_command_line_are_used(self):
        server = self.server(200)
        url = f"http://h.invalid:{server.port}/"
        for flags in (("--resolve", f"h.invalid:{server.port}:127.0.0.1"),
                      ("--connect-to", f"h.invalid:{server.port}:127.0.0.1:{server.port}")):
            with self.subTest(flags=flags):
                self.batch("--fresh", *flags, self.input(url))
        self.assertEqual(len(server.seen), 2)
        self.batch("--fresh", "-4", self.input(server.url().replace("127.0.0.1", "localhost")))
        self.batch("--fresh", "-6", "--set", "max_attempts=1", self.input(server.url()), status=22)
        self.assertEqual(len(server.seen), 3)

    def test_a_wrong_value_is_an_error_that_names_the_flag(self):
        file = self.input("http://a.example/")
        for flags in (("--resolve", "x"), ("--connect-to", "x"), ("--limit-rate", "fast")):
            with self.subTest(flags=flags):
                self.assertIn(f"option {flags[0]}", self.refused(*flags, file))

    def test_a_file_that_cannot_be_read_is_an_error_before_a_job_is_dead(self):
        file = self.input("http://127.0.0.1:1/")
        for flag in ("--netrc-file", "--cacert", "--capath", "--cert", "--key", "--pinnedpubkey"):
            with self.subTest(flag=flag):
                self.assertIn(f"option {flag}: cannot read none: No such file or directory",
                              self.refused(flag, "none", file))
        self.assertEqual(os.listdir(self.folder), [file])

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_a_client_certificate_is_sent(self):
        for name in ("server", "me"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                            "-keyout", f"{name}.key", "-out", f"{name}.pem"],
                           cwd=self.folder, check=True, capture_output=True)
        server = subprocess.Popen(
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", "server.pem", "-key", "server.key",
             "-CAfile", "me.pem", "-Verify", "1", "-verify_return_error", "-www"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        line = next(line for line in server.stdout if line.startswith(b"ACCEPT"))
        file = self.input("https://" + line.decode().split()[1])
        self.batch("--cacert", "server.pem", "--cert", "me.pem", "--key", "me.key", file)
        self.assertIn("Client certificate", self.lines()[0]["body"])
        self.batch("--fresh", "--set", "max_attempts=1", "--cacert", "server.pem", file, status=22)

    def test_the_rate_of_each_body_is_limited(self):
        server = self.server(Response(200, b"x" * 40000))
        file = self.input(server.url(), {"url": server.url(), "output": "out"})
        began = time.monotonic()
        self.batch("--limit-rate", "40K", file)
        self.assertGreater(time.monotonic() - began, 0.7)
        self.assertEqual((self.folder / "out").read_bytes(), b"x" * 40000)
        began = time.monotonic()
        self.batch("--fresh", "--limit-rate", "100K", self.input({"url": server.url(), "body": "x" * 200000}))
        self.assertGreater(time.monotonic() - began, 0.7)


class Requests(BatchTest):
    def test_a_request_has_the_headers_that_the_command_sends(self):
        server = self.server(200)
        self.run_program(server.url())
        self.batch(self.input(server.url()))
        self.assertEqual(server.seen[0].headers, server.seen[1].headers)
        self.batch("--fresh", "-H", "Accept: text/plain", self.input(
            server.url(), {"url": server.url(), "headers": {"Accept": "a/b", "User-Agent": "me"}}), "--parallel", "1")
        self.assertEqual([seen.headers["accept"] for seen in server.seen[2:]], ["text/plain", "a/b"])
        self.assertEqual(server.seen[3].headers["user-agent"], "me")

    def test_redirects_are_followed_and_the_result_is_that_of_the_last_response(self):
        server = self.server(Response(302, b"", [("Location", "/b")]), Response(200, b"b"))
        self.batch(self.input(server.url("/a")))
        self.assertEqual([seen.target for seen in server.seen], ["/a", "/b"])
        result = self.lines()[0]
        self.assertEqual((result["state"], result["status"], result["body"]), ("done", 200, "b"))

    def test_more_than_ten_redirects_are_a_failure(self):
        server = self.server(Response(302, b"", [("Location", "/")]))
        self.batch(self.input(server.url()), status=22)
        self.assertEqual(len(server.seen), 11)


class Status(BatchTest):
    def test_status_as_json(self):
        good, bad = self.server(200), self.server(404)
        file = self.input(good.url(), bad.url(),
                          {"url": good.url(), "not_before": "2190-01-01T00:00:00Z"})
        self.batch("--dead", "dead", file, status=22)
        journal = file + ".httpretry.db"
        status = json.loads(self.batch("--status", "--format", "json", journal).stdout)
        self.assertRegex(status.pop("last_run"), r"^20\d\d-")
        folder = os.path.realpath(self.folder)
        self.assertEqual(status, {
            "journal": journal, "input": file, "results": f"{folder}/in.jsonl.results.jsonl",
            "dead_letters": f"{folder}/dead", "runs": 1, "running": False, "process": None, "total": 3,
            "done": 1, "dead": 1, "waiting": 1, "unknown": 0, "queued": 0, "sending": 0,
            "next_due": "2190-01-01T00:00:00.000Z"})
        self.assertIn("option --format", self.refused("--status", "--format", "xml", journal))
        self.assertIn("option --format needs --status; the progress as JSON is --progress json",
                      self.refused("--format", "json", file))


if __name__ == "__main__":
    main()
