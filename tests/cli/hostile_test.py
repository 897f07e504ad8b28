"""The hostile servers of tests/hostile, as `httpretry serve` plays them."""

import pathlib
import socket

from program import LIMIT, ProgramTest, main

SCENARIOS = pathlib.Path(__file__).parent.parent / "hostile"

# The status and the error of each attempt. The errors are not retried.
EXPECTED = {
    "chunk_size_with_0x": [(200, "protocol")],
    "first_line_folded": [(None, "protocol")],
    "length_and_chunks": [(None, "protocol")],
    "list_of_lengths": [(None, "protocol")],
    "long_location": [(None, "too_large")],
    "part_that_nobody_asked_for": [(206, "protocol")],
    "status_line_in_small_letters": [(None, "protocol")],
    "status_line_in_trailers": [(500, None), (200, None)],
    "status_line_without_status": [(None, "protocol")],
    "two_lengths": [(None, "protocol")],
}

# What a client with HTTP/2 sends. 82, 84, 86: GET, "/", http.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("000000 04 00 00000000")
GET = bytes.fromhex("000003 01 05 00000001 828486")

HTTP2 = {"http2_empty_data", "http2_goaway_flood", "http2_reset_flood", "http2_no_end_stream"}


class Hostile(ProgramTest):
    def serve(self, name, *options):
        process = self.start("serve", "--log", "log", "--scenario", SCENARIOS / f"{name}.json",
                             *options)
        return process.stdout.readline().decode().strip()

    def send(self, url, *options):
        self.run_program("--preset", "curl", "--retry", 1, "--retry-delay", 0, "-o", "file",
                         "--report", "report.json", *options, url, status=tuple(range(100)))
        return [(attempt["status"], (attempt["error"] or {}).get("kind"))
                for attempt in self.report()["attempts"]]

    def test_no_bad_response_is_taken_for_a_good_one(self):
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                self.assertEqual(self.send(self.serve(name)), expected)
                file = self.folder / "file"
                self.assertEqual(file.exists(), expected[-1] == (200, None))
                file.unlink(missing_ok=True)

    def test_the_time_is_kept_while_a_small_body_decodes_to_a_huge_one(self):
        self.run_program("-m", 0.3, "--compressed", "-o", "file", self.serve("gzip_bomb"), status=28)
        self.assertEqual(list(self.folder.glob("file*")), [])

    def test_no_connection_over_http2_that_floods_or_breaks_gives_a_good_response(self):
        for name in HTTP2:
            with self.subTest(name):
                *attempts, last = self.send(self.serve(name, "--tls"), "-k", "--retry-all-errors")
                self.assertEqual([kind for _, kind in attempts], ["receive"])
                self.assertEqual(last, (200, None))
                self.assertEqual((self.folder / "file").read_text(), "good")
                (self.folder / "file").unlink()

    def test_the_time_is_kept_during_a_flood_without_tls(self):
        # nghttp2 1.70, with libcurl 8.23, ends the flood by itself: 16.
        self.run_program("-m", 0.01, "--http2-prior-knowledge", "-o", "file",
                         self.serve("http2_empty_data"), status=(28, 16))
        self.assertEqual(list(self.folder.glob("file*")), [])

    def test_a_server_that_floods_stops_at_once(self):
        process = self.start("serve", "--log", "log", "--scenario",
                             SCENARIOS / "http2_empty_data.json")
        port = int(process.stdout.readline().decode().strip().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), LIMIT) as client:
            client.sendall(PREFACE + SETTINGS + GET)
            client.recv(100_000, socket.MSG_WAITALL)
            process.terminate()
            self.assertEqual(process.wait(LIMIT), 0)

    def test_each_scenario_has_its_test(self):
        names = {path.stem for path in SCENARIOS.glob("*.json")}
        self.assertEqual(names, set(EXPECTED) | HTTP2 | {"gzip_bomb"})


main()
