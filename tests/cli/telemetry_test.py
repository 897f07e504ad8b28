"""--metrics, --har, --otlp and --log-json: their numbers are those of the servers, and they have no secrets."""

import json
import re
import shutil
import subprocess

from program import ProgramTest, Response, main

SECRET = "s3cr3t"
HEX = re.compile(r"[0-9a-f]+")


class Telemetry(ProgramTest):
    def everything(self, *args, outcomes, urls=1):
        server = self.server(*outcomes)
        collector = self.server(Response(200, b"{}", [("Content-Type", "application/json")]))
        targets = [server.url(f"/a{i}?q={SECRET}") for i in range(urls)]
        done = self.run_program(
            "--metrics", "m.prom", "--har", "a.har", f"--otlp={collector.url('/x')}", "--log-json",
            "--set", "backoff.initial=1ms", "-H", f"Authorization: {SECRET}", "-b", f"a={SECRET}",
            *args, *targets)
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

    def test_they_agree_with_the_server(self):
        server, collector, lines, metrics, archive = self.everything(outcomes=(503, 200))
        self.assertEqual(len(server.seen), 2)
        self.assertEqual([line["event"] for line in lines], ["send", "send", "call"])
        self.assertEqual([line["status"] for line in lines], [503, 200, 200])
        self.assertEqual(lines[0]["decision"], "retry")
        entries = archive["log"]["entries"]
        self.assertEqual([entry["response"]["status"] for entry in entries], [503, 200])
        for entry in entries:
            phases = entry["timings"]
            spent = sum(value for name, value in phases.items() if value > 0 and name != "ssl")
            self.assertAlmostEqual(entry["time"], spent, delta=0.01)
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
        server, _, lines, metrics, archive = self.everything("-Z", outcomes=(200,), urls=20)
        self.assertEqual(len(server.seen), 20)
        self.assertEqual(sum(line["event"] == "call" for line in lines), 20)
        self.assertEqual(len(archive["log"]["entries"]), 20)
        self.assertIn("httpretry_sends_total 20\n", metrics)

    def test_promtool_accepts_the_metrics(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed: apt-get install prometheus")
        _, _, _, metrics, _ = self.everything(outcomes=(503, 429, 200))
        done = subprocess.run(["promtool", "check", "metrics"], input=metrics.encode(),
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))

    def test_nothing_is_sent_unasked(self):
        server, collector = self.server(200), self.server(200)
        self.run_program(server.url(), env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url()})
        self.assertEqual(collector.seen, [])

    def test_an_endpoint_that_is_none(self):
        self.assertIn("option --otlp: the OTLP endpoint is not a usable URL",
                      self.usage_error("--otlp=nowhere", "http://h/"))


if __name__ == "__main__":
    main()
