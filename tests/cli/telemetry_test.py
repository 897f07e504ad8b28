"""--metrics, --har, --otlp and --log-json: their numbers are those of the servers, and they have no secrets."""

import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import threading

from program import LIMIT, ProgramTest, QUICK, Response, closed_port, main

SECRET = "s3cr3t"
PATIENT = {"OTEL_EXPORTER_OTLP_TIMEOUT": "60000"}  # for a collector on a busy machine
HEX = re.compile(r"[0-9a-f]+")


class Telemetry(ProgramTest):
    def everything(self, *args, outcomes, urls=1, status=0):
        server = self.server(*outcomes)
        collector = self.server(Response(200, b"{}", [("Content-Type", "application/json")]))
        targets = [server.url(f"/a{i}?q={SECRET}") for i in range(urls)]
        done = self.run_program(
            "--metrics", "m.prom", "--har", "a.har", f"--otlp={collector.url('/x')}", "--log-json",
            "--set", "backoff.initial=1ms", "-H", f"Authorization: {SECRET}", "-b", f"a={SECRET}",
            *args, *targets, status=status, env=PATIENT)
        self.assertNotIn(SECRET.encode(), done.stderr)
        lines = [json.loads(line) for line in done.stderr.decode().splitlines()
                 if line.startswith("{")]
        metrics = (self.folder / "m.prom").read_text()
        archive = (self.folder / "a.har").read_text()
        self.assertNotIn(SECRET, metrics + archive)
        for seen in collector.seen:
            self.assertNotIn(SECRET, str(seen.headers) + seen.body.decode())
        return server, collector, lines, metrics, json.loads(archive)

    def check_span(self, span):
        self.assertEqual(len(span["traceId"]), 32)
        self.assertEqual(len(span["spanId"]), 16)
        for name in ("traceId", "spanId"):
            self.assertTrue(HEX.fullmatch(span[name]), span)
        self.assertIn(span["kind"], (1, 3))
        for name in ("startTimeUnixNano", "endTimeUnixNano"):
            self.assertRegex(span[name], r"^\d{19}$")
        for attribute in span["attributes"]:
            (kind, value), = attribute["value"].items()
            wanted = {"stringValue": str, "intValue": str, "doubleValue": (int, float),
                      "boolValue": bool}[kind]
            self.assertIsInstance(value, wanted)

    def check_members(self, what, of, needed, optional=()):
        """`needed`: {name: type} of HAR 1.2. Others begin with an underscore, or are `optional`."""
        for name, kind in needed.items():
            self.assertIsInstance(of.get(name), kind, f"{what}.{name}")
        for name in of.keys() - needed.keys() - set(optional):
            self.assertTrue(name.startswith("_"), f"{what} has {name}")

    def check_archive(self, archive):
        """As strictly as HAR 1.2 is written."""
        number, text = (int, float), str
        log = archive["log"]
        self.check_members("log", log, {"version": text, "creator": dict, "entries": list})
        self.assertEqual(log["version"], "1.2")
        self.check_members("creator", log["creator"], {"name": text, "version": text})
        for entry in log["entries"]:
            self.check_members("entry", entry, {
                "startedDateTime": text, "time": number, "request": dict, "response": dict,
                "cache": dict, "timings": dict}, ("serverIPAddress", "connection", "comment"))
            self.assertRegex(entry["startedDateTime"],
                             r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
            ipaddress.ip_address(entry["serverIPAddress"])
            request, response = entry["request"], entry["response"]
            both = {"httpVersion": text, "cookies": list, "headers": list, "headersSize": int,
                    "bodySize": int}
            self.check_members("request", request,
                               {"method": text, "url": text, "queryString": list, **both})
            self.check_members("response", response,
                               {"status": int, "statusText": text, "content": dict,
                                "redirectURL": text, **both})
            self.check_members("content", response["content"], {"size": int, "mimeType": text})
            for pair in request["headers"] + response["headers"] + request["queryString"]:
                self.check_members("pair", pair, {"name": text, "value": text})
            phases = entry["timings"]
            self.check_members("timings", phases, {"send": number, "wait": number, "receive": number},
                               ("blocked", "dns", "connect", "ssl", "comment"))
            for name in ("send", "wait", "receive"):
                self.assertGreaterEqual(phases[name], 0)
            # `ssl` is part of `connect`; -1 is a phase that did not happen.
            spent = sum(value for name, value in phases.items() if value > 0 and name != "ssl")
            self.assertAlmostEqual(entry["time"], spent, delta=0.01)

    def test_they_agree_with_the_server(self):
        server, collector, lines, metrics, archive = self.everything(outcomes=(503, 200))
        self.assertEqual(len(server.seen), 2)
        self.assertEqual([line["event"] for line in lines], ["send", "send", "call"])
        self.assertEqual([line["status"] for line in lines], [503, 200, 200])
        self.assertEqual(lines[0]["decision"], "retry")
        entries = archive["log"]["entries"]
        self.assertEqual([entry["response"]["status"] for entry in entries], [503, 200])
        self.check_archive(archive)
        self.assertRegex(entries[0]["comment"], r"attempt 1: transient \(status 503\), sent: answered; "
                                                r"retry in .+ ms$")
        self.assertRegex(entries[1]["comment"], r"attempt 2: success \(.*\), sent: answered; no retry$")
        self.assertIn("httpretry_sends_total 2\n", metrics)
        self.assertEqual([seen.target for seen in collector.seen], ["/x/v1/traces"])
        sent = json.loads(collector.seen[0].body)
        spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"]
        self.assertEqual([span["kind"] for span in spans], [3, 3, 1])
        for span in spans:
            self.check_span(span)
        self.assertEqual({span["traceId"] for span in spans}, {lines[0]["trace_id"]})
        for span, seen in zip(spans, server.seen):
            self.assertEqual(span["parentSpanId"], spans[2]["spanId"])
            self.assertEqual(seen.headers["traceparent"].split("-")[2], span["spanId"])

    def test_in_parallel(self):
        server, collector, lines, metrics, archive = self.everything("-Z", outcomes=(200,), urls=20)
        self.assertEqual(len(server.seen), 20)
        self.assertEqual(sum(line["event"] == "call" for line in lines), 20)
        self.assertEqual(len(archive["log"]["entries"]), 20)
        self.check_archive(archive)
        self.assertIn("httpretry_sends_total 20\n", metrics)
        spans = [span for seen in collector.seen
                 for span in json.loads(seen.body)["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        self.assertEqual(sorted(span["kind"] for span in spans), [1] * 20 + [3] * 20)
        self.assertEqual(len({span["traceId"] for span in spans}), 20)

    def test_promtool_accepts_the_metrics(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed: apt-get install prometheus")
        _, _, _, metrics, _ = self.everything(outcomes=(503, 429, 200))
        done = subprocess.run(["promtool", "check", "metrics"], input=metrics.encode(),
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))

    def test_an_archive_of_what_went_wrong(self):
        """Redirects, a cut body, no connection: each send has a whole entry."""
        there = self.server(200)
        server = self.server(Response(302, b"", [("Location", there.url(f"/b?token={SECRET}"))]))
        holder, closed = closed_port()
        self.addCleanup(holder.close)
        self.run_program("-L", "--har", "a.har", "--retry", 0, server.url(),
                         f"http://127.0.0.1:{closed}/", status=7)
        text = (self.folder / "a.har").read_text()
        self.assertNotIn(SECRET, text)
        entries = json.loads(text)["log"]["entries"]
        self.assertEqual([entry["response"]["status"] for entry in entries], [302, 200, 0])
        self.assertEqual(entries[0]["response"]["redirectURL"], there.url("/b?token=REDACTED"))
        self.assertEqual(entries[2]["response"]["_error"], "connect")
        for entry in entries:
            entry.setdefault("serverIPAddress", "127.0.0.1")  # none where nobody was reached
        self.check_archive({"log": {**json.loads(text)["log"], "entries": entries}})

    def test_the_metrics_are_replaced_as_a_whole(self):
        """A collector of text files reads the old numbers or the new ones, never a part."""
        file, before = self.folder / "m.prom", self.folder / "before"
        file.write_text("old 1\n")
        os.link(file, before)
        self.run_program("--metrics", "m.prom", self.server(200).url())
        self.assertIn("httpretry_sends_total 1\n", file.read_text())
        self.assertEqual(before.read_text(), "old 1\n")
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"m.prom", "before"})

    def test_metrics_that_cannot_be_written(self):
        for target, why in (("/dev/full", "No space left on device"),
                            ("missing/m.prom", "No such file or directory")):
            for flag in ("--metrics", "--har"):
                with self.subTest(target=target, flag=flag):
                    done = self.run_program(flag, target, self.server(200).url(), status=23)
                    self.assertRegex(done.stderr.decode(), f"{re.escape(target)}.*: {why}")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_silent_is_silent_about_files_that_cannot_be_written(self):
        for flag in ("--metrics", "--har", "--report", "-D", "-c", "-o"):
            with self.subTest(flag=flag):
                done = self.run_program("-s", flag, "/dev/full", self.server(Response(200, b"x")).url(), status=23)
                self.assertEqual(done.stderr, b"")

    def test_metrics_on_standard_output(self):
        done = self.run_program("--metrics", "-", "-o", "body", self.server(200).url())
        self.assertIn(b"\nhttpretry_sends_total 1\n", done.stdout)

    def test_secrets_of_every_kind(self):
        (self.folder / "netrc").write_text(f"default login me password {SECRET}")
        (self.folder / "headers").write_text(f"X-Auth-Token: {SECRET}\n")
        for flags in (("-u", f"me:{SECRET}"), ("--oauth2-bearer", SECRET), ("-b", f"a={SECRET}"),
                      ("-H", f"X-Api-Key: {SECRET}"), ("-H", f"Authorization: {SECRET}"),
                      ("-H", f"Cookie: {SECRET}"), ("-H", "@headers"), ("-d", f"password={SECRET}"),
                      ("-F", f"password={SECRET}"), ("-e", f"http://h/?token={SECRET}"),
                      ("--netrc-file", "netrc"), ("--url-query", f"a={SECRET}"),
                      ("-H", f"x-ms-copy-source: https://h/?sig={SECRET}"), ("--digest", "-u", f"me:{SECRET}")):
            for outcomes in ((503, 200),
                             (Response(302, b"", [("Location", f"/b?k={SECRET}")]), 200),
                             (Response(401, SECRET.encode(),
                                       [("WWW-Authenticate", 'Digest realm="r", nonce="n"'),
                                        ("Set-Cookie", f"a={SECRET}")]), 200),
                             (Response(200, b"", reset=True), 200)):
                with self.subTest(flags=flags, outcomes=outcomes):
                    # `everything` looks for it, in the query of the URL, too.
                    self.everything("-L", *flags, outcomes=outcomes, status=(0, 22, 52, 56))

    def test_user_and_password_of_a_url(self):
        server = self.server(200)
        url = server.url("/a").replace("//", f"//me:{SECRET}@")
        done = self.run_program("--log-json", "--har", "a.har", "--metrics", "m.prom", url)
        shown = done.stderr.decode() + (self.folder / "a.har").read_text()
        self.assertNotIn(SECRET, shown + (self.folder / "m.prom").read_text())
        self.assertNotIn("Basic ", shown)

    def test_what_the_environment_says(self):
        server, collector = self.server(200), self.server(200)
        asked = PATIENT | {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SERVICE_NAME": "shop",
                 "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url("/x"),
                 "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={SECRET}"}
        done = self.run_program(server.url(), env=asked)
        self.assertEqual([seen.target for seen in collector.seen], ["/x/v1/traces"])
        self.assertEqual(collector.seen[0].headers["api-key"], SECRET)
        self.assertIn(b'{"key":"service.name","value":{"stringValue":"shop"}}',
                      collector.seen[0].body)
        self.assertEqual(done.stderr, b"")
        done = self.run_program(server.url(), env=asked | {
            "OTEL_TRACES_SAMPLER": "always_off", "OTEL_METRICS_EXPORTER": "otlp"})
        self.assertEqual(len(collector.seen), 1)
        self.assertEqual(done.stderr.decode(),
                         "httpretry: OTEL_METRICS_EXPORTER: no effect here\n")
        done = self.run_program(server.url(), env=asked | {"OTEL_TRACES_SAMPLER": "odd"})
        self.assertEqual(done.stderr.decode().count("OTEL_TRACES_SAMPLER"), 1)

    def test_a_collector_that_refuses(self):
        server, collector = self.server(200), self.server(400)
        done = self.run_program(f"--otlp={collector.url()}", "--metrics", "m.prom", server.url(),
                                env=PATIENT)
        self.assertEqual(done.stderr.decode(), "httpretry: OTLP traces were dropped: POST "
                                               f"{collector.url('/v1/traces')}: the collector responded with 400\n")
        self.assertIn('httpretry_telemetry_dropped_total{signal="traces",why="refused"} 2\n',
                      (self.folder / "m.prom").read_text())

    def test_a_dead_collector_is_named_with_the_cause(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        server = self.server(200)
        said = self.run_program(f"--otlp=http://me:{SECRET}@127.0.0.1:{port}/x?key={SECRET}", server.url())
        self.assertRegex(said.stderr.decode(),
                         r"^httpretry: OTLP: 2 spans and 0 data points were dropped, because no time was left: "
                         rf"POST http://127.0.0.1:{port}/x/v1/traces: Failed to connect to .*\n$")
        never = threading.Event()
        self.addCleanup(never.set)
        collector = self.server(Response(200, hold=never))
        said = self.run_program(f"--otlp={collector.url()}", server.url())
        self.assertRegex(said.stderr.decode(), f"no time was left: POST {collector.url('/v1/traces')}: "
                                               "the collector has not responded yet\n$")

    def test_a_signal_ends_the_wait_for_the_collector(self):
        never = threading.Event()
        self.addCleanup(never.set)
        collector, server = self.server(Response(200, hold=never)), self.server(200)
        process = self.start(f"--otlp={collector.url()}", server.url(),
                             env=PATIENT)
        collector.arrived.get(timeout=LIMIT)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 143, said)
        self.assertIn(b"the collector has not responded yet", said)

    def test_the_log_is_json_whatever_happens(self):
        (self.folder / "bad.json").write_text("{")
        holder, port = closed_port()
        self.addCleanup(holder.close)
        server = self.server(500)
        dead = f"http://127.0.0.1:{port}/"
        for args, status, about in (
                ((server.url(),), 22, "(22) GET http"), (("-d", "x", server.url()), 22, "not retried, because"),
                ((dead,), 7, "Failed to connect"), (("-Z", server.url(), dead), (7, 22), "2 failed"),
                (("--trace", f"--otlp={dead}", server.url()), 22, "OTLP: "),
                (("-w", "%{stderr}%{http_code} é\\n%{odd}", server.url()), 22, "500 é\n"),
                (("--policy", "bad.json", server.url()), 3, "bad.json:1:2"), (("-o", "none/x", server.url()), 23, "none/x"),
                (("ftp://h/",), 2, "must be http or https"), (("--bad",), 2, "--bad")):
            with self.subTest(args=args):
                ran = self.run_program("--log-json", *QUICK, "--retry", 1, *args, status=status)
                lines = [json.loads(line) for line in ran.stderr.splitlines()]
                self.assertTrue(all("time" in line for line in lines))
                messages = [line["message"] for line in lines if line["event"] == "message"]
                self.assertIn(about, "\n".join(messages))

    def test_nothing_is_sent_unasked(self):
        server, collector = self.server(200), self.server(200)
        self.run_program(server.url(), env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url()})
        self.assertEqual(collector.seen, [])

    def test_a_variable_with_a_bad_url_is_named_and_a_long_timeout_is_no_mistake(self):
        server, collector = self.server(200), self.server(200)
        ran = self.run_program(f"--otlp={collector.url()}", server.url(), env={
            "OTEL_EXPORTER_OTLP_TIMEOUT": "120000", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://me:{SECRET}@"})
        self.assertEqual(ran.stderr.decode(), "httpretry: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not a usable URL such as "
                                              "http://localhost:4318; it is ignored\n")
        self.assertEqual(len(collector.seen), 1)

    def test_an_endpoint_that_is_none(self):
        self.assertIn("option --otlp: the OTLP endpoint is not a usable URL",
                      self.usage_error("--otlp=nowhere", "http://h/"))


if __name__ == "__main__":
    main()
