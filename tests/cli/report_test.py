"""The report agrees with what the server received."""

import json
import signal

from program import LIMIT, Response, ProgramTest, QUICK, closed_port, main

CALL = ["url", "method", "policy", "outcome", "status", "error", "stop_reason", "retry_at",
        "elapsed_ms", "circuit", "limits", "bytes", "http_version", "hedges", "hedge_refused",
        "attempts"]
ATTEMPT = ["number", "start_ms", "duration_ms", "status", "error", "class", "rule", "sent",
           "wire_sends", "queued_ms", "queued_by", "server_delay_ms", "server_delay_source", "backoff_ms",
           "wait_ms", "budget_left", "decision", "hedge", "outcome"]


class Report(ProgramTest):
    def test_every_key_is_there(self):
        server = self.server(Response(503, b"", [("Retry-After", "0")]), Response(200, b"hello"))
        self.run_program("--report", "report.json", server.url("/x?a=b"))
        report = self.report()
        self.assertEqual(list(report), CALL)
        self.assertEqual(report["url"], server.url("/x?a=b"))
        self.assertEqual((report["outcome"], report["status"], report["stop_reason"]),
                         ("response", 200, "success"))
        self.assertEqual((report["bytes"], report["http_version"]), (5, "1.1"))
        first, last = report["attempts"]
        self.assertEqual(list(first), ATTEMPT)
        self.assertEqual((first["number"], first["status"], first["decision"]), (1, 503, "retry"))
        self.assertEqual((first["server_delay_ms"], first["server_delay_source"]),
                         (0, "retry-after"))
        self.assertEqual((first["class"], first["sent"], first["wire_sends"]),
                         ("throttle", "answered", 1))
        self.assertIsNotNone(first["wait_ms"])
        self.assertEqual((last["decision"], last["wait_ms"], last["backoff_ms"]),
                         ("stop", None, None))
        self.assertEqual((first["budget_left"], last["budget_left"]), (495, 500))

    def test_attempts_equal_what_the_server_logged(self):
        server = self.server(503, 500, 429, 200)
        self.run_program(*QUICK, "--report", "report.json", server.url())
        report = self.report()
        self.assertEqual(len(report["attempts"]), len(server.seen))
        self.assertEqual([a["status"] for a in report["attempts"]], [503, 500, 429, 200])

    def test_an_error_has_its_kind_and_number(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        self.run_program("--retry", 0, "--report", "report.json", f"http://127.0.0.1:{port}/",
                         status=7)
        report = self.report()
        self.assertEqual((report["outcome"], report["status"]), ("error", None))
        for error in (report["error"], report["attempts"][0]["error"]):
            self.assertEqual(list(error), ["kind", "curl_code", "message", "maybe_sent"])
            self.assertEqual((error["kind"], error["curl_code"], error["maybe_sent"]),
                             ("connect", 7, False))
        self.assertEqual(report["attempts"][0]["sent"], "never")

    def test_retry_at_says_when_to_come_back(self):
        server = self.server(Response(503, b"", [("Retry-After", "3600")]))
        result = self.run_program("--report", "report.json", server.url(), status=22)
        report = self.report()
        self.assertEqual(report["stop_reason"], "server_delay_too_long")
        self.assertRegex(report["retry_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertRegex(result.stderr.decode(), r"come back at \d{4}-.*\(server_delay_too_long\)")

    def test_several_urls_make_an_array(self):
        server = self.server(Response(200, b"x"))
        self.run_program("--report", "report.json", server.url("/1"), server.url("/2"))
        self.assertEqual([each["url"] for each in self.report()],
                         [server.url("/1"), server.url("/2")])

    def test_on_standard_output_the_response_needs_a_file(self):
        server = self.server(Response(200, b"x"))
        result = self.run_program("--report", "-", "-o", "out", server.url())
        self.assertEqual(json.loads(result.stdout)["bytes"], 1)
        message = self.usage_error("--report", "-", server.url())
        self.assertIn("needs -o FILE", message)

    def test_a_url_is_reported_without_its_password(self):
        server = self.server(200)
        self.run_program("--report", "report.json", f"http://me:secret@127.0.0.1:{server.port}/")
        self.assertNotIn("secret", (self.folder / "report.json").read_text())

    def test_trace_has_a_line_for_each_step(self):
        server = self.server(503, 200)
        lines = self.run_program(*QUICK, "--trace", server.url("/?q=1")).stderr.decode().splitlines()
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[0], f"attempt 1: GET {server.url('/')}")
        self.assertRegex(lines[1], r"^attempt 1: 503 after .* transient \(status 503\), "
                                   r"sent: answered, budget 495; retry in ")
        self.assertRegex(lines[4], r"^done: succeeded after 2 attempts in [\d.]+ m?s: 503, 200$")
        server = self.server(Response(302, b"", [("Location", "/b")]), 200)
        said = self.run_program("-L", "--trace", server.url("/a")).stderr.decode()
        self.assertIn(f"\nredirect: GET {server.url('/b')}\n", said)
        self.assertRegex(said, r"\ndone: succeeded after 1 attempt and 1 redirect in [\d.]+ m?s: 302, 200\n$")

    def test_the_end_of_a_trace_names_a_reason_once(self):
        server = self.server(Response(503, b"", [("Retry-After", "50")]))
        process = self.start("--trace", server.url())
        for line in iter(process.stderr.readline, b""):
            if line.startswith(b"attempt 1: 503"):
                process.send_signal(signal.SIGINT)
                break
        _, said = process.communicate(timeout=LIMIT)
        self.assertRegex(said.decode(), r"(?m)^done: was canceled after 1 attempt in [\d.]+ m?s: 503$")


if __name__ == "__main__":
    main()
