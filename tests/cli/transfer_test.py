"""Files, forms, cookies, proxies, TLS and connections. Each flag is tested with a real server: one of
the tests, `httpretry serve`, nginx or openssl."""

import fcntl
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from program import (LIMIT, PROGRAM, QUICK, Response, ProgramTest, blocks_its_signals,
                     clean_environment, closed_port, main, wait_until)

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


def broken(body, length, headers=b""):
    return Response(200, raw=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s"
                  % (length, headers, body))


class Files(ProgramTest):
    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_bodies_binary_empty_and_large(self):
        for body in (b"", bytes(range(256)), os.urandom(9 << 20)):
            server = self.server(Response(200, body))
            self.run_program("-o", "out", "--report", "r", server.url())
            self.assertEqual((self.folder / "out").read_bytes(), body)
            self.assertEqual(self.report("r")["bytes"], len(body))
            self.assertEqual(self.run_program(server.url()).stdout, body)

    def test_streams_of_the_shells_are_not_replaced(self):
        server = self.server(Response(200, b"body"))
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            command = f'"{PROGRAM}" -sS -o {name} -w " and %{{http_code}}" {server.url()} > out'
            subprocess.run(["sh", "-c", command], env=clean_environment(), cwd=self.folder,
                           check=True, timeout=LIMIT)
            self.assertEqual((self.folder / "out").read_bytes(), b"body and 200")
        (self.folder / "log").write_text("before\n")
        command = f'"{PROGRAM}" -sS -o o --report /dev/stderr {server.url()} 2>> log'
        subprocess.run(["sh", "-c", command], env=clean_environment(), cwd=self.folder, check=True,
                       timeout=LIMIT)
        log = (self.folder / "log").read_text()
        self.assertEqual((log[:8], json.loads(log[7:])["status"]), ("before\n{", 200))

    def test_what_goes_through_memory_has_a_limit(self):
        head = b"HTTP/1.1 %d Reason\r\nContent-Length: 1073741825\r\n\r\nx"
        for status, args in ((200, ("-i", "-o", "out")), (400, ()), (400, ("-o", "out")),
                             (200, ("--until", "json:/a=1"))):
            server = self.server(Response(status, raw=head % status))
            result = self.run_program(*args, "--retry", 0, server.url(), status=63)
            self.assertRegex(result.stderr.decode(),
                             r"^httpretry: the response is too large to hold in memory; --max-filesize BYTES raises "
                             r"the limit\nhttpretry: \(63\) GET \S+: .*is larger than 1073741824 bytes\n$")

    def test_who_writes_the_file_already_is_an_error_of_the_file(self):
        server = self.server(Response(200, b"body"))
        with (self.folder / "out.part").open("wb") as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            result = self.run_program("-C", "-", "-o", "out", server.url(), status=23)
        self.assertIn(b"out.part is being written by another process", result.stderr)

    def test_a_file_that_goes_away_between_attempts_is_an_error_of_the_file(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(Response(503, hold=gate))
        (self.folder / "body").write_bytes(b"b" * 1000)
        process = self.start(*QUICK, "-T", "body", server.url("/x"))
        server.arrived.get(timeout=LIMIT)
        (self.folder / "body").unlink()
        gate.set()
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 26, said)

    def test_a_large_response_waits_on_disk_until_it_is_whole(self):
        body = os.urandom(30 << 20)
        server = self.server(broken(body[:20 << 20], len(body), b'ETag: "v1"\r\n'),
                             Response(206, body[20 << 20:],
                                    [("Content-Range", f"bytes {20 << 20}-{len(body) - 1}/{len(body)}"),
                                     ("ETag", '"v1"')]),
                             broken(body[:25 << 20], len(body)), Response(200, body),
                             broken(body[:25 << 20], len(body)))
        os.mkfifo(self.folder / "fifo")
        # It goes on where it broke off; and begins anew.
        self.assertTrue(self.run_program(*QUICK, server.url()).stdout == body)
        with (self.folder / "read").open("wb") as read:
            reader = subprocess.Popen(["cat", "fifo"], stdout=read, cwd=self.folder)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        self.run_program(*QUICK, "-o", "fifo", "-i", server.url())
        reader.wait(LIMIT)
        head, _, came = (self.folder / "read").read_bytes().partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 Reason\r\n"), head[:1000])
        self.assertTrue(came == body)
        result = self.run_program(*QUICK, "--retry", 1, server.url(), status=18)
        self.assertEqual(result.stdout, b"")  # nothing of what failed
        result = self.run_program(server.url(), status=23, env={"TMPDIR": "/no/where"})
        self.assertIn(b"cannot write the response to a temporary file in /no/where: No such file", result.stderr)

    def test_what_has_been_shown_is_let_go(self):
        server = self.server(Response(200, b"b" * (9 << 20)))
        done = subprocess.run(["bash", "-c", 'ulimit -n 20 && exec "$@" | wc -c', "-", PROGRAM, "-s",
                               *[server.url()] * 12], capture_output=True, check=True,
                              cwd=self.folder, env=clean_environment(), timeout=LIMIT)
        self.assertEqual(int(done.stdout), 12 * (9 << 20), done.stderr)

    def test_a_signal_ends_what_is_being_shown(self):
        body = b"b" * (64 << 20)
        server = self.server(Response(200, body))
        process = self.start("-s", server.url())
        shown = len(process.stdout.read(16 << 20))
        process.send_signal(signal.SIGINT)
        while piece := os.read(process.stdout.fileno(), 4096):  # who reads all the time
            shown += len(piece)
            time.sleep(0.001)
        self.assertEqual(process.wait(LIMIT), 130)
        self.assertLess(shown, len(body))

    def test_the_name_comes_from_the_url(self):
        server = self.server(Response(200, b"1"), Response(200, b"2"))
        result = self.run_program("-O", "-O", "-w", "%{filename_effective} ",
                                  server.url("/a/b%20c?x=/y"), server.url("/d"))
        self.assertEqual(self.names(), ["b%20c", "d"])
        self.assertEqual((self.folder / "b%20c").read_bytes(), b"1")
        self.assertEqual(result.stdout, b"b%20c d ")
        self.assertEqual(self.run_program("-O", server.url("/-")).stdout, b"")
        self.assertEqual((self.folder / "-").read_bytes(), b"2")

    def test_a_bad_response_is_written_to_the_file_unless_f(self):
        server = self.server(Response(404, b"no"))
        self.run_program("-o", "out", server.url(), status=22)
        self.assertEqual((self.folder / "out").read_bytes(), b"no")
        self.run_program("-f", "-o", "none", server.url(), status=22)
        self.assertEqual(self.names(), ["out"])

    def test_a_file_that_may_not_be_written_is_not_replaced_by_an_error_either(self):
        target = self.folder / "read-only"
        target.write_text("old")
        target.chmod(0o444)
        if os.geteuid() == 0:  # who may write to any file, but for those of the kernel
            target = pathlib.Path("/proc/version")
        old = target.read_text()
        server = self.server(Response(404, b"not there"))
        self.run_program("-o", target, server.url(), status=23)
        self.assertEqual(target.read_text(), old)

    def test_an_error_does_not_take_the_place_of_the_beginning_of_a_download(self):
        (self.folder / "out").write_text("the beginning")
        server = self.server(Response(503, b"error page"))
        for name in (("-o", "out"), ("-O",)):
            self.run_program("-sS", "-C", "-", "--retry", 0, *name, server.url("/out"), status=22)
            self.assertEqual((self.folder / "out").read_text(), "the beginning")

    def test_a_304_leaves_the_file_alone(self):
        (self.folder / "cached").write_text("mine")
        server = self.server(Response(304, headers=[("ETag", '"v1"')]))
        condition = ("-H", 'If-None-Match: "v1"')
        for args in (("-o", "cached"), ("-f", "-O"), ("-f", "-C", "-", "-O", *condition)):
            self.run_program("-sS", *args, server.url("/cached"))
            self.assertEqual((self.folder / "cached").read_text(), "mine")

    def test_a_limit_of_0_is_none(self):
        server = self.server(Response(200, b"all of it"))
        result = self.run_program("--max-filesize", 0, "--connect-timeout", 0, server.url())
        self.assertEqual(result.stdout, b"all of it")

    def test_a_link_to_nothing_leads_to_the_file(self):
        (self.folder / "link").symlink_to("target")
        server = self.server(Response(404, b"not there"))
        self.run_program("-o", "link", server.url(), status=22)
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertEqual((self.folder / "target").read_bytes(), b"not there")

    def test_a_killed_download_leaves_the_old_file(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        server = self.server(Response(200, b"n" * 300000, hold_rest=hold))
        for old in (b"old", None):
            if old:
                (self.folder / "out").write_bytes(old)
            else:
                (self.folder / "out").unlink()
            for args in ((), ("-C", "-"), ("-C", "3")):
                process = self.start(*args, "-o", "out", server.url())

                def half_is_there():
                    return any(path.stat().st_size >= 100000 for path in self.folder.iterdir())

                if args == ("-C", "3"):
                    server.arrived.get(timeout=LIMIT)
                else:
                    wait_until(half_is_there)
                process.send_signal(signal.SIGKILL)
                self.assertEqual(process.wait(LIMIT), -signal.SIGKILL)
                for path in self.folder.iterdir():
                    if path.name != "out":
                        path.unlink()
                self.assertEqual(self.names(), ["out"] if old else [])
                if old:
                    self.assertEqual((self.folder / "out").read_bytes(), old)

    def test_an_interrupted_download_leaves_the_old_file(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        server = self.server(Response(200, b"n" * 300000, hold_rest=hold))
        (self.folder / "out").write_bytes(b"old")
        for number, status in ((signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start("-o", "out", server.url())
            wait_until(lambda: any(path.stat().st_size >= 100000
                                   for path in self.folder.iterdir()))
            process.send_signal(number)
            self.assertEqual(process.wait(LIMIT), status)
            self.assertEqual((self.names(), (self.folder / "out").read_bytes()), (["out"], b"old"))

    def test_a_download_goes_on_where_it_broke_off(self):
        etag = b'ETag: "v1"\r\nAccept-Ranges: bytes\r\n'
        server = self.server(broken(b"0123", 10, etag))
        self.run_program("--retry", 0, "-C", "-", "-o", "out", server.url(), status=18)
        self.assertEqual((self.folder / "out.part").read_bytes(), b"0123")
        rest = Response(206, b"456789", [("Content-Range", "bytes 4-9/10"), ("ETag", '"v1"')])
        server.responses, server.seen = [rest], []
        self.run_program("-C", "-", "-o", "out", server.url())
        self.assertEqual(server.seen[0].headers["range"], "bytes=4-")
        self.assertEqual(server.seen[0].headers["if-range"], '"v1"')
        self.assertEqual((self.folder / "out").read_bytes(), b"0123456789")
        self.assertEqual(self.names(), ["out"])

    def test_a_download_that_goes_on_keeps_the_mode_of_its_file(self):
        self.addCleanup(os.umask, os.umask(0))
        (self.folder / "out").write_bytes(b"0123")
        (self.folder / "out").chmod(0o600)
        server = self.server(Response(206, b"456789", [("Content-Range", "bytes 4-9/10")]))
        self.run_program("-C", "-", "-o", "out", server.url())
        self.assertEqual((self.folder / "out").read_bytes(), b"0123456789")
        self.assertEqual((self.folder / "out").stat().st_mode & 0o777, 0o600)

    def test_what_does_not_fit_the_first_part_is_not_the_file(self):
        tag = ("ETag", '"v1"')
        range_of = lambda text, *more: [("Content-Range", text), *(more or (tag,))]
        for wrong in (Response(206, b"456789", range_of("bytes 4-9/10", ("ETag", '"v2"'))),
                      Response(206, b"456789", range_of("bytes 4-9/10", tag, ("ETag", '"v2"'))),
                      Response(206, b"456789", range_of("bytes 4-9/12")),
                      Response(206, b"4", range_of("bytes 4-4/5")),
                      Response(304, headers=[tag]), Response(416),
                      Response(416, headers=range_of("bytes */4")),
                      Response(416, headers=range_of("bytes */3"))):
            with self.subTest(status=wrong.status, headers=wrong.headers):
                server = self.server(broken(b"0123", 10, b'ETag: "v1"\r\n'), wrong,
                                     Response(200, b"another"))
                self.run_program("--retry", 0, "-C", "-", "-o", "out", server.url(), status=18)
                result = self.run_program("--retry", 0, "-C", "-", "-o", "out", server.url(),
                                          status=33)
                self.assertIn(b"cannot continue after the first 4 bytes: the ", result.stderr)
                self.assertEqual(self.names(), ["out.part"])
                self.run_program("--retry", 0, "-C", "-", "-o", "out", server.url())
                self.assertEqual((self.folder / "out").read_bytes(), b"another")
                self.assertEqual([seen.headers.get("range") for seen in server.seen],
                                 [None, "bytes=4-", None])
                (self.folder / "out").unlink()

    def test_a_part_that_nobody_has_asked_for_is_not_the_file(self):
        part = Response(206, b"0123", [("Content-Range", "bytes 0-3/10")])
        for target in (("-o", "out"), ("-C", "-", "-o", "out"), (), ("-i", "-o", "out")):
            server = self.server(part)
            result = self.run_program(*QUICK, *target, server.url(), status=33)
            self.assertIn(b"the server sent a part of the body (bytes 0-3 of 10), although the "
                          b"whole body was requested", result.stderr)
            self.assertFalse((self.folder / "out").exists())
        self.run_program("-H", "Range: bytes=0-3", "-o", "out", server.url())
        self.assertEqual((self.folder / "out").read_bytes(), b"0123")
        for wanted in ("5-9", "0-2"):
            result = self.run_program(*QUICK, "-r", wanted, "-o", "other", server.url(), status=33)
            self.assertIn(b"although another part was requested", result.stderr)
            self.assertFalse((self.folder / "other").exists())

    def test_a_part_that_is_a_pipe_is_an_error_and_no_wait(self):
        os.mkfifo(self.folder / "out.part")
        result = self.run_program("-C", "-", "-o", "out", "http://127.0.0.1:1/", status=23)
        self.assertIn(b"out.part is not a regular file, and cannot keep a partial body; remove it",
                      result.stderr)

    def test_links_in_a_circle_lead_to_no_file(self):
        (self.folder / "a").symlink_to("b")
        (self.folder / "b").symlink_to("a")
        server = self.server(Response(200, b"x"))
        for args in ((), ("-i",)):
            result = self.run_program(*args, "-o", "a", server.url(), status=23)
            self.assertIn(b"a: Too many levels of symbolic links", result.stderr)
        self.assertEqual(self.names(), ["a", "b"])

    def test_the_first_bytes_are_left_out(self):
        rest = Response(206, b"456", [("Content-Range", "bytes 4-6/7")])
        server = self.server(503, rest)
        (self.folder / "out").write_bytes(b"0123")
        self.run_program(*QUICK, "-C", "4", "-o", "out", server.url())
        self.assertEqual((self.folder / "out").read_bytes(), b"0123456")
        self.assertEqual([seen.headers["range"] for seen in server.seen], ["bytes=4-"] * 2)
        result = self.run_program("-C4", "-w", "|%{size_download}", server.url())
        self.assertEqual(result.stdout, b"456|3")
        server = self.server(Response(200, b"456"))
        self.assertEqual(self.run_program("-C", "0", server.url()).stdout, b"456")
        self.assertNotIn("range", server.seen[-1].headers)
        server = self.server(Response(416, b"", [("Content-Range", "bytes */7")]))
        self.run_program("-C", "7", "-o", "out", server.url())
        self.assertEqual((self.folder / "out").read_bytes(), b"0123456")
        server = self.server(Response(200, b"0123456"))
        for target in (("-o", "out"), ()):
            result = self.run_program("-C", "2", *target, server.url(), status=33)
            self.assertIn("the server sent the whole file instead of the part that -C asks for",
                          result.stderr.decode())
        self.assertEqual((self.folder / "out").read_bytes(), b"0123456")
        os.mkfifo(self.folder / "pipe")
        server = self.server(rest)
        process = self.start("-C", "4", "-o", "pipe", server.url())
        self.assertEqual((self.folder / "pipe").read_bytes(), b"456")
        self.assertEqual(process.wait(LIMIT), 0)

    def test_what_broke_off_behind_an_offset_goes_on(self):
        headers = b'ETag: "v"\r\nContent-Range: bytes 4-9/10\r\n'
        half = Response(206, raw=b"HTTP/1.1 206 P\r\nContent-Length: 6\r\n" + headers + b"\r\n456")
        end = Response(206, b"789", [("Content-Range", "bytes 7-9/10"), ("ETag", '"v"')])
        server = self.server(half, end)
        self.assertEqual(self.run_program(*QUICK, "-C", "4", server.url()).stdout, b"456789")
        self.assertEqual(server.seen[1].headers["range"], "bytes=7-")

    def test_a_retry_asks_for_the_rest(self):
        server = self.server(broken(b"0123", 10, b'ETag: "v1"\r\nAccept-Ranges: bytes\r\n'),
                             Response(206, b"456789", [("Content-Range", "bytes 4-9/10"),
                                                     ("ETag", '"v1"')]))
        self.run_program(*QUICK, "-o", "out", server.url())
        self.assertEqual((self.folder / "out").read_bytes(), b"0123456789")

    def test_a_file_that_is_too_large_is_63(self):
        server = self.server(Response(200, b"x" * 2000))
        for target in (("-o", "out"), ()):
            result = self.run_program("--max-filesize", "1K", *target, server.url(), status=63)
            self.assertEqual(result.stdout, b"")
        self.assertEqual(self.names(), [])
        self.run_program("--max-filesize", "2000", "-o", "out", server.url())

    def test_the_rate_is_limited(self):
        server = self.server(Response(200, b"x" * 40000))
        for target in (("-o", "out"), ()):
            began = time.monotonic()
            result = self.run_program("--limit-rate", "40K", *target, server.url())
            self.assertGreater(time.monotonic() - began, 0.7)
        self.assertEqual(len(result.stdout), 40000)

    def test_a_pipe_gets_the_body_when_somebody_reads(self):
        os.mkfifo(self.folder / "pipe")
        server = self.server(Response(200, b"x" * 200000))
        process = self.start("-o", "pipe", server.url())
        self.assertEqual((self.folder / "pipe").read_bytes(), b"x" * 200000)
        self.assertEqual(process.wait(LIMIT), 0)
        process = self.start("-o", "pipe", server.url())
        server.arrived.get(timeout=LIMIT)
        server.arrived.get(timeout=LIMIT)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT), 143)

    def test_a_folder_that_is_not_there_is_23(self):
        server = self.server(Response(200, b"x"))
        for target in ("no/where", "."):
            result = self.run_program("-o", target, server.url(), status=23)
            self.assertIn("cannot write", result.stderr.decode())


class Uploads(ProgramTest):
    LARGE = b"u" * ((64 << 20) + 70000)

    def test_a_pipe_is_kept_to_be_sent_again(self):
        os.mkfifo(self.folder / "pipe")
        threading.Thread(target=lambda: (self.folder / "pipe").write_bytes(b"piped"),
                         daemon=True).start()
        server = self.server(503, 200)
        self.run_program(*QUICK, "-T", "pipe", server.url("/x"))
        self.assertEqual([seen.body for seen in server.seen], [b"piped", b"piped"])

    def test_more_than_can_be_kept_is_sent_once(self):
        server = self.server(200)
        self.run_program("-T", "-", server.url("/x"), stdin=self.LARGE)
        self.assertEqual(server.seen[0].body, self.LARGE)
        server = self.server(503, 200)
        result = self.run_program(*QUICK, "-T", "-", server.url("/x"), stdin=self.LARGE, status=22)
        self.assertEqual(len(server.seen), 1)
        self.assertIn("longer than 64 MiB, so it cannot be sent again; save it in a file",
                      result.stderr.decode())
        self.assertIn("(not_replayable)", result.stderr.decode())

    def test_the_first_bytes_stay_here(self):
        (self.folder / "ten").write_bytes(b"0123456789")
        server = self.server(503, 200)
        self.run_program(*QUICK, "-C", "4", "-T", "ten", server.url("/x"))
        self.assertEqual(len(server.seen), 2)
        for seen in server.seen:
            self.assertEqual((seen.body, seen.headers["content-range"]), (b"456789", "bytes 4-9/10"))
            self.assertNotIn("range", seen.headers)
        self.run_program("-C", "9", "-T-", server.url("/x"), stdin=b"0123456789")
        self.assertEqual(server.seen[-1].body, b"9")
        for args in (("-T", "ten"), ("-T-",)):
            result = self.run_program("-C", "10", *args, server.url(), status=26,
                                      stdin=b"0123456789")
            self.assertIn("it has 10 bytes, but -C skips 10", result.stderr.decode())
        result = self.run_program("-C", "1", "-T-", server.url(), status=26, stdin=self.LARGE)
        self.assertIn("it is too long for -C, which needs to know its size", result.stderr.decode())

    def test_the_rate_is_limited(self):
        (self.folder / "file").write_bytes(b"u" * 180000)
        server = self.server(200)
        for args in (("-T", "file"), ("--data-binary", "@file"), ("-F", "f=@file")):
            began = time.monotonic()
            self.run_program("--limit-rate", "100K", *args, server.url("/x"))
            self.assertGreater(time.monotonic() - began, 0.9)
            self.assertIn(b"u" * 180000, server.seen[-1].body)

    def test_more_than_can_be_kept_is_not_for_two(self):
        result = self.run_program("-T", "-", "-T", "-", "http://h/1", "http://h/2",
                                  stdin=self.LARGE, status=26)
        self.assertIn("longer than 64 MiB, so it cannot be read twice", result.stderr.decode())

    def test_a_signal_ends_the_wait_for_a_pipe(self):
        for begun in (b"some", self.LARGE):
            server = self.server(200)
            process = subprocess.Popen([PROGRAM, "-T", "-", server.url("/x")],
                                       stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       env=clean_environment())
            self.addCleanup(process.stdin.close)
            self.addCleanup(process.kill)
            process.stdin.write(begun)
            process.stdin.flush()
            wait_until(lambda p=process: blocks_its_signals(p.pid))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(LIMIT), 130)
            self.assertEqual(server.seen, [])

    def test_a_signal_ends_the_wait_for_one_who_writes(self):
        os.mkfifo(self.folder / "fifo")
        for args in (("-T", "fifo"), ("-F", "a=@fifo"), ("-F", "a=<fifo"), ("-H", "@fifo"),
                     ("-F", "a=b;headers=@fifo")):
            with self.subTest(args=args):
                process = self.start(*args, "http://127.0.0.1:1/x")
                wait_until(lambda p=process: blocks_its_signals(p.pid))
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(LIMIT), 143)

    def test_a_pipe_is_read_from_when_one_writes(self):
        os.mkfifo(self.folder / "fifo")
        server = self.server(200)
        process = self.start("-T", "fifo", server.url("/x"))
        (self.folder / "fifo").write_bytes(b"at last")
        self.assertEqual(process.wait(LIMIT), 0)
        self.assertEqual(server.seen[0].body, b"at last")

    def test_a_form(self):
        (self.folder / "cat.jpg").write_bytes(b"\xff\xd8")
        (self.folder / "note").write_text("from a file")
        server = self.server(503, 200)
        self.run_program(*QUICK, "--idempotency-key", "-F", "title=A cat;type=text/x-title",
                         "-F", "picture=@cat.jpg", "-F", "note=<note",
                         "-F", 'other=@"note";filename="n\\"1"', server.url())
        first, second = server.seen
        self.assertEqual(first.body, second.body)
        self.assertEqual(first.method, "POST")
        self.assertRegex(first.headers["content-type"], r"^multipart/form-data; boundary=")
        for part in (b'name="title"', b"text/x-title", b"\r\n\r\nA cat\r\n", b"\xff\xd8",
                     b'name="picture"; filename="cat.jpg"', b"image/jpeg", b"from a file",
                     b'name="other"; filename="n%221"'):
            self.assertIn(part, first.body)

    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_a_form_as_curl_has_it(self):
        (self.folder / "a").write_bytes(b"AA")
        (self.folder / "b.txt").write_bytes(b"B")
        (self.folder / "c,d;e").write_bytes(b"C")
        (self.folder / "headers").write_text("# no header\n\nX-1: a \r\nX-2: b\n  c\n")
        fields = ("-F", "f=@a,b.txt", "-F", 'g=@a;type=text/x;headers="X-Own: \\"o\\"";filename=n',
                  "-F", "h=v;headers=@headers;headers=X-3: d", "-F", "i=<b.txt", "-F",
                  "j= v ;type=text/html;charset=u ; filename=x.jpg", "--form-string", "k=@a;type=x",
                  "-F", 'l=@a;type=text/q,b.txt;filename="q\\"r.txt"', "-F", 'm="a;b, c" ', "-F", 'n="o',
                  "-F", 'p=@"c,d;e"', "-F", "q=", "-F", "r=<-", "-F", "s=v;headers=Content-Type:a/b")
        server = self.server(200)
        bodies = []
        for program in (PROGRAM, "curl"):
            subprocess.run([program, "-sS", *fields, server.url()], check=True, cwd=self.folder,
                           input=b"in", timeout=LIMIT, env=clean_environment())
            seen = server.seen[-1]
            names = re.findall(r"boundary=(\S+)", (seen.headers["content-type"] + "\n" +
                                                  seen.body.decode()).replace("\r", ""))
            text = seen.body.decode()
            for at, name in enumerate(sorted(set(names), key=names.index)):
                text = re.sub(f"(--|=){re.escape(name)}", rf"\1B{min(at, 1)}", text)
            bodies.append(text)
        self.assertEqual(bodies[0], bodies[1])


class Cookies(ProgramTest):
    def test_cookies_are_sent_kept_and_written(self):
        server = self.server(Response(200, b"", [("Set-Cookie", "a=1; Path=/")]), 200)
        self.run_program("-b", "x=y", "-b", "z=w", "-c", "jar", server.url("/1"), server.url("/2"))
        self.assertEqual(server.seen[0].headers["cookie"], "x=y; z=w")
        self.assertIn("a=1", server.seen[1].headers["cookie"])
        self.assertIn("\ta\t1", (self.folder / "jar").read_text())
        self.run_program("-b", "jar", "-b", "not-there", server.url("/3"))
        self.assertEqual(server.seen[2].headers["cookie"], "a=1")
        self.assertIn(b"\ta\t1", self.run_program("-b", "jar", "-c", "-", server.url()).stdout)

    def test_files_that_are_none(self):
        (self.folder / "jar").write_text("nonsense\n")
        result = self.run_program("-b", "jar", "http://127.0.0.1:1/", status=26)
        self.assertIn("jar", result.stderr.decode())
        server = self.server(200)
        self.run_program("-c", "no/where", server.url(), status=23)


class Ways(ProgramTest):
    def test_a_proxy(self):
        proxy = self.server(Response(200, b"by proxy"))
        address = f"127.0.0.1:{proxy.port}"
        result = self.run_program("-x", address, "-U", "me:pw", "http://nowhere.example/p")
        self.assertEqual(result.stdout, b"by proxy")
        self.assertEqual(proxy.seen[0].target, "http://nowhere.example/p")
        self.assertEqual(proxy.seen[0].headers["proxy-authorization"], "Basic bWU6cHc=")
        server = self.server(Response(200, b"direct"))
        for args in (("--noproxy", "*"), ("-x", "")):
            self.assertEqual(self.run_program("-x", address, *args, server.url()).stdout,
                             b"direct")
        self.assertEqual(self.run_program("http://nowhere.example/",
                                          env={"http_proxy": "http://" + address}).stdout,
                         b"by proxy")

    def test_a_name_is_sent_elsewhere(self):
        server = self.server(Response(200, b"x"))
        for args in (("--resolve", f"far.example:80:127.0.0.1"),
                     ("--resolve", "+*:80:127.0.0.1,127.0.0.2"),
                     ("--resolve", "FAR.example:80:127.0.1.1,127.0.1.2,127.0.0.1"),
                     ("--connect-to", f"far.example:80:127.0.0.1:{server.port}")):
            port = "" if "--connect-to" in args else f":{server.port}"
            fitting = [arg.replace(":80:127", f":{server.port}:127") if port else arg
                       for arg in args]
            self.run_program(*fitting, f"http://far.example{port}/")
            self.assertEqual(server.seen[-1].headers["host"], f"far.example{port}")

    def test_families_and_interfaces(self):
        server = self.server(Response(200, b"x"))
        url = f"http://localhost:{server.port}/"
        self.run_program("-4", url)
        self.run_program("--ipv4", "--interface", "127.0.0.1", url)
        self.run_program("--retry", 0, "-6", url, status=7)
        self.run_program("--retry", 0, "--interface", "nope", url, status=45)

    def test_a_unix_socket(self):
        path = str(self.folder / "socket")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        self.addCleanup(listener.close)

        def response():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nunix")

        threading.Thread(target=response, daemon=True).start()
        self.assertEqual(self.run_program("--unix-socket", path, "http://h/").stdout, b"unix")

    def test_netrc(self):
        server = self.server(200)
        (self.folder / ".netrc").write_text("machine 127.0.0.1 login me password pw\n")
        (self.folder / ".netrc").chmod(0o600)
        for args in (("--netrc-file", ".netrc"), ("-n",)):
            self.run_program(*args, server.url(), env={"HOME": str(self.folder)})
            self.assertEqual(server.seen[-1].headers["authorization"], "Basic bWU6cHc=")
        self.run_program("--netrc-file", "none", server.url(), status=26)

    def test_versions_of_http(self):
        server = self.server(Response(200, b"x"))
        for flag in ("--http1.1", "--http2"):
            result = self.run_program(flag, "-w", " %{http_version}", server.url())
            self.assertEqual(result.stdout, b"x 1.1")
        if not shutil.which("nghttpd"):
            self.skipTest("no nghttpd (nghttp2-server)")
        holder, port = closed_port()
        holder.close()
        (self.folder / "f").write_bytes(b"two")
        second = subprocess.Popen(["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d",
                                   str(self.folder), str(port)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(second.wait)
        self.addCleanup(second.kill)
        result = self.run_program("--http2-prior-knowledge", "--set", "backoff.initial=200ms",
                                  "--retry", 20, "--set", "budget=\"none\"", "-w",
                                  " %{http_version}", f"http://127.0.0.1:{port}/f")
        self.assertEqual(result.stdout, b"two 2")

    def test_compressed(self):
        import gzip
        server = self.server(Response(200, gzip.compress(b"plain"), [("Content-Encoding", "gzip")]))
        self.assertEqual(self.run_program("--compressed", server.url()).stdout, b"plain")
        self.assertIn("gzip", server.seen[0].headers["accept-encoding"])


class Tls(ProgramTest):
    def serve(self):
        process = self.start("serve", "--tls", "--outcomes", "200", "--log", "log")
        address = process.stdout.readline().decode().strip()
        return address, process.stderr.readline().decode().split(": ")[1].strip()

    def test_authorities_and_versions(self):
        address, authority = self.serve()
        for flag in ("--tlsv1.2", "--tlsv1.3"):
            self.run_program(flag, "--cacert", authority, address)
        os.mkdir(self.folder / "certs")
        self.run_program("--retry", 0, "--capath", "certs", "--cacert", "/dev/null", address,
                         status=77)
        self.run_program("-k", address)
        self.run_program(address, env={"CURL_CA_BUNDLE": authority})
        pin = "sha256//" + "A" * 43 + "="
        result = self.run_program("--retry", 0, "--pinnedpubkey", pin, "--cacert", authority,
                                  address, status=90)
        self.assertIn("pinned", result.stderr.decode().lower())

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_our_own_certificate(self):
        def openssl(*args):
            subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True)

        for name in ("server", "me"):
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key",
                    "-out", f"{name}.pem", "-subj", f"/CN={name}", "-addext",
                    "subjectAltName=IP:127.0.0.1")
        openssl("rsa", "-aes128", "-in", "me.key", "-out", "locked.key", "-passout", "pass:pw")
        (self.folder / "both.pem").write_text((self.folder / "me.pem").read_text() +
                                              (self.folder / "locked.key").read_text())
        server = subprocess.Popen(
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", "server.pem", "-key",
             "server.key", "-CAfile", "me.pem", "-Verify", "1", "-verify_return_error", "-www"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for line in server.stdout:
            if line.startswith(b"ACCEPT"):
                break
        address = "https://" + line.decode().split()[1]
        for args in (("-E", "me.pem", "--key", "me.key"), ("-E", "both.pem:pw"),
                     ("--cert", "me.pem", "--key", "locked.key", "--pass", "pw")):
            result = self.run_program("--cacert", "server.pem", *args, address)
            self.assertIn(b"Client certificate", result.stdout)
        result = self.run_program("--retry", 0, "--cacert", "server.pem", address, status=56)


class Many(ProgramTest):
    def test_urls_of_files_of_options(self):
        server = self.server(Response(200, b"x"))
        for name in ("one", "two"):
            (self.folder / name).write_text(f'url = {server.url("/" + name)}\noutput = {name}.out\n')
        result = self.run_program("-Z", "-K", "one", "-K", "two", server.url("/three"))
        self.assertEqual(sorted(seen.target for seen in server.seen), ["/one", "/three", "/two"])
        self.assertEqual((result.stdout, (self.folder / "two.out").read_bytes()), (b"x", b"x"))
        self.assertRegex(result.stderr.decode(), r"^httpretry: 3 succeeded, 0 failed, 3 attempts, 3 bytes")

    def test_urls_at_once_each_by_its_policy(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        slow = self.server(Response(200, b"slow", hold=gate))
        good = self.server(Response(200, b"good"))
        bad = self.server(503)
        (self.folder / "p.json").write_text(json.dumps({"version": 1, "endpoints": [
            {"match": {"host": "127.0.0.1", "port": bad.port},
             "policy": {"preset": "standard", "max_attempts": 2,
                        "backoff": {"kind": "none"}}}]}))
        process = self.start("-Z", "--policy", "p.json", "--report", "r.json", "-o", "1", "-o", "2",
                             "-o", "3", slow.url(), good.url(), bad.url("/b"))
        for server in (slow, good, bad, bad):
            server.arrived.get(timeout=LIMIT)
        gate.set()
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 22)
        reports = self.report("r.json")
        self.assertEqual([each["url"] for each in reports],
                         [slow.url(), good.url(), bad.url("/b")])
        self.assertEqual([len(each["attempts"]) for each in reports], [1, 1, 2])
        self.assertEqual((self.folder / "1").read_bytes(), b"slow")
        lines = said.decode().splitlines()
        self.assertRegex(lines[-1],
                         r"^httpretry: 2 succeeded, 1 failed, 4 attempts, \d+ bytes in [\d.]+ m?s$")
        start = f"httpretry: [3] (22) GET {bad.url('/b')}: gave up after 2 attempts"
        self.assertTrue(any(line.startswith(start) for line in lines), lines)

    def test_the_budget_of_standard_does_not_end_retries_in_an_outage(self):
        urls, fails = 40, 250  # more retries than `standard` allows
        quick = (*QUICK, "--set", "backoff.max_interval=2ms", "--retry", 200)
        server = self.server(*[503] * fails, 200)
        self.run_program("-sSZ", *quick, *[server.url(f"/{i}") for i in range(urls)])
        self.assertEqual(len(server.seen), urls + fails)
        server = self.server(*[503] * fails, 200)
        self.run_program("-sSZ", *quick, "--set", "budget.capacity=500",
                         *[server.url(f"/{i}") for i in range(urls)], status=22)

    def test_no_more_at_once_than_asked_for(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(Response(200, b"x", hold=gate))
        process = self.start("-sZ", "--parallel-max", 2, *[server.url(f"/{i}") for i in range(5)])
        server.arrived.get(timeout=LIMIT)
        server.arrived.get(timeout=LIMIT)
        time.sleep(0.2)
        self.assertEqual(len(server.seen), 2)
        gate.set()
        out, said = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out, said), (0, b"xxxxx", b""))

    def test_a_signal_ends_all(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(Response(200, hold=gate))
        process = self.start("-Z", *[server.url(f"/{i}") for i in range(3)])
        for _ in range(3):
            server.arrived.get(timeout=LIMIT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)


class Config(ProgramTest):
    def test_a_file_of_options(self):
        server = self.server(Response(200, b"x"))
        (self.folder / "inner").write_text('user-agent = "in\\"ner"\n')
        (self.folder / "c").write_text(
            f'# for people\n\nurl = "{server.url("/c")}"\nheader: "X-A: b c"  # why not\n'
            f'-H X-B:d\n--request=PUT\nconfig inner\nsilent\noutput one\n')
        self.run_program("-K", "c")
        seen = server.seen[0]
        self.assertEqual((seen.method, seen.target), ("PUT", "/c"))
        self.assertEqual((seen.headers["x-a"], seen.headers["x-b"]), ("b c", "d"))
        self.assertEqual(seen.headers["user-agent"], 'in"ner')
        self.assertEqual((self.folder / "one").read_bytes(), b"x")
        self.assertEqual(self.run_program("-K-", stdin=f"url={server.url()}".encode()).stdout,
                         b"x")

    def test_what_it_refuses(self):
        for text, message in (("\nretyr 3", "c:2: option --retyr is unknown; did you mean --retry?"),
                              ('data = "open', "c:1: the closing quote is missing"),
                              ('data = "a" b', "c:1: unexpected text after the closing quote"),
                              ("header = X-A: b", "c:1: a value with spaces must be in quotes"),
                              ("silent = yes", "c:1: option --silent takes no value"),
                              ("max-time", "c:1: option --max-time needs a value"),
                              ("config c", "c: option files include each other more than 16 levels deep")):
            (self.folder / "c").write_text(text)
            self.assertIn(message, self.usage_error("-K", "c", "http://h/"))
        result = self.run_program("-K", "none", "http://h/", status=26)
        self.assertIn("cannot read none", result.stderr.decode())


class WriteOut(ProgramTest):
    def test_ours(self):
        server = self.server(503, Response(200, b"x"))
        result = self.run_program(*QUICK, "-so", "/dev/null", "-w",
                                  "%{attempts} %{stop_reason} %{wire_sends}", server.url())
        self.assertEqual(result.stdout, b"2 success 2")

    def test_all_as_json(self):
        server = self.server(Response(200, b"x", [("X-A", "1"), ("x-a", "2")]))
        result = self.run_program("-so", "/dev/null", "-w", "%{json}", server.url())
        values = json.loads(result.stdout)
        self.assertEqual((values["http_code"], values["attempts"], values["size_download"]),
                         (200, 1, 1))
        result = self.run_program("-so", "/dev/null", "-w", "%{header_json}", server.url())
        self.assertEqual(json.loads(result.stdout)["x-a"], ["1", "2"])

    def test_from_a_file_and_to_standard_error(self):
        server = self.server(Response(200, b"x"))
        (self.folder / "f").write_text("%{stderr}%{http_code}%{stdout}%{onerror}never")
        result = self.run_program("-w", "@f", server.url())
        self.assertEqual((result.stdout, result.stderr), (b"x", b"200"))
        result = self.run_program("-w", "%{nonsense}", server.url())
        self.assertIn(b"unknown --write-out variable: 'nonsense'", result.stderr)

    def test_the_version_and_the_urls_after_an_error(self):
        template = "%{http_version}|%{redirect_url}|%{url_effective}"
        server = self.server(Response(200, raw=b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"))
        self.assertEqual(self.run_program("-w", "%{http_version}", server.url()).stdout, b"1")
        server = self.server(Response(302, b"", [("Location", "/b")]))
        result = self.run_program("-L", "--max-redirs", 1, "-w", template, server.url(), status=47)
        self.assertEqual(result.stdout.decode(), f"1.1|{server.url('/b')}|{server.url('/b')}")
        holder, port = closed_port()
        self.addCleanup(holder.close)
        gone = f"http://127.0.0.1:{port}/gone"
        server = self.server(Response(302, b"", [("Location", gone)]))
        result = self.run_program("-L", "--retry", 0, "-w", template, server.url(), status=7)
        self.assertEqual(result.stdout.decode(), f"0||{gone}")
        server = self.server(Response(302, b"", [("Location", "http://[")]))
        result = self.run_program("-w", template, server.url())
        self.assertEqual(result.stdout.decode(), f"1.1|http://[|{server.url()}")

    def test_connections(self):
        server = self.server(Response(302, b"", [("Location", "/b")]), Response(200, b"x"))
        result = self.run_program("-sLo", "1", "-o", "2", "-w", "%{num_connects} %{remote_port} "
                                  "%{local_port} %{size_request}\n", server.url("/a"),
                                  server.url("/c"))
        first, second = (tuple(map(int, line.split())) for line in result.stdout.splitlines())
        self.assertEqual((first[:2], second[:2]), ((1, server.port), (0, server.port)))
        self.assertEqual(first[2], second[2])
        self.assertGreater(first[2], 0)
        self.assertEqual(first[3], 2 * second[3])
        holder, port = closed_port()
        self.addCleanup(holder.close)
        server.responses = [Response(200, raw=b"HTTP/1.1 200 OK\r\n\r\n")]
        for args, status in (((f"http://127.0.0.1:{port}/",), 7),
                             (("-x", f"127.0.0.1:{server.port}", "https://h/"), 35)):
            result = self.run_program("--retry", 0, "-sw", "%{http_connect} %{num_connects} "
                                      "%{json}", *args, status=status)
            connect, made, values = result.stdout.decode().split(" ", 2)
            values = json.loads(values)
            self.assertEqual((int(connect), int(made)),
                             (values["http_connect"], values["num_connects"]))
        self.assertEqual(connect, "200")

    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_json_has_what_curls_has(self):
        server = self.server(Response(200, b"x"))
        ours, theirs = (json.loads(subprocess.run(
            [program, "-so", "out", "-w", "%{json}", server.url()], capture_output=True,
            cwd=self.folder, env=clean_environment(), timeout=LIMIT, check=False).stdout)
            for program in (PROGRAM, "curl"))
        # What curl has got after 7.88.
        newer = {"conn_id", "xfer_id", "proxy_used", "size_delivered", "time_posttransfer",
                 "time_queue", "tls_earlydata"}
        known = {name: value for name, value in theirs.items()
                 if name not in newer and not name.startswith(("url.", "urle."))}
        self.assertEqual(set(known) - set(ours), set())
        for name, value in known.items():
            if name == "scheme":  # in small letters from 8.8 on
                value = value.upper()
            if not name.startswith(("time_", "speed_", "local_port", "size_", "url", "curl_version")):
                self.assertEqual(ours[name], value, name)

    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_certificates_as_curl_has_them(self):
        process = self.start("serve", "--tls", "--outcomes", "200", "--log", "log")
        address = process.stdout.readline().decode().strip()
        authority = process.stderr.readline().decode().split(": ")[1].strip()
        for way, status in ((("-k",), 0), (("--cacert", authority), 0), ((), 60)):
            seen = [subprocess.run(
                [program, "-so", "out", "-w", "%{ssl_verify_result}|%{num_certs}|%{certs}", *way,
                 address], capture_output=True, cwd=self.folder, env=clean_environment(),
                timeout=LIMIT, check=False) for program in (PROGRAM, "curl")]
            self.assertEqual([each.returncode for each in seen], [status] * 2)
            self.assertEqual(seen[0].stdout, seen[1].stdout)
            if status == 0:
                self.assertIn(b"-----BEGIN CERTIFICATE-----", seen[0].stdout)

    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_the_same_as_curl(self):
        names = ("content_type errormsg exitcode filename_effective http_code http_version method "
                 "num_headers num_redirects redirect_url referer response_code scheme "
                 "size_download size_upload url url_effective urlnum ftp_entry_path http_connect "
                 "ssl_verify_result proxy_ssl_verify_result remote_ip remote_port local_ip "
                 "num_connects num_certs certs").split()
        template = "|".join(f"{name}=%{{{name}}}" for name in names) + r"\n%header{x-a} %% \\t\t"
        for args, responses in (
                (["-e", "http://from/", "-d", "four"], [Response(200, b"body", [("X-A", "v"),
                 ("Content-Type", "a/b")])]),
                (["-L"], [Response(302, b"", [("Location", "/b?c")]), Response(200, b"end")]),
                (["-L", "-d", "four"], [Response(303, b"", [("Location", "/b")]), Response(200, b"end")]),
                (["-L", "-d", "four"], [Response(308, b"", [("Location", "/b")]), Response(200, b"end")]),
                (["-L", "--post302", "-d", "four"], [Response(302, b"", [("Location", "/b")]),
                                                     Response(200, b"end")]),
                ([], [Response(302, b"go", [("Location", "b")])])):
            seen = []
            server = self.server(*responses)
            for program in (PROGRAM, "curl"):
                server.seen = []
                seen.append(subprocess.run(
                    [program, "-so", "out", "-w", template, *args, server.url("/a/")],
                    capture_output=True, cwd=self.folder, env=clean_environment(),
                    timeout=LIMIT, check=False).stdout.decode().split("|"))
            # In small letters from curl 8.8 on.
            seen[1] = ["scheme=HTTP" if value == "scheme=http" else value for value in seen[1]]
            self.assertEqual(seen[0], seen[1])


@unittest.skipUnless(os.path.exists(NGINX), "no nginx (nginx-light)")
class WithNginx(ProgramTest):
    def test_a_download_goes_on_and_uploads_arrive(self):
        holder, port = closed_port()
        holder.close()
        www = self.folder / "www"
        www.mkdir()
        self.folder.chmod(0o755)
        body = os.urandom(3 << 20)
        (www / "big").write_bytes(body)
        (self.folder / "conf").write_text(
            f"daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/log;\n"
            "events {}\nhttp { access_log off;\n"
            + "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in
                      ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            + f"server {{ listen 127.0.0.1:{port}; root {www}; }} }}\n")
        nginx = subprocess.Popen([NGINX, "-p", str(self.folder), "-c", str(self.folder / "conf"),
                                  "-e", str(self.folder / "log")])
        self.addCleanup(nginx.wait)
        self.addCleanup(nginx.terminate)
        url = f"http://127.0.0.1:{port}/big"
        (self.folder / "part").write_bytes(body[:1 << 20])
        self.run_program("--set", "backoff.initial=100ms", "--retry", 20, "-C", "-", "-o", "part",
                         "-w", "%{http_code}", url)
        self.assertEqual((self.folder / "part").read_bytes(), body)
        self.run_program("-C", "-", "-o", "part", url)  # there is no more of it
        self.assertEqual((self.folder / "part").read_bytes(), body)
        head = self.run_program("-I", url).stdout
        self.assertIn(b"Content-Length: 3145728", head)


if __name__ == "__main__":
    main()
