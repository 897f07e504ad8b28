"""Pipes in which nobody writes, files without an end, and files that may not become as large as they
should."""

import contextlib
import os
import resource
import signal
import subprocess
import threading

from program import (LIMIT, PROGRAM, QUICK, ProgramTest, Response, blocks_its_signals,
                     clean_environment, main, wait_until)


class Pipes(ProgramTest):
    def setUp(self):
        super().setUp()
        os.mkfifo(self.folder / "fifo")

    # What reads the pipe, and with which URL.
    READERS = (("-b", "fifo"), ("--netrc-file", "fifo"), ("-T", "fifo"), ("-F", "a=@fifo"),
               ("-F", "a=<fifo"), ("-H", "@fifo"), ("-d", "@fifo"), ("--data-binary", "@fifo"),
               ("--json", "@fifo"), ("--data-urlencode", "a@fifo"), ("--url-query", "a@fifo"),
               ("-w", "@fifo"), ("-K", "fifo"), ("--policy", "fifo"))
    TLS_READERS = (("--cacert", "fifo"), ("--pinnedpubkey", "fifo"), ("--cert", "fifo"),
                   ("--cert", "/dev/null", "--key", "fifo"))

    WRITERS = (("-c", "fifo"), ("-o", "fifo"), ("-i", "-o", "fifo"), ("--report", "fifo"))
    CA_VARIABLES = ("CURL_CA_BUNDLE", "SSL_CERT_FILE")

    # Each with the variables of its environment.
    def commands(self, server):
        https = f"https://127.0.0.1:{server.port}/"
        for args in (*self.READERS, *self.WRITERS):
            yield (*args, server.url()), {}
        for args in self.TLS_READERS:
            yield (*args, https), {}
        for name in self.CA_VARIABLES:
            yield (https,), {name: "fifo"}
        yield (server.url(),), {"HTTPRETRY_POLICY": "fifo"}

    def test_a_signal_ends_the_wait(self):
        server = self.server(200)
        for command, env in self.commands(server):
            for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                with self.subTest(command=command, signal=number, env=env):
                    process = self.start(*command, env=env)
                    wait_until(lambda p=process: blocks_its_signals(p.pid))
                    if self.writes(command):
                        server.arrived.get(timeout=LIMIT)
                    process.send_signal(number)
                    self.assertEqual(process.wait(LIMIT), status)

    def test_a_time_limit_ends_the_wait(self):
        server = self.server(200)
        for command, env in self.commands(server):
            with self.subTest(command=command, env=env):
                writes = self.writes(command)
                result = self.run_program("-m", "0.2", *command, status=23 if writes else 28,
                                          env=env)
                self.assertIn(b"fifo: no reader within the time limit of -m" if writes else
                              b"the time limit of -m has passed", result.stderr)

    def test_the_limit_may_stand_behind_the_file_of_options(self):
        result = self.run_program("-K", "fifo", "-m", "0.2", "http://127.0.0.1:1/", status=28)
        self.assertIn(b"cannot read fifo: ", result.stderr)

    def test_a_wrong_command_line_waits_for_no_pipe(self):
        self.run_program("-K", "fifo", "--unknown", status=2)
        self.run_program("-K", "fifo", "--help")

    def test_options_and_a_format_come_from_a_pipe(self):
        server = self.server(200)
        self.write(f'url = "{server.url()}"\nwrite-out = "code %{{http_code}}"\n')
        self.assertIn(b"code 200", self.run_program("-m", "20", "-K", "fifo").stdout)
        self.write("now %{http_code}")
        self.assertIn(b"now 200", self.run_program("-m", "20", "-w", "@fifo", server.url()).stdout)
        self.write('{"version": 1, "default": {"max_attempts": 1}}')
        self.run_program("-m", "20", "--policy", "fifo", self.server(503).url(), status=22)

    def test_a_time_limit_ends_the_wait_in_the_middle_of_a_body(self):
        server = self.server(200)
        process = self.start("-m", "1", "-T", "fifo", server.url())
        with open(self.folder / "fifo", "wb") as fifo:
            with contextlib.suppress(BrokenPipeError):
                fifo.write(b"b" * (65 << 20))  # more than is read before the request is sent
                fifo.flush()
            self.assertEqual(process.wait(LIMIT), 28)

    @classmethod
    def writes(cls, command):
        return any(command[:len(args)] == args for args in cls.WRITERS)

    def write(self, text):
        threading.Thread(target=(self.folder / "fifo").write_text, args=(text,), daemon=True).start()

    def test_what_somebody_writes_is_for_all_attempts(self):
        server = self.server(503, 200)
        self.write("machine 127.0.0.1 login me password pw\n")
        self.run_program(*QUICK, "--netrc-file", "fifo", server.url())
        self.assertEqual([seen.headers["authorization"] for seen in server.seen],
                         ["Basic bWU6cHc="] * 2)
        self.write("127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tb\n")
        self.run_program("-b", "fifo", server.url())
        self.assertEqual(server.seen[-1].headers["cookie"], "a=b")

    def test_certificates_come_from_a_pipe(self):
        process = self.start("serve", "--tls", "--outcomes", "200")
        address = process.stdout.readline().decode().strip()
        authority = process.stderr.readline().decode().split(": ")[1].strip()
        with open(authority, encoding="ascii") as file:
            self.write(file.read())
        self.run_program("--cacert", "fifo", address)

    def test_somebody_reads_the_cookies(self):
        server = self.server(Response(200, b"", [("Set-Cookie", "a=b")]))
        process = self.start("-c", "fifo", server.url())
        self.assertIn("\ta\tb", (self.folder / "fifo").read_text())
        self.assertEqual(process.wait(LIMIT), 0)


class Endless(ProgramTest):
    def test_reading_stops_at_a_limit(self):
        url = "http://127.0.0.1:1/"
        for status, args in ((1, ("policy", "check", "/dev/zero")), (26, ("-K", "/dev/zero")),
                             (3, ("--policy", "/dev/zero", url)), (26, ("-b", "/dev/zero", url)),
                             (26, ("--netrc-file", "/dev/zero", url)),
                             (26, ("-H", "@/dev/zero", url)),
                             (2, ("plan", "--scenario", "/dev/zero"))):
            with self.subTest(args=args):
                result = self.run_program(*args, status=status)
                self.assertIn(b"/dev/zero: it has more than 64 MiB", result.stdout + result.stderr)

    def test_data_may_be_larger(self):
        result = self.run_program("-d", "@/dev/zero", "http://127.0.0.1:1/", status=26)
        self.assertIn(b"/dev/zero: it has more than 1024 MiB", result.stderr)


class Limits(ProgramTest):
    def test_a_file_that_becomes_too_large_leaves_nothing(self):
        server = self.server(Response(200, b"b" * 100_000))
        (self.folder / "out").write_text("old")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it

        result = subprocess.run([PROGRAM, "-o", "out", server.url()], capture_output=True,
                                preexec_fn=limit, timeout=LIMIT, check=False, cwd=self.folder,
                                env=clean_environment())
        self.assertEqual(result.returncode, 23, result.stderr)
        self.assertIn(b"File too large", result.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["out"])
        self.assertEqual((self.folder / "out").read_text(), "old")


if __name__ == "__main__":
    main()
