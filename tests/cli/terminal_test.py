"""Output that only a terminal gets: status line, progress bar, colors. Tested with a pseudo-terminal
for the bytes, and with tmux for what a user sees."""

import fcntl
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

from program import (Response, LIMIT, PROGRAM, ProgramTest, clean_environment, main,
                     read_terminal)

WAIT = [("Retry-After", "1")]
LONG_WAIT = [("Retry-After", "4")]  # for what must be seen in the meantime
ERASE = r"\r\x1b\[K|\x1b\[\d+A\r\x1b\[J"  # before each new status line


def set_columns(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


class Terminal(ProgramTest):
    def at_terminal(self, *args, status=0, env=None, ready=None, when="waiting", columns=0):
        """The program's standard error on a terminal. `ready` is called with the process and the terminal
        when the status line contains `when`."""
        own, its = pty.openpty()
        set_columns(own, columns)
        with (self.folder / "stdout").open("wb") as out:
            process = subprocess.Popen([PROGRAM, *map(str, args)], stdout=out, stderr=its,
                                       env=clean_environment() | {"TERM": "xterm"} | (env or {}),
                                       cwd=self.folder)
        self.addCleanup(process.kill)
        os.close(its)

        def look(said):
            nonlocal ready
            if ready and when.encode() in said:
                ready(process, own)
                ready = None

        said = read_terminal(own, look)
        os.close(own)
        process.wait(LIMIT)
        self.out = (self.folder / "stdout").read_bytes()
        self.assertEqual(process.returncode, status, said)
        return said.decode()

    def test_ctrl_c_ends_the_script_that_runs_it(self):
        server = self.server(Response(503, b"", [("Retry-After", "50")]))
        script = (f"for i in 1 2 3; do echo start $i; {shlex.quote(str(PROGRAM))} {server.url()}; "
                  "done; echo finished")
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe("bash", ["bash", "-c", script],
                       clean_environment() | {"TERM": "xterm"})

        def interrupt(said):
            if "…".encode() in said and b"^C" not in said:
                os.write(terminal, b"\x03")

        said = read_terminal(terminal, interrupt)
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        self.assertIn(b"start 1", said)
        self.assertNotIn(b"start 2", said)
        self.assertTrue(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, said)

    def test_one_live_line_while_waiting(self):
        server = self.server(Response(503, b"", WAIT), Response(200, b"x"))
        said = self.at_terminal(server.url())
        self.assertIn("attempt 1 of 5: 503, waiting 1.00 s (server asked 1.00 s)…", said)
        self.assertTrue(said.endswith("\r\x1b[K"), said)
        self.assertNotIn("\n", said)
        self.assertEqual(self.out, b"x")

    def test_nothing_of_it_where_nobody_wants_it(self):
        for args in (("-s",), ("--no-progress-meter",)):
            server = self.server(503, Response(200, b"x"))
            self.assertEqual(self.at_terminal(*args, server.url()), "")
        server = self.server(503, Response(200, b"x"))
        self.assertEqual(self.run_program(server.url()).stderr, b"")

    def test_a_signal_ends_the_wait(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            server = self.server(Response(503, b"", [("Retry-After", "50")]))
            began = time.monotonic()
            said = self.at_terminal(server.url(), status=status,
                                    ready=lambda process, _, n=number: process.send_signal(n))
            self.assertLess(time.monotonic() - began, 50)
            self.assertRegex(said, r"\x1b\[Khttpretry: \(42\) GET \S+: was canceled after 1 attempt in [\d.]+ m?s: 503\r\n$")

    def test_a_bar_for_a_long_download(self):
        server = self.server(Response(200, b"x" * 90000))
        for target in (("-o", "out"), ()):
            said = self.at_terminal("-#", "--limit-rate", "60K", *target, server.url())
            self.assertRegex(said, r"\[=+>? *\] +\d+ %  [\d.]+ KiB of 87\.9 KiB, [\d.]+ KiB/s")
            self.assertTrue(said.endswith("\r\x1b[K"), said)
        self.assertEqual(len(self.out), 90000)

    def test_the_lines_fit_on_the_terminal_even_after_it_was_resized(self):
        server = self.server(Response(200, b"x" * 200000))
        said = self.at_terminal("--limit-rate", "60K", "-o", "out", server.url(), columns=100, when="KiB/s",
                                ready=lambda _, terminal: set_columns(terminal, 50))
        lines = [line for line in re.split(ERASE, said) if line]
        self.assertRegex(lines[0], r"^\[=+> {10,}\] +\d+ %  [\d.]+ KiB of 195\.3 KiB, [\d.]+ KiB/s$")
        self.assertTrue(60 < len(lines[0]) < 100, lines)
        self.assertRegex(lines[-1], r"^(\[[=> ]+\] )? *\d+ %  [\d.]+ KiB of 195\.3 KiB, [\d.]+ KiB/s$")
        self.assertLess(len(lines[-1]), 50)
        self.assertIn("\x1b[1A\r\x1b[J", said)  # the wide line takes two rows by then
        server = self.server(Response(503, b"", WAIT), Response(200, b"x"))
        said = self.at_terminal(server.url(), columns=30)
        self.assertIn("attempt 1 of 5: 503, waiting…", re.split(ERASE, said))

    def test_a_response_that_does_not_come(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(Response(200, b"x", hold=gate))
        said = self.at_terminal(server.url(), when="no response after", ready=lambda *_: gate.set())
        self.assertRegex(said, r"^attempt 1 of 5: no response after \d+ s…")
        self.assertTrue(said.endswith("\r\x1b[K"), said)
        self.assertEqual(self.out, b"x")

    def test_polls_are_counted_for_themselves(self):
        server = self.server(*[202] * 9, 503, 202, Response(200, b"x"))
        pending = 'retry_on.pending={"statuses": [202], "backoff": {"kind": "none"}}'
        said = self.at_terminal("--set", pending, "--set", "backoff.initial=1ms", server.url())
        for line in ("attempt 1 of 5: 202, waiting", "poll 8: 202, waiting", "poll 9: 503, waiting",
                     "attempt 2 of 5: 202, waiting"):
            self.assertIn(line, said)
        self.assertNotIn("attempt 3", said)

    def test_a_bar_for_a_long_upload(self):
        (self.folder / "file").write_bytes(b"u" * 1000000)
        server = self.server(503, 200)
        said = self.at_terminal("--limit-rate", "400K", "--retry-delay", "0.001", "-T", "file",
                                server.url("/x"))
        self.assertRegex(said, r"\[=+>? *\] +\d+ %  [\d.]+ KiB of 976\.6 KiB, [\d.]+ KiB/s")
        self.assertTrue(said.endswith("\r\x1b[K"), said)
        self.assertEqual([seen.body == b"u" * 1000000 for seen in server.seen], [True, True])
        self.assertEqual([seen.headers["content-length"] for seen in server.seen], ["1000000"] * 2)

    def test_a_bar_for_an_upload_that_can_be_read_only_once(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        body = b"u" * (66 << 20)
        writer = threading.Thread(target=pipe.write_bytes, args=(body,))
        writer.start()
        server = self.server(200)
        said = self.at_terminal("--limit-rate", "50M", "-T", "pipe", server.url("/x"))
        writer.join(LIMIT)
        # libcurl 8.23 sends what the rate allows in a second at once, so the line may be drawn only once.
        self.assertRegex(said, r"(?:^|\x1b\[K)[\d.]+ MiB, [\d.]+ MiB/s")
        self.assertTrue(said.endswith("\r\x1b[K"), said)
        self.assertEqual(server.seen[0].body, body)

    def test_many_urls_share_the_line(self):
        server = self.server(Response(503, b"", LONG_WAIT), Response(200, b"x"))
        # Without a pause: it would hold back the second request where that begins after the first response.
        said = self.at_terminal("-Z", "--set", "pause=none", server.url("/1"), server.url("/2"))
        self.assertIn("1 of 2 done, 1 running, 1 of them waiting…", said)
        self.assertRegex(said, r"\x1b\[Khttpretry: 2 succeeded, 0 failed, 3 attempts, 2 bytes in .* s\r\n$")

    def test_the_line_of_many_urls_comes_back_after_a_message(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        both_run = threading.Event()
        self.addCleanup(both_run.set)
        server = self.server(Response(404, b"x" * 2000, hold=both_run))
        slow = self.server(Response(200, hold=gate))
        waiter = threading.Thread(target=lambda: (slow.arrived.get(timeout=LIMIT), both_run.set()))
        waiter.start()
        self.addCleanup(waiter.join)
        line = "2.0 KiB, 1 of 2 done, 1 running, 1 failed…"
        after_message = f"attempt in .*: 404 \\(not_retryable\\)\r\n{line}"
        said = self.at_terminal("-Z", server.url(), slow.url(), status=22, when="\r\n2.0 KiB",
                                ready=lambda *_: gate.set())
        self.assertRegex(said, after_message)
        self.assertRegex(said, r"\x1b\[Khttpretry: 1 succeeded, 1 failed, 2 attempts, 2000 bytes in .* m?s\r\n$")

    def test_colours_only_on_a_terminal(self):
        def trace(*args, env=None):
            server = self.server(503, 200)
            return self.at_terminal("--trace", *args, server.url(), env=env)

        self.assertIn("\x1b[33m503\x1b[0m", trace())
        self.assertNotIn("\x1b", trace("--color", "never"))
        self.assertNotIn("\x1b", trace(env={"NO_COLOR": "1"}))
        self.assertIn("\x1b[32m200", trace(env={"NO_COLOR": ""}))
        self.assertIn("\x1b[32m200", trace("--color", "always", env={"NO_COLOR": "1"}))
        server = self.server(200)
        self.assertNotIn(b"\x1b", self.run_program("--trace", server.url()).stderr)
        self.assertIn(b"\x1b", self.run_program("--trace", "--color", "always",
                                                server.url()).stderr)


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class Session(ProgramTest):
    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", str(self.folder / "tmux"), *args], check=True,
                              capture_output=True, env=clean_environment() | {"LC_ALL": "C.UTF-8"},
                              timeout=LIMIT).stdout.decode()

    def wait_for(self, pattern):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            screen = self.tmux("capture-pane", "-p")
            if re.search(pattern, screen):
                return screen
            time.sleep(0.05)
        self.fail(f"{pattern} is not on the screen:\n{screen}")

    def test_the_line_comes_and_goes(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(Response(503, b"", LONG_WAIT), Response(200, b"the body\n", hold=gate))
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "20", "sh")
        self.addCleanup(self.tmux, "kill-server")
        command = f"{shlex.quote(str(PROGRAM))} {server.url()}; echo status $?"
        self.tmux("send-keys", command, "Enter")
        self.wait_for(r"attempt 1 of 5: 503, waiting 4.00 s \(server asked 4.00 s\)…")
        gate.set()
        screen = self.wait_for(r"status 0")
        self.assertIn("the body\nstatus 0", screen)
        self.assertNotIn("attempt 1", screen)


if __name__ == "__main__":
    main()
