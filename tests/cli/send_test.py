"""Sending: the requests, the output to standard output and files, and the exit status."""

import json
import re
import shlex
import signal
import subprocess
import threading

from program import (LIMIT, PROGRAM, Response, ProgramTest, QUICK, clean_environment,
                     closed_port, main)


class Requests(ProgramTest):
    def sent(self, *args, stdin=b"", path="/"):
        server = self.server(200)
        self.run_program(*args, server.url(path), stdin=stdin)
        return server.seen[0]

    def test_closed_streams_are_errors_and_no_descriptor_of_ours(self):
        server = self.server(Response(200, b"body"))
        quoted = f'exec "{PROGRAM}" -sS '
        for redirection, args, status in ((">&-", server.url(), 23),
                                          (">&- <&-", server.url(), 23),
                                          ("<&-", f"-T - {server.url()}", 26),
                                          (">&-", f"-o f -w %{{http_code}} {server.url()}", 23)):
            result = subprocess.run(["sh", "-c", f"{quoted}{args} {redirection}"], timeout=LIMIT,
                                    stderr=subprocess.PIPE, env=clean_environment(),
                                    cwd=self.folder, check=False)
            self.assertEqual(result.returncode, status, (redirection, args, result.stderr))

    def test_too_few_descriptors_are_75_and_no_failure_of_the_server(self):
        # How many are needed depends on the poller and on libcurl.
        for limit in range(12, 3, -1):
            server = self.server(200)
            done = subprocess.run(["bash", "-c", f'ulimit -n {limit} && exec "$@"', "-", PROGRAM, "-sS",
                                   server.url()], capture_output=True, check=False, timeout=LIMIT,
                                  cwd=self.folder, env=clean_environment())
            if done.returncode != 0:
                break
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn(f"Too many open files (this process may have {limit} files open", done.stderr.decode())
        self.assertIn(b"(local_shortage)", done.stderr)
        self.assertEqual(server.seen, [])

    def test_a_hangup_that_is_ignored_stays_ignored(self):
        server = self.server(Response(200, b"body", hold=threading.Event()))
        process = subprocess.Popen(
            ["sh", "-c", f"trap '' HUP; exec '{PROGRAM}' -sS {server.url()}"],
            stdout=subprocess.PIPE, env=clean_environment(), cwd=self.folder)
        self.addCleanup(process.stdout.close)
        server.arrived.get(timeout=LIMIT)
        process.send_signal(signal.SIGHUP)
        server.responses[0].hold.set()
        self.assertEqual(process.stdout.read(), b"body")
        self.assertEqual(process.wait(), 0)

    def test_a_password_of_a_proxy_or_a_url_is_in_no_message(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        for proxy in (f"http://user:s/cret@127.0.0.1:{port}", "http://user:s cret@127.0.0.1:x"):
            result = self.run_program("-sS", "--retry", 0, "http://foo.invalid/", status=(5, 7, 56),
                                      env={"http_proxy": proxy})
            self.assertNotIn(b"cret@", result.stderr)
            self.assertNotIn(b"user:s", result.stderr)
        url = "http://us:s3cret@127.0.0.1:1/?token=q1"
        for args in (("--report", "-", url), ("-C", "-", url), ("-O", url)):
            said = self.usage_error(*args)
            self.assertNotIn("s3cret", said)
            self.assertNotIn("q1", said)

    def test_a_scheme_in_the_query_is_none_of_the_url(self):
        server = self.server(Response(200, b"body"))
        result = self.run_program(server.url("/login?next=http://x/")[len("http://"):])
        self.assertEqual(result.stdout, b"body")
        self.assertEqual(server.seen[0].target, "/login?next=http://x/")

    def test_until_compares_numbers_as_numbers_and_takes_the_status_that_was_waited_for(self):
        server = self.server(Response(200, b'{"progress": 1.0, "h": 1e2}'))
        for wanted in ("progress=1.0", "progress=1", "h=100.0", "h=1e2"):
            self.run_program("-sS", "-m", LIMIT, "--until", f"json:/{wanted}", server.url())
        large = self.server(Response(200, b'{"id": 9007199254740993, "double": 9007199254740993.0}'))
        self.run_program("-sS", "--until", "json:/id=9007199254740993", large.url())
        self.run_program("-sS", "-m", 0.3, "--retry-delay", 0.01, "--until",
                         "json:/id=9007199254740992", large.url(), status=28)
        gone = self.server(Response(200), Response(404, b"gone"))
        self.run_program("-sS", "-m", LIMIT, "--retry-delay", "0.001", "--until", "status=404",
                         gone.url())

    def test_until_waits_for_a_service_that_is_not_up_yet(self):
        down = [Response(0, reset=True)] * 6
        for until, late in (("status=200", down), ("json:/state=DONE", down + [503] * 6)):
            server = self.server(*late, Response(200, b'{"state": "DONE"}'))
            self.run_program("-sS", "-m", LIMIT, "--retry-delay", "0.001", "--until", until,
                             server.url())
            self.assertEqual(len(server.seen), len(late) + 1)
        holder, port = closed_port()
        self.addCleanup(holder.close)
        result = self.run_program("--retry-max-time", "0.2", "--retry-delay", "0.01", "--until",
                                  "status=200", f"http://127.0.0.1:{port}/", status=28)
        self.assertIn(b"httpretry: the condition of --until was not met: status=200\n", result.stderr)
        posted = self.server(*down)  # which may have been done each time
        self.run_program("-d", "x", "--until", "status=200", posted.url(), status=52)
        self.assertEqual(len(posted.seen), 1)

    def test_until_looks_at_where_redirects_lead(self):
        for until in ("status=200", "json:/state=DONE"):
            server = self.server(Response(302, b"", [("Location", "/b")]), Response(200, b"{}"),
                                 Response(302, b"", [("Location", "/b")]),
                                 Response(200, b'{"state": "DONE"}'))
            result = self.run_program("-sSL", "-m", LIMIT, "--retry-delay", "0.001", "--until",
                                      until, server.url("/a"))
            seen = [each.target for each in server.seen]
            self.assertEqual(seen[:2], ["/a", "/b"])
            self.assertEqual(result.stdout, b"{}" if until == "status=200" else b'{"state": "DONE"}')

    def test_a_key_of_ones_own_is_kept(self):
        server = self.server(Response(200))
        self.run_program("-d", "x", "--idempotency-key", "-H", "Idempotency-Key: mine", server.url())
        self.assertEqual(server.seen[0].headers["idempotency-key"], "mine")

    def test_a_plain_get_looks_like_curls(self):
        seen = self.sent()
        self.assertEqual((seen.method, seen.target, seen.body), ("GET", "/", b""))
        self.assertEqual(seen.headers["accept"], "*/*")
        self.assertRegex(seen.headers["user-agent"], r"^httpretry/\d")

    def test_data_is_posted_as_a_form(self):
        seen = self.sent("-d", "a=1", "-d", "b=2")
        self.assertEqual((seen.method, seen.body), ("POST", b"a=1&b=2"))
        self.assertEqual(seen.headers["content-type"], "application/x-www-form-urlencoded")

    def test_data_reads_files_and_standard_input(self):
        (self.folder / "lines").write_bytes(b"a\r\nb\n\0c")
        self.assertEqual(self.sent("-d@lines").body, b"abc")
        self.assertEqual(self.sent("--data=@lines").body, b"abc")
        self.assertEqual(self.sent("--data-binary", "@lines").body, b"a\r\nb\n\0c")
        self.assertEqual(self.sent("--data-raw", "@lines").body, b"@lines")
        self.assertEqual(self.sent("--data-binary", "@-", stdin=b"in\n").body, b"in\n")

    def test_data_urlencode_takes_curls_four_forms(self):
        (self.folder / "f").write_bytes(b"x y")
        for value, body in (("a b", b"a+b"), ("=a=b", b"a%3Db"), ("n=a&b", b"n=a%26b"),
                            ("@f", b"x+y"), ("n@f", b"n=x+y")):
            self.assertEqual(self.sent("--data-urlencode", value).body, body)

    def test_json_sets_both_headers(self):
        seen = self.sent("--json", '{"a":', "--json", "1}")
        self.assertEqual((seen.method, seen.body), ("POST", b'{"a":1}'))
        self.assertEqual(seen.headers["content-type"], "application/json")
        self.assertEqual(seen.headers["accept"], "application/json")

    def test_get_puts_the_data_into_the_url(self):
        seen = self.sent("-G", "-d", "a=1", "--data-urlencode", "b=c d", path="/p?x=1#end")
        self.assertEqual((seen.method, seen.target), ("GET", "/p?x=1&a=1&b=c+d"))
        seen = self.sent("--url-query", "a=b c", "--url-query", "+d=e", path="/p")
        self.assertEqual(seen.target, "/p?a=b+c&d=e")

    def test_headers_are_added_emptied_and_left_out(self):
        (self.folder / "h").write_text("X-From: file\r\nX-Two: 2\n")
        seen = self.sent("-H", "X-A: 1", "-H", "X-Empty;", "-H", "Accept:", "-H", "@h",
                         "-A", "me/1", "-e", "http://from/")
        self.assertEqual(seen.headers["x-a"], "1")
        self.assertEqual(seen.headers["x-empty"], "")
        self.assertEqual((seen.headers["x-from"], seen.headers["x-two"]), ("file", "2"))
        self.assertNotIn("accept", seen.headers)
        self.assertEqual(seen.headers["user-agent"], "me/1")
        self.assertEqual(seen.headers["referer"], "http://from/")
        seen = self.sent("-A", "", "-e", "")
        self.assertEqual({"user-agent", "referer"} & set(seen.headers), set())

    def test_credentials(self):
        self.assertEqual(self.sent("-u", "Aladdin:open sesame").headers["authorization"],
                         "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        self.assertEqual(self.sent("--oauth2-bearer", "t0k").headers["authorization"],
                         "Bearer t0k")

    def test_upload_is_a_put_that_keeps_the_name(self):
        (self.folder / "a b").write_bytes(b"content")
        seen = self.sent("-T", "a b", path="/dir/")
        self.assertEqual((seen.method, seen.target, seen.body),
                         ("PUT", "/dir/a%20b", b"content"))
        seen = self.sent("-T-", stdin=b"from stdin")
        self.assertEqual((seen.method, seen.target, seen.body), ("PUT", "/", b"from stdin"))

    def test_method_attached_to_its_letter(self):
        self.assertEqual(self.sent("-XDELETE").method, "DELETE")

    def test_a_url_without_a_scheme_is_http(self):
        server = self.server(Response(200, b"x"))
        result = self.run_program(f"127.0.0.1:{server.port}/p")
        self.assertEqual(result.stdout, b"x")

    def test_standard_input_is_sent_whole_again(self):
        server = self.server(503, 200)
        self.run_program(*QUICK, "-T", "-", server.url("/x"), stdin=b"body")
        self.assertEqual([seen.body for seen in server.seen], [b"body", b"body"])

    def test_a_policy_tells_the_server_about_attempts_and_the_time_left(self):
        server = self.server(503, 503, 200)
        ran = self.run_program("-v", "--set", "attempt_header=X-Attempt", "--set", "deadline_header=X-Left",
                               "--set", "max_elapsed_time=1h", "--set", "backoff.initial=1ms", server.url())
        self.assertEqual([seen.headers["x-attempt"] for seen in server.seen], ["0", "1", "2"])
        left = [int(seen.headers["x-left"]) for seen in server.seen]
        self.assertEqual(left, sorted(left, reverse=True))
        self.assertLessEqual(left[0], 3600000)
        said = ran.stderr.decode()
        self.assertEqual(re.findall(r"^> X-Attempt: (.*)$", said, re.MULTILINE), ["0", "1", "2"])
        self.assertEqual([int(ms) for ms in re.findall(r"^> X-Left: (.*)$", said, re.MULTILINE)], left)

    def test_an_idempotency_key_stays_the_same(self):
        server = self.server(503, 200)
        self.run_program(*QUICK, "--idempotency-key", "-d", "x", server.url())
        keys = {seen.headers["idempotency-key"] for seen in server.seen}
        self.assertEqual((len(server.seen), len(keys)), (2, 1))
        server = self.server(200)
        self.run_program("--idempotency-key=mine", "-d", "x", server.url())
        self.assertEqual(server.seen[0].headers["idempotency-key"], "mine")

    def test_several_urls_share_one_client_and_the_last_failure_is_the_status(self):
        server = self.server(Response(200, b"1"), Response(404, b"2"), Response(200, b"3"))
        result = self.run_program(*[server.url(f"/{i}") for i in range(3)], status=22)
        self.assertEqual(result.stdout, b"123")
        self.assertEqual([seen.target for seen in server.seen], ["/0", "/1", "/2"])

    def test_times_and_names(self):
        server = self.server(Response(200, b"x"))
        result = self.run_program("--connect-timeout", "5", "--url", server.url("/a"),
                                  server.url("/b"))
        self.assertEqual((result.stdout, [seen.target for seen in server.seen]),
                         (b"xx", ["/a", "/b"]))
        server = self.server(503)
        result = self.run_program("--set", "max_attempts=unlimited", "--retry-delay", "0.05",
                                  "--retry-max-time", "1", server.url(), status=(22, 28))
        self.assertIn("(elapsed_exhausted)", result.stderr.decode())  # 28: in the last attempt
        self.assertGreater(len(server.seen), 4)
        result = self.run_program("-sS", "--retry", 0, server.url(), status=22)
        self.assertIn("(attempts_exhausted)", result.stderr.decode())
        self.assertEqual(self.run_program("-s", "--retry", 0, server.url(), status=22).stderr, b"")


class Output(ProgramTest):
    def test_only_the_response_that_counts_is_shown(self):
        body = bytes(range(256)) * 700
        server = self.server(Response(503, b"failed"), Response(200, body))
        result = self.run_program(*QUICK, server.url())
        self.assertEqual(result.stdout, body)
        self.assertEqual(result.stderr, b"")

    def test_a_file_is_whole_or_as_it_was(self):
        server = self.server(Response(200, raw=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"))
        (self.folder / "out").write_bytes(b"old")
        self.run_program(*QUICK, "-o", "out", server.url(), status=18)
        self.assertEqual((self.folder / "out").read_bytes(), b"old")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["out"])

    def test_a_file_replaces_what_a_link_leads_to_and_keeps_its_mode(self):
        server = self.server(Response(200, b"new"))
        target, link = self.folder / "target", self.folder / "link"
        target.write_bytes(b"old")
        target.chmod(0o640)
        link.symlink_to(target)
        self.run_program("-o", "link", server.url())
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_bytes(), b"new")
        self.assertEqual(target.stat().st_mode & 0o777, 0o640)

    def test_a_device_is_written_to_directly(self):
        server = self.server(Response(200, b"x"))
        self.run_program("-o", "/dev/null", server.url())
        result = self.run_program("-o", "/dev/full", server.url(), status=23)
        self.assertIn("cannot write /dev/full", result.stderr.decode())

    def test_a_response_that_cannot_be_written_is_no_failed_call(self):
        server = self.server(Response(200, b"x"))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, server.url()], stdout=full, stderr=subprocess.PIPE,
                                  env=clean_environment(), check=False)
            version = subprocess.run([PROGRAM, "-V"], stdout=full, stderr=subprocess.PIPE,
                                     env=clean_environment(), check=False)
        for each in (done, version):
            self.assertEqual(each.returncode, 23)
            self.assertEqual(each.stderr.decode(), "httpretry: cannot write to standard output: "
                                                   "No space left on device\n")

    def test_what_w_cannot_write_keeps_nothing_else_from_being_written(self):
        server = self.server(Response(200, b"one", [("Set-Cookie", "a=b; Max-Age=999")]))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "-Z", "-o", "1", server.url("/1"), "-o", "2",
                                   server.url("/2"), "-w", "%{http_code}", "--report", "report.json",
                                   "-c", "jar"], stdout=full, stderr=subprocess.PIPE,
                                  env=clean_environment(), cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 23, done.stderr)
        self.assertEqual([each["status"] for each in self.report()], [200, 200])
        self.assertEqual((self.folder / "2").read_bytes(), b"one")
        self.assertIn("a\tb", (self.folder / "jar").read_text())
        done = self.run_program("-sS", "--report", "no/where", "-c", "other", server.url(), status=23)
        self.assertIn(b"cannot write no/where", done.stderr)
        self.assertTrue((self.folder / "other").exists())

    def test_outputs_belong_to_urls_in_order(self):
        server = self.server(Response(200, b"1"), Response(200, b"2"))
        result = self.run_program("-o", "one", server.url(), server.url())
        self.assertEqual((self.folder / "one").read_bytes(), b"1")
        self.assertEqual(result.stdout, b"2")

    def test_include_and_head_show_the_headers(self):
        server = self.server(Response(200, b"body", [("X-A", "b")]))
        head = b"HTTP/1.1 200 Reason\r\nContent-Length: 4\r\nX-A: b\r\n\r\n"
        self.assertEqual(self.run_program("-i", server.url()).stdout, head + b"body")
        self.assertEqual(self.run_program("-sI", server.url()).stdout, head)
        self.assertEqual(server.seen[-1].method, "HEAD")
        self.assertEqual(self.run_program("-I", "-X", "GET", server.url()).stdout, head)
        self.assertEqual(server.seen[-1].method, "GET")
        gone = self.server(Response(404, b"gone"))
        for flag in ("-i", "-I"):
            shown = self.run_program("-f", flag, gone.url(), status=22).stdout
            self.assertEqual(shown, b"HTTP/1.1 404 Reason\r\nContent-Length: 4\r\n\r\n")

    def test_write_out(self):
        server = self.server(Response(200, b"body", [("X-A", "b"), ("Content-Type", "a/b")]))
        result = self.run_program(
            "-w", r"|%{http_code} %{size_download} %{content_type} %header{x-a} %{num_retries} %%\n",
            server.url())
        self.assertEqual(result.stdout, b"body|200 4 a/b b 0 %\n")

    def test_secrets_do_not_show_in_verbose(self):
        server = self.server(Response(200, b"x"))
        shown = self.run_program("-v", "--oauth2-bearer", "t0k", server.url("/?s=3")).stderr
        self.assertIn(b"> GET / HTTP/1.1\n> Host: 127.0.0.1:", shown)
        self.assertIn(b"< HTTP/1.1 200 Reason\n", shown)
        self.assertNotIn(b"t0k", shown)
        self.assertNotIn(b"s=3", shown)
        server = self.server(Response(200, b"x", [
            ("Location", "/a?token=s3c"), ("Operation-Location", "https://me:s3c@h/o?page=s3c"),
            ("Link", "</b?after=s3c>; rel=next"), ("X-RateLimit-Remaining", "7")]))
        shown = self.run_program(
            "-v", "-H", "Cf-Access-Jwt-Assertion: s3c", "-H", "X-Pwd: s3c", "-e", "http://h/?a=s3c",
            "-H", "x-ms-copy-source: https://h/c?sig=s3c", server.url()).stderr
        self.assertIn(b"< Location: /a?token=REDACTED\n", shown)
        self.assertIn(b"< Link: </b?after=REDACTED>; rel=next\n", shown)
        self.assertIn(b"< X-RateLimit-Remaining: 7\n", shown)
        self.assertIn(b"> x-ms-copy-source: https://h/c?sig=REDACTED\n", shown)
        self.assertNotIn(b"s3c", shown)

    def test_verbose_shows_connections_requests_waits_and_decisions(self):
        server = self.server(503, Response(200, b"x", [("X-A", "b")]))
        lines = self.run_program("-v", *QUICK, server.url("/a?b")).stderr.decode().splitlines()
        place = re.escape(f"127.0.0.1:{server.port}")
        for number, expected in enumerate([
                rf"\* attempt 1: GET http://{place}/a",
                rf"\* connection to {place} from 127\.0\.0\.1:\d+: new, connected after [\d.]+ ms",
                "> GET /a HTTP/1.1", f"> Host: {place}"]):
            self.assertRegex(lines[number], f"^{expected}$")
        text = "\n".join(lines)
        self.assertRegex(text, r"\n< HTTP/1.1 503 Reason\n(< .*\n)+\* attempt 1: 503 after [\d.]+ ms: "
                               r"transient \(status 503\), .*; retry in [\d.]+ m?s\n\* attempt 2: GET ")
        self.assertRegex(text, r"\n< X-A: b\n< \n\* attempt 2: 200 after .*success.*\n"
                               r"\* done: succeeded after 2 attempts in [\d.]+ m?s: 503, 200$")

    def test_verbose_shows_tls_and_whether_the_connection_was_used_before(self):
        process = self.start("serve", "--tls", "--outcomes", "503,200")
        url = process.stdout.readline().decode().strip()
        shown = self.run_program("-v", "-k", *QUICK, url).stderr.decode()
        self.assertRegex(shown, r"\n\* TLS: TLSv1.3 / TLS_[\w/ -]+, set up after [\d.]+ ms, certificate of "
                                r"CN = localhost is not valid \(OpenSSL's error \d+\)\n> GET / HTTP/1.1\n")
        self.assertRegex(shown, r"\* attempt 2: .*\n\* connection to .*: used before\n> GET / ")
        self.assertEqual(shown.count("* TLS: "), 1)

    def test_verbose_shows_no_request_that_was_not_sent(self):
        shown = self.run_program("-v", "--retry", "0", "http://127.0.0.1:1/", status=7).stderr
        self.assertIn(b"\n* GET http://127.0.0.1:1/: Failed to connect", shown)
        self.assertNotIn(b"> GET", shown)


class ExitStatus(ProgramTest):
    def test_a_response_of_400_or_more_is_22_and_is_printed(self):
        server = self.server(Response(404, b"no"))
        result = self.run_program(server.url(), status=22)
        self.assertEqual(result.stdout, b"no")
        self.assertRegex(result.stderr.decode(),
                         rf"^httpretry: \(22\) GET {server.url()}: failed after 1 attempt in [\d.]+ m?s: "
                         r"404 \(not_retryable\)\n$")
        self.assertEqual(self.run_program("-f", server.url(), status=22).stdout, b"")
        self.assertEqual(self.run_program("--fail-with-body", server.url(), status=22).stdout,
                         b"no")
        result = self.run_program("--no-fail", server.url())
        self.assertEqual((result.stdout, result.stderr), (b"no", b""))

    def test_giving_up_is_said_in_one_line(self):
        server = self.server(Response(503, b"busy"))
        result = self.run_program(*QUICK, server.url(), status=22)
        self.assertEqual(result.stdout, b"busy")
        self.assertRegex(
            result.stderr.decode(),
            r"^httpretry: \(22\) GET \S+: gave up after 5 attempts in [\d.]+ m?s: "
            r"503 each time \(attempts_exhausted\)\n$")
        self.assertEqual(len(server.seen), 5)
        server = self.server(500, 503, 404)
        result = self.run_program(*QUICK, server.url(), status=22)
        self.assertRegex(result.stderr.decode(), r": 500, 503, 404 \(not_retryable\)\n$")

    def test_each_failure_is_one_line_with_program_and_url(self):
        server = self.server(500, 404)
        quick, secret = server.url("/a?key=s3cr3t").replace("//", "//me:s3cr3t@"), b"s3cr3t"
        begin = rf"^httpretry: \(22\) GET {server.url('/a')}\?…: "
        ran = self.run_program(*QUICK, quick, status=22)
        self.assertRegex(ran.stderr.decode(), begin + r"failed after 2 attempts in [\d.]+ m?s: "
                                                      r"500, 404 \(not_retryable\)\n$")
        self.assertNotIn(secret, ran.stderr)
        server = self.server(Response(302, headers=[("Location", "/b")]), 404)
        ran = self.run_program("-L", server.url("/a"), status=22)
        self.assertRegex(ran.stderr.decode(), r"^httpretry: \(22\) GET \S+/a: failed after 1 attempt and "
                                              r"1 redirect in [\d.]+ m?s: 302, 404 \(not_retryable\)\n$")
        # The cause is said once, also if that is all there is to say.
        ran = self.run_program("-o", "/dev/full", self.server(Response(200, b"x")).url(), status=23)
        self.assertRegex(ran.stderr.decode(), r"^httpretry: \(23\) GET \S+: .*No space left on device\n$")
        holder, port = closed_port()
        self.addCleanup(holder.close)
        url = f"http://127.0.0.1:{port}/"
        ran = self.run_program(*QUICK, "--retry", 1, url, url, status=7)
        lines = ran.stderr.decode().splitlines()
        self.assertEqual(len(lines), 2, lines)
        for number, line in enumerate(lines, 1):
            self.assertRegex(line, rf"^httpretry: \[{number}\] \(7\) GET {url}: Failed to connect .*; gave up "
                                   r"after 2 attempts in [\d.]+ m?s: connect each time \(attempts_exhausted\)$")

    def test_the_policy_judges_what_a_failure_is(self):
        rule = 'retry_on.error_codes=[{"json": "/error", "as": "permanent"}]'
        server = self.server(Response(200, b'{"error": "no"}'))
        ran = self.run_program("--set", rule, server.url(), status=22)
        self.assertEqual(ran.stdout, b'{"error": "no"}')
        self.run_program("--set", rule, "--no-fail", server.url())
        server = self.server(Response(200, b"[]"), 202)
        self.run_program("--set", rule, server.url())
        pending = 'retry_on.pending={"statuses": [202], "max": 2, "backoff": {"kind": "none"}}'
        for flags in ((), ("--no-fail",)):  # polling gave up
            self.run_program("--set", pending, *flags, server.url(), status=28)

    def test_several_urls_are_told_apart(self):
        server = self.server(503)
        ran = self.run_program("--retry", "0", server.url("/a"), server.url("/b"), status=22)
        ends = [("[1]", "/a"), ("[2]", "/b")]
        for (number, path), line in zip(ends, ran.stderr.decode().splitlines(), strict=True):
            begin = f"httpretry: {number} (22) GET {server.url(path)}: gave up after 1 attempt in "
            self.assertTrue(line.startswith(begin), line)

    def test_a_failure_says_what_would_help(self):
        server = self.server(500)
        ran = self.run_program("-d", "x", server.url(), status=22)
        self.assertIn("httpretry: not retried, because the server may have processed the request; "
                      "--idempotency-key or --retry-all-errors allows retries\n",
                      ran.stderr.decode())
        self.assertTrue(ran.stderr.endswith(b"(unsafe_to_repeat)\n"), ran.stderr)
        server = self.server(Response(503, b"", [("Retry-After", "600")]))
        for max_time in ([], ["-m", "0"]):
            said = self.run_program(*max_time, server.url(), status=22).stderr.decode()
            self.assertRegex(said, "the server asks for a wait of 10.0 min; --set server_delay.max=600s "
                                   r"--retry-max-time 66\d allows it\n")
        self.assertNotIn("asks for a wait", self.run_program("-m", "60", server.url(), status=22).stderr.decode())

    def test_what_is_advised_for_a_long_wait_leads_to_success(self):
        for more in ([], ["--preset", "full-jitter"], ["--set", "server_delay.max=2m"],
                     ["--retry-max-time", "1"]):
            busy = Response(503, b"", [("Retry-After", "2")])
            server = self.server(busy, 200)
            limits = more or ["--set", "server_delay.max=1s"]
            if "--preset" in more:
                limits = more + ["--set", "server_delay.max=1s"]
            if "server_delay.max=2m" in more:
                limits = more + ["--set", "max_elapsed_time=1s"]
            said = self.run_program(*limits, server.url(), status=22).stderr.decode()
            flags = re.search(r"a wait of 2.00 s;(.*) allows it\n", said)[1].split()
            server = self.server(busy, 200)
            self.run_program(*limits, *flags, server.url())
            self.assertEqual(len(server.seen), 2)

    def test_no_attempt_takes_no_time(self):
        server = self.server(200)
        urls = [server.url(f"/{i}") for i in range(50)]
        said = self.run_program("--trace", *urls).stderr.decode()
        times = re.findall(r"^\[\d+\] .*: attempt 1: 200 after (.*?):", said, re.MULTILINE)
        self.assertEqual(len(times), 50)
        self.assertEqual([time for time in times if re.match(r"0(\.0*)? ", time)], [])

    def test_a_repeated_post_is_told(self):
        for more, told in (([], True), (["--silent"], False), (["-H", "Idempotency-Key: 1"], False),
                           (["-X", "PUT"], False), (["--set", "idempotency_key=Key"], False)):
            server = self.server(500, 200)
            ran = self.run_program("-d", "x", "--preset", "openai", "--set", "backoff.initial=1ms",
                                   *more, server.url())
            self.assertEqual(len(server.seen), 2)
            self.assertEqual(b"the POST was sent again after attempt 1, which the server may have "
                             b"executed (the policy says repeat: always)" in ran.stderr, told, more)

    def test_a_repeated_post_that_was_not_executed_is_not_told(self):
        again = [("Retry-After", "0")]
        cut = Response(0, raw=b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 9\r\n\r\nbu")
        see_other = Response(303, b"", [("Location", "/result")])
        for responses in ((Response(429, b"", again), 200), (421, 200), (425, 200), (cut, 200),
                          (Response(503, b"", again), 200), (see_other, 500, 200)):
            server = self.server(*responses)
            ran = self.run_program("-L", "-d", "x", "--set", 'repeat="always"', "--set",
                                   "backoff.initial=1ms", "--set", "throttle_backoff=none", server.url())
            self.assertEqual(len(server.seen), len(responses))
            self.assertNotIn(b"sent again", ran.stderr, responses[0].__dict__
                             if isinstance(responses[0], Response) else responses[0])

    def test_the_status_of_a_failure_counts_though_its_body_breaks_off(self):
        cut = "Reason\r\nLocation: /there\r\nContent-Length: 99\r\n\r\nthe beginning"
        for status, flags, exit_status in ((404, [], 22), (404, ["-f"], 22), (401, [], 22),
                                           (404, ["--no-fail"], 18), (302, [], 18)):
            server = self.server(Response(0, raw=f"HTTP/1.1 {status} {cut}".encode()))
            ran = self.run_program(*flags, server.url(), status=exit_status)
            self.assertEqual(ran.stdout, b"" if "-f" in flags else b"the beginning")
            self.assertIn(b"part of the response body is missing\n", ran.stderr)
            self.assertEqual(len(server.seen), 1)
        server = self.server(Response(0, raw=f"HTTP/1.1 302 {cut}".encode()), Response(200, b"there"))
        self.assertEqual(self.run_program("-L", server.url()).stdout, b"there")

    def test_advice_is_given_only_where_it_helps(self):
        server = self.server(Response(503, b"", [("Retry-After", "30")]))
        result = self.run_program("-m", 5, server.url(), status=22)
        self.assertNotIn(b"--set", result.stderr)
        server = self.server(500)
        result = self.run_program("-d", "x", "--idempotency-key", "--set", 'repeat="never"',
                                  server.url(), status=22)
        self.assertNotIn(b"--idempotency-key", result.stderr)
        self.assertIn(b"(unsafe_to_repeat)", result.stderr)

    def test_a_good_status_that_is_a_failure_is_not_passed_over_in_silence(self):
        (self.folder / "p.json").write_text(json.dumps({"version": 1, "default": {"retry_on": {
            "error_codes": [{"json": "/state", "in": ["FAILED"], "as": "permanent"}]}}}))
        server = self.server(Response(200, b'{"state": "FAILED"}'))
        result = self.run_program("--policy", "p.json", server.url(), status=22)
        self.assertEqual(result.stderr.decode().rsplit(": ", 1)[1], "200 (not_retryable)\n")

    def test_help_is_cut_off_in_silence(self):
        done = subprocess.run(f"{shlex.quote(str(PROGRAM))} --help | head -1; exit ${{PIPESTATUS[0]}}",
                              shell=True, executable="/bin/bash", capture_output=True, check=False)
        self.assertEqual(done.stderr, b"")
        self.assertIn(done.returncode, (0, 128 + signal.SIGPIPE))

    def test_silence(self):
        server = self.server(404)
        self.assertEqual(self.run_program("-s", server.url(), status=22).stderr, b"")
        self.assertIn(b"failed", self.run_program("-sS", server.url(), status=22).stderr)

    def test_transport_failures_have_curls_numbers(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        result = self.run_program("--retry", 0, f"http://127.0.0.1:{port}/", status=7)
        self.assertRegex(result.stderr.decode(), r"^httpretry: \(7\) ")
        self.assertRegex(result.stderr.decode(),
                         r"gave up after 1 attempt in [\d.]+ m?s: connect \(attempts_exhausted\)\n$")
        self.run_program("--retry", 0, "http://name.invalid/", status=6)
        self.run_program("--retry", 0, self.server(Response(0, reset=True)).url(), status=52)
        redirecting = self.server(Response(302, headers=[("Location", "/again")]))
        self.run_program("-L", "--max-redirs", 2, redirecting.url(), status=47)
        self.assertEqual(len(redirecting.seen), 3)

    def test_max_time_is_28(self):
        import threading
        never = threading.Event()
        self.addCleanup(never.set)
        server = self.server(Response(200, hold=never))
        for limit in ("0.2", "200ms"):
            self.run_program("-m", limit, server.url(), status=28)

    def test_signals_end_a_wait_at_once(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            server = self.server(Response(503, b"", [("Retry-After", "50")]))
            process = self.start("--report", "report.json", "--trace", "-w", "%{exitcode}",
                                 server.url())
            for line in process.stderr:
                if b"retry in" in line:
                    break
            process.send_signal(number)
            said, rest = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, said), (status, b"42"))
            self.assertIn(b"done: was canceled after 1 attempt in ", rest)
            self.assertEqual(self.report()["stop_reason"], "canceled")

    def test_redirects_are_followed_only_when_asked(self):
        server = self.server(Response(302, b"go", [("Location", "/b")]), Response(200, b"there"))
        self.assertEqual(self.run_program(server.url("/a")).stdout, b"go")
        server = self.server(Response(302, b"go", [("Location", "/b")]), Response(200, b"there"))
        self.assertEqual(self.run_program("-sSL", server.url("/a")).stdout, b"there")


class Until(ProgramTest):
    SOON = ("--set", 'retry_on.pending={"statuses": [202], "backoff": {"kind": "none"}}')

    def test_it_asks_until_the_status_comes(self):
        server = self.server(202, 404, 202, 202, 202, Response(200, b"done"))
        self.assertEqual(self.run_program(*self.SOON, "--until", "status=200",
                                          server.url()).stdout, b"done")
        self.assertEqual(len(server.seen), 6)

    def test_it_asks_until_the_value_comes(self):
        server = self.server(Response(200, b'{"state": "RUNNING"}'), Response(200, b"no json"),
                             Response(200, b'{"state": "DONE"}'))
        self.run_program(*self.SOON, "--until", "json:/state=DONE", server.url())
        self.assertEqual(len(server.seen), 3)

    def test_what_never_came_is_a_failure(self):
        server = self.server(Response(200, b'{"state": "RUNNING"}'))
        pending = 'retry_on.pending={"statuses": [202], "max": 2, "backoff": {"kind": "none"}}'
        ran = self.run_program("--set", pending, "--until", "json:/state=DONE", server.url(),
                               status=28)
        self.assertIn("(attempts_exhausted)", ran.stderr.decode())
        self.run_program("--set", pending, "--no-fail", "--until", "status=201", server.url(),
                         status=28)

    def test_conditions_with_several_statuses_and_with_a_value_that_must_go_away(self):
        for condition in ("status=2xx", "status=200,304", "status!=503"):
            server = self.server(503, Response(200, b"done"))
            ran = self.run_program(*self.SOON, "--until", condition, server.url())
            self.assertEqual((ran.stdout, len(server.seen)), (b"done", 2))
        server = self.server(Response(200, b'{"state": "RUNNING"}'), Response(200, b"{}"),
                             Response(200, b'{"state": "FAILED"}'))
        self.run_program(*self.SOON, "--until", "json:/state!=RUNNING", server.url())
        self.assertEqual(len(server.seen), 3)  # {} has no state
        for bad in ("status=2x", "status=99", "status=200,", "status>200", "json:/n<=1", "=1", "n"):
            ran = self.run_program("--until", bad, server.url(), status=2)
            self.assertIn(f'option --until: "{bad}" is not a condition like status=200',
                          ran.stderr.decode())

    def test_a_condition_that_ends_the_polls_as_a_failure(self):
        server = self.server(Response(200, b'{"state": "RUNNING"}'),
                             Response(200, b'{"state": "FAILED"}'))
        ran = self.run_program(*self.SOON, "--until", "json:/state=DONE", "--until-fail",
                               "json:/state=FAILED", server.url(), status=22)
        self.assertEqual((ran.stdout, len(server.seen)), (b'{"state": "FAILED"}', 2))
        self.assertRegex(ran.stderr.decode(),
                         r"^httpretry: \(22\) GET \S+: failed after 2 attempts in [\d.]+ m?s: 200 each time \(not_retryable\)\n$")
        self.assertIn("--until-fail needs --until", self.run_program(
            "--until-fail", "status=500", server.url(), status=2).stderr.decode())

    def test_retry_delay_is_how_often_it_asks(self):
        server = self.server(202, 202, 202, Response(200, b"done"))
        self.run_program("--retry-delay", "0.01", "--report", "report.json", "--until",
                         "status=200", server.url())
        self.assertEqual([each["wait_ms"] for each in self.report()["attempts"]],
                         [10, 10, 10, None])

    def test_an_error_stays_an_error(self):
        server = self.server(Response(200, b"{}"), 401)
        self.run_program(*self.SOON, "--until", "json:/n=1", server.url(), status=22)


if __name__ == "__main__":
    main()
