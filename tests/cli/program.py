"""Shared by the tests of the program: running it, and a server on the loopback interface that sends
scripted responses and records the requests."""

import contextlib
import json
import os
import pathlib
import pty
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

PROGRAM = os.environ["HTTPRETRY"]
DATA = pathlib.Path(__file__).parent / "data"
NOT_HERE = "this machine has none: "  # starts the reason of a skip that no package can fix
LIMIT = 300  # seconds: only a hanging test reaches it, even on a machine with much other work


def main():
    """Runs the tests of the calling file. The exit status is 77, which ctest shows as skipped, if a
    test was skipped because something is not installed."""
    result = unittest.main(exit=False).result
    for test, why in result.skipped:
        print(f"skipped: {test}: {why}")
    missing = [why for _, why in result.skipped if not why.startswith(NOT_HERE)]
    sys.exit(1 if not result.wasSuccessful() else 77 if missing else 0)


def some(cases):
    """All of them, or a fourth in builds with a sanitizer, where each start takes many times as long."""
    return list(cases)[::4] if os.environ.get("HTTPRETRY_SANITIZE") else cases


def clean_environment():
    unwanted = {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "no_color"}
    kept = {k: v for k, v in os.environ.items()
            if k.lower() not in unwanted and not k.startswith(("HTTPRETRY", "CURL_", "SSL_CERT"))}
    return kept


def read_terminal(terminal, look=lambda said: None):
    """All that programs write to it until the last has ended; `look` sees what there is so far."""
    said = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            return said
        if not piece:
            return said
        said += piece
        look(said)


class Response:
    """Status, body and headers; or raw bytes; or reset: the connection is closed without a response."""

    def __init__(self, status, body=b"", headers=(), raw=None, hold=None, reset=False,
                 hold_rest=None):
        self.status, self.body, self.headers, self.raw = status, body, headers, raw
        self.hold = hold  # an Event to wait for before responding
        self.hold_rest = hold_rest  # the same before the second half of the body
        self.reset = reset

    def bytes(self, head):
        if self.raw is not None:
            return self.raw
        lines = [f"HTTP/1.1 {self.status} Reason", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        text = "\r\n".join(lines) + "\r\n\r\n"
        return text.encode() + (b"" if head else self.body)


class Seen:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body


class Server:
    """Each request takes the next response; the last repeats."""

    def __init__(self, *responses):
        self.responses = [a if isinstance(a, Response) else Response(a) for a in responses]
        self.seen = []
        self.arrived = queue.Queue()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(ConnectionError), connection, \
                connection.makefile("rb") as stream:
            while True:
                line = stream.readline().decode("latin-1").split()
                if len(line) != 3:
                    return
                headers = {}
                for field in iter(stream.readline, b"\r\n"):
                    name, _, value = field.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
                body = self.read_body(stream, headers)
                with self.lock:
                    response = self.responses[min(len(self.seen), len(self.responses) - 1)]
                    self.seen.append(Seen(line[0], line[1], headers, body))
                self.arrived.put(None)
                if response.hold is not None:
                    response.hold.wait(LIMIT)
                if response.reset:
                    return
                try:
                    rest = response.bytes(line[0] == "HEAD")
                    if response.hold_rest is not None:
                        half = len(rest) // 2
                        connection.sendall(rest[:half])
                        rest = rest[half:]
                        response.hold_rest.wait(LIMIT)
                    connection.sendall(rest)
                except OSError:
                    return
                if response.raw is not None:
                    return

    @staticmethod
    def read_body(stream, headers):
        if headers.get("transfer-encoding") == "chunked":
            chunks = []
            while True:
                size = int(stream.readline() or b"0", 16)
                chunks.append(stream.read(size))
                stream.readline()
                if size == 0:
                    return b"".join(chunks)
        return stream.read(int(headers.get("content-length", 0)))

    def close(self):
        stop_accepting(self.listener, self.accepting)


def stop_accepting(listener, thread):
    """Ends the thread before it closes the socket. A thread that still waits in accept() when its
    descriptor is closed can take a connection of the next server that gets the same descriptor: the
    kernel may restart the call."""
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


def closed_port():
    """A port where nobody listens, and the socket that reserves it."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]


def limit_of(files):
    """The beginning of a command that may have so many files open; None: as many as the test."""
    return ["sh", "-c", f'ulimit -n {files} && exec "$0" "$@"'] if files else []


def wait_until(holds):
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def blocks_its_signals(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    blocked = int(re.search(r"SigBlk:\s+(\w+)", status).group(1), 16)
    # While a process starts a thread, it blocks all signals.
    return blocked & (1 << (signal.SIGINT - 1)) != 0 and blocked & (1 << (signal.SIGURG - 1)) == 0


class ProgramTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # A killed program leaves temporary files behind.
        environment = unittest.mock.patch.dict(os.environ, TMPDIR=folder.name)
        environment.start()
        self.addCleanup(environment.stop)

    def server(self, *responses):
        server = Server(*responses)
        self.addCleanup(server.close)
        return server

    def run_program(self, *args, status=0, stdin=b"", env=None, files=None):
        """`files`: how many it may have open."""
        result = subprocess.run([*limit_of(files), PROGRAM, *map(str, args)], input=stdin, capture_output=True,
                                timeout=LIMIT, env=clean_environment() | (env or {}),
                                cwd=self.folder, check=False,
                                start_new_session=True)  # without a terminal to ask on
        allowed = status if isinstance(status, tuple) else (status,)
        self.assertIn(result.returncode, allowed, result.stderr.decode())
        return result

    def start(self, *args, stdin=None, env=None, files=None):
        process = subprocess.Popen([*limit_of(files), PROGRAM, *map(str, args)], stdin=stdin, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=clean_environment() | (env or {}),
                                   cwd=self.folder)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_out_of_descriptors(self, server, *args, files):
        """Runs the program, which says once that it lacks descriptors: until then `server` does not respond,
        so none gets free. Returns all that it said."""
        server.responses[0].hold = enough = threading.Event()
        self.addCleanup(enough.set)
        program = self.start(*args, files=files)
        notice, said = "httpretry: fewer requests are sent at a time: ", ""
        while notice not in said:
            line = program.stderr.readline().decode()
            self.assertTrue(line, said)
            said += line
        enough.set()
        said += program.communicate(timeout=LIMIT)[1].decode()
        self.assertEqual((program.returncode, said.count(notice)), (0, 1), said)
        return said

    def type_at_terminal(self, *args, typed, question):
        """What the terminal showed, and the exit status."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execve(PROGRAM, [PROGRAM, *args], clean_environment())

        def answer(said):
            if said.endswith(question):
                os.write(terminal, typed)

        said = read_terminal(terminal, answer)
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        return said, status

    def report(self, name="report.json"):
        return json.loads((self.folder / name).read_text())

    def usage_error(self, *args):
        result = self.run_program(*args, status=2)
        self.assertEqual(result.stdout, b"")
        return result.stderr.decode().splitlines()[0]


QUICK = ("--set", "backoff.initial=1ms", "--set", 'throttle_backoff="none"')
