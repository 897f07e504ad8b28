"""Shared by the tests of queues: a Redis server, a proxy before it that delays, and the commands."""

import contextlib
import json
import queue
import re
import shutil
import socket
import subprocess
import threading
import time
import unittest

from program import LIMIT, ProgramTest, closed_port, stop_accepting, wait_until

QUIET = ("--progress", "none")
SHORT = ("--lease", "500ms")


class Redis:
    """A server on a free port; `again` starts it once more after `kill`, with what it had on disk."""

    def __init__(self, folder, *options):
        self.folder, self.options = folder, options
        while True:
            holder, self.port = closed_port()
            holder.close()
            self.again()
            # Else another process has taken the port.
            if self.process.poll() is None:
                break

    def again(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", str(self.folder), *self.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.process.poll() is not None or self.responds())

    def responds(self):
        try:
            ours = b"process_id:%d\r\n" % self.process.pid in self.ask("INFO", "server")
            return ours and self.ask("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def ask(self, *words):
        """The beginning of the reply to a command."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT) as connection:
            text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            connection.sendall(text.encode())
            return connection.recv(65536)

    def url(self, port=None):
        return f"redis://127.0.0.1:{port or self.port}/0?job=jobs"

    def kill(self):
        self.process.kill()
        self.process.wait()


class SlowProxy:
    """Passes bytes on to a port, `delay` seconds later; what comes back, at once."""

    def __init__(self, port):
        self.target, self.delay = port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            late = queue.Queue()
            for target, args in ((self.read, (client, lambda piece, to=late: to.put(
                                      (time.monotonic() + self.delay, piece)))),
                                 (self.write_late, (late, server)),
                                 (self.read, (server, client.sendall))):
                threading.Thread(target=target, args=args, daemon=True).start()

    @staticmethod
    def read(source, use):
        with contextlib.suppress(OSError), source:
            while piece := source.recv(65536):
                use(piece)
        with contextlib.suppress(OSError):
            use(b"")

    @staticmethod
    def write_late(late, target):
        with contextlib.suppress(OSError), target:
            while True:
                due, piece = late.get()
                time.sleep(max(due - time.monotonic(), 0))
                if not piece:
                    return
                target.sendall(piece)

    def close(self):
        stop_accepting(self.listener, self.accepting)


@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not installed")
class QueueTest(ProgramTest):
    def redis(self, *options):
        # With appendfsync everysec, Redis keeps what it has acknowledged in memory while its disk is busy, and loses
        # it if it is killed then. The system keeps what was written.
        self.queue = Redis(self.folder, *(options or ("--appendonly", "yes", "--appendfsync", "no")))
        self.addCleanup(self.queue.kill)
        return self.queue

    def input(self, *lines):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        (self.folder / "in.jsonl").write_text(text)
        return "in.jsonl"

    def enqueue(self, *lines, status=0, args=()):
        return self.run_program("batch", "--queue", self.queue.url(), "--enqueue", *args,
                                self.input(*lines), status=status).stderr.decode()

    def words(self, *args, port=None):
        return ("work", "--queue", self.queue.url(port), *args)

    def work(self, *args, status=0, **more):
        return self.run_program(*self.words(*args), status=status, **more)

    def drain(self, *args, status=0):
        ran = self.work("--drain", *args, status=(0, 22, 75))
        if ran.returncode != status:
            self.fail(f"{ran.returncode}, not {status}: {ran.stderr.decode()}"
                      + self.work("--results", "-", *QUIET).stdout.decode())
        return ran.stderr.decode()

    def start_worker(self, *args, port=None):
        return self.start(*self.words(*args, port=port))

    def results(self, name="results"):
        self.work("--results", name, *QUIET)
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def states(self):
        return sorted((line["id"], line["state"]) for line in self.results())

    def status(self):
        text = self.work("--status").stdout.decode()
        found = re.findall(r"^ +([\d ]+)  ([a-z ]+)$", text, re.MULTILINE)
        return {name: int(count.replace(" ", "")) for count, name in found}

    def refused(self, *args):
        return self.run_program(*args, status=23).stderr.decode()
