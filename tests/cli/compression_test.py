"""--compress and --compressed, with each coding. The program itself makes what the servers send."""
import gzip
import json

from program import ProgramTest, Response, main

CODINGS = ("gzip", "br", "zstd")
TEXT = b"some text, " * 1000


class Compression(ProgramTest):
    def encoded(self, coding, text=TEXT):
        """The body of a request, as a server receives it."""
        (self.folder / "data").write_bytes(text)
        server = self.server(200)
        self.run_program("--compress", coding, "--data-binary", "@data", server.url())
        self.assertEqual(server.seen[0].headers["content-encoding"], coding)
        self.assertLess(len(server.seen[0].body), len(text))
        return server.seen[0].body

    def test_what_the_program_sends_it_can_read(self):
        self.assertEqual(gzip.decompress(self.encoded("gzip")), TEXT)
        for coding in CODINGS:
            server = self.server(Response(200, self.encoded(coding), [("Content-Encoding", coding)]))
            self.assertEqual(self.run_program("--compressed", server.url()).stdout, TEXT)
            self.assertEqual(server.seen[0].headers["accept-encoding"], "gzip, br, zstd")

    def test_a_body_that_ends_early(self):
        for coding in CODINGS:
            server = self.server(Response(200, self.encoded(coding)[:-1], [("Content-Encoding", coding)]))
            result = self.run_program("--retry", 0, "--compressed", "-o", "out", server.url(), status=18)
            self.assertIn(f"the {coding} body of the response ends early", result.stderr.decode())

    def test_a_failure_that_is_not_what_it_says(self):
        page = b"<html><body>Service Unavailable</body></html>"
        for coding in CODINGS:
            server = self.server(Response(503, page, [("Content-Encoding", coding)]))
            result = self.run_program("--retry", 0, "--no-fail", "--compressed", server.url())
            self.assertEqual(result.stdout, page)

    def test_a_small_body_that_is_large(self):
        for coding in CODINGS:
            bomb = self.encoded(coding, b"\0" * 20_000_000)
            self.assertLess(len(bomb), 100_000)
            server = self.server(Response(200, bomb, [("Content-Encoding", coding)]))
            self.run_program("--retry", 0, "--compressed", "--max-filesize", "1M", "-o", "out", server.url(),
                             status=63)
            self.assertFalse((self.folder / "out").exists())

    def test_a_server_that_refuses_the_coding(self):
        server = self.server(415, 200)
        result = self.run_program("--compress", "zstd", "-d", "text", "--trace", "--report", "report.json",
                                  server.url())
        self.assertEqual([seen.headers.get("content-encoding") for seen in server.seen], ["zstd", None])
        self.assertEqual(server.seen[1].body, b"text")
        self.assertIn("sent: answered, 2 sends, budget 500", result.stderr.decode())
        attempts = self.report()["attempts"]
        self.assertEqual([(each["status"], each["wire_sends"]) for each in attempts], [(200, 2)])

    def test_uploads_and_forms(self):
        (self.folder / "data").write_bytes(TEXT)
        server = self.server(200)
        self.run_program("--compress", "gzip", "-T", "data", server.url())
        self.run_program("--compress", "gzip", "-T", "-", server.url(), stdin=TEXT)
        self.run_program("--compress", "gzip", "-F", "file=@data", server.url())
        self.assertEqual(len(server.seen), 3)
        for seen in server.seen:
            self.assertIn(TEXT, gzip.decompress(seen.body))

    def test_a_coding_that_does_not_exist(self):
        self.assertIn("--compress", self.usage_error("--compress", "lzma", "http://127.0.0.1/"))

    def test_lists_of_requests(self):
        server = self.server(Response(200, self.encoded("br"), [("Content-Encoding", "br")]))
        (self.folder / "urls").write_text(server.url() + "\n")
        self.run_program("batch", "--compressed", "urls")
        result = json.loads((self.folder / "urls.results.jsonl").read_text())
        self.assertEqual(result["body"].encode(), TEXT)


if __name__ == "__main__":
    main()
