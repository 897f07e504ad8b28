"""-N: a response is written while it is received. And what a terminal must not get."""

import os
import pty
import subprocess
import threading

from program import (LIMIT, PROGRAM, ProgramTest, QUICK, Response, clean_environment, main,
                     read_terminal)

BODY = bytes(range(65, 91)) * 400


def broken(body, length, headers=b""):
    """A response whose connection ends early."""
    return Response(200, raw=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" %
                    (length, headers, body))


def rest(first, etag=b'ETag: "1"\r\n'):
    return Response(206, raw=b"HTTP/1.1 206 P\r\nContent-Range: bytes %d-%d/%d\r\n"
                             b"Content-Length: %d\r\n%s\r\n%s" %
                    (first, len(BODY) - 1, len(BODY), len(BODY) - first, etag, BODY[first:]))


class Stream(ProgramTest):
    def test_bytes_are_shown_before_the_response_ends(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(503, Response(200, BODY, hold_rest=gate))
        process = self.start(*QUICK, "-N", server.url())
        first = b""
        while len(first) < 5000:
            first += os.read(process.stdout.fileno(), 5000)
        self.assertFalse(gate.is_set())
        gate.set()
        out, _ = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, first + out), (0, BODY))

    def test_nothing_of_a_failed_attempt_is_shown(self):
        server = self.server(Response(503, b"busy"), Response(200, BODY))
        self.assertEqual(self.run_program(*QUICK, "-N", server.url()).stdout, BODY)

    def test_what_breaks_off_is_continued(self):
        server = self.server(broken(BODY[:3000], len(BODY), b'ETag: "1"\r\n'), rest(3000))
        ran = self.run_program(*QUICK, "-iN", server.url())
        head, _, body = ran.stdout.partition(b"\r\n\r\n")
        self.assertEqual((body, head.count(b"HTTP/")), (BODY, 1))
        self.assertEqual(server.seen[1].headers["range"], "bytes=3000-")

    def test_what_cannot_be_continued_is_an_error(self):
        server = self.server(broken(BODY[:3000], len(BODY)), Response(200, BODY))
        ran = self.run_program(*QUICK, "-N", server.url(), status=18)
        self.assertEqual((ran.stdout, len(server.seen)), (BODY[:3000], 1))
        self.assertIn("the response was cut off after 3000 bytes, which were written; the rest is "
                      "missing", ran.stderr.decode())

    def test_another_response_does_not_follow_what_was_shown(self):
        for flags, status in ((("--retry", "1"), 22), (("--retry", "1", "--no-fail"), 18)):
            server = self.server(broken(BODY[:3000], len(BODY), b'ETag: "1"\r\n'),
                                 Response(503, b"busy"))
            ran = self.run_program(*QUICK, *flags, "-N", server.url(), status=status)
            self.assertEqual(ran.stdout, BODY[:3000])
            self.assertIn("the rest is missing", ran.stderr.decode())
        server = self.server(broken(BODY[:3000], len(BODY), b'ETag: "1"\r\n'), Response(200, b"new"))
        self.assertEqual(self.run_program(*QUICK, "-N", server.url(), status=33).stdout, BODY[:3000])

    def test_headers_come_before_the_body(self):
        server = self.server(Response(200, b"x"))
        for flags in (("-N", "-D", "-"), ("-N", "-i")):
            shown = self.run_program(*flags, server.url()).stdout
            self.assertEqual(shown, b"HTTP/1.1 200 Reason\r\nContent-Length: 1\r\n\r\nx")

    def test_an_error_status_is_shown_at_the_end(self):
        server = self.server(Response(404, b"no"))
        self.assertEqual(self.run_program("-N", server.url(), status=22).stdout, b"no")
        self.assertEqual(self.run_program("-fN", server.url(), status=22).stdout, b"")

    def test_a_reader_that_goes_away_ends_it(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(Response(200, BODY, hold_rest=gate))
        process = self.start("-N", server.url())
        process.stdout.read(100)
        process.stdout.close()
        gate.set()
        self.assertEqual(process.wait(LIMIT), 23)
        self.assertIn(b"cannot write to standard output: Broken pipe", process.stderr.read())

    def test_a_reader_that_does_not_read_is_limited_by_m(self):
        server = self.server(Response(200, BODY * 200))
        process = self.start("-N", "-m", "5000ms", server.url())
        self.assertEqual(process.wait(LIMIT), 28)
        self.assertIn(b"the response was not read within the time limit of -m", process.stderr.read())

    def test_a_signal_ends_it_while_nobody_reads(self):
        server = self.server(Response(200, BODY * 200))
        process = self.start("-N", server.url())
        process.stdout.read(1)
        process.terminate()
        self.assertEqual(process.wait(LIMIT), 143)


LARGE = BODY * 1800  # twice of what is kept in memory
STRONG = b'ETag: "1"\r\n'
NO_FOLDER = {"TMPDIR": "/no/where"}


class Large(ProgramTest):
    """Without -N: what is shown of a body of more than 8 MiB before it is complete."""

    def test_what_can_be_continued_is_shown_and_not_kept_in_a_file(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        twice = LARGE * 2  # the server holds its second half
        server = self.server(503, Response(200, twice, [("ETag", '"1"')], hold_rest=gate))
        process = self.start(*QUICK, "-i", server.url(), env=NO_FOLDER)
        first = b""
        while len(first) < 9 << 20:
            first += os.read(process.stdout.fileno(), 1 << 20)
        self.assertFalse(gate.is_set())
        gate.set()
        out, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0, said)
        head, _, body = (first + out).partition(b"\r\n\r\n")
        self.assertTrue(body == twice)
        self.assertIn(b'ETag: "1"', head)

    def test_what_breaks_off_is_continued(self):
        for sent in (3000, 9 << 20):  # while it is kept, and when it is shown
            first = Response(200, raw=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" %
                             (len(LARGE), STRONG, LARGE[:sent]))
            rest = Response(206, LARGE[sent:], [
                ("ETag", '"1"'),
                ("Content-Range", f"bytes {sent}-{len(LARGE) - 1}/{len(LARGE)}")])
            server = self.server(first, rest)
            ran = self.run_program(*QUICK, server.url(), env=NO_FOLDER)
            self.assertTrue(ran.stdout == LARGE)
            self.assertEqual(server.seen[1].headers["range"], f"bytes={sent}-")

    def test_what_has_changed_is_an_error_if_some_of_it_was_shown(self):
        new = Response(200, LARGE, [("ETag", '"2"')])
        kept = self.server(broken(LARGE[:3000], len(LARGE), STRONG), new, new)
        self.assertTrue(self.run_program(*QUICK, kept.url()).stdout == LARGE)
        shown = self.server(broken(LARGE[:9 << 20], len(LARGE), STRONG), new)
        ran = self.run_program(*QUICK, shown.url(), status=33)
        self.assertTrue(ran.stdout == LARGE[:9 << 20])
        self.assertIn("the response was cut off after 9437184 bytes, which were written; the rest is "
                      "missing", ran.stderr.decode())

    def test_what_cannot_be_continued_is_shown_when_it_is_complete(self):
        for method, headers in (("GET", b""), ("GET", b'ETag: W/"1"\r\n'), ("POST", STRONG),
                                ("GET", STRONG + b"Accept-Ranges: none\r\n")):
            server = self.server(broken(LARGE[:9 << 20], len(LARGE), headers),
                                 Response(200, LARGE))
            flags = ("-X", method, "--set", "repeat=always")
            ran = self.run_program(*QUICK, *flags, server.url())
            self.assertTrue(ran.stdout == LARGE, headers)
            self.assertNotIn("range", server.seen[1].headers)


class AtTerminal(ProgramTest):
    def shown(self, *args, status=0):
        """What a terminal gets as standard output."""
        own, its = pty.openpty()
        process = subprocess.Popen([PROGRAM, *args], stdout=its, stderr=subprocess.PIPE,
                                   env=clean_environment(), cwd=self.folder)
        self.addCleanup(process.kill)
        os.close(its)
        out = read_terminal(own)
        os.close(own)
        said = process.communicate(timeout=LIMIT)[1]
        self.assertEqual(process.returncode, status, said)
        return out, said

    def test_binary_is_not_for_a_terminal(self):
        server = self.server(Response(200, b"\x7fELF\0\0"))
        for flags in ((), ("-N",), ("-i",)):
            out, said = self.shown(*flags, server.url(), status=23)
            self.assertEqual(out, b"")
            self.assertIn(b"the response is binary and may garble the terminal; -o FILE saves it, "
                          b"-o - shows it anyway", said)
        self.assertEqual(self.shown("-o", "-", server.url())[0], b"\x7fELF\0\0")
        text = self.server(Response(200, b"x" * 2000 + b"\0"))  # curl looks at so much
        self.assertEqual(self.shown(text.url())[0], b"x" * 2000 + b"\0")
        error = self.server(Response(404, b"\0"))
        self.assertEqual(self.shown(error.url(), status=23)[0], b"")


if __name__ == "__main__":
    main()
