"""Shared by the tests with production servers: starts them in a folder of their own, and compares what
both ends counted."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))

from program import LIMIT, ProgramTest, clean_environment, main as main_of_tests  # noqa: E402  pylint: disable=C0413

NO_BUDGET = {"budget": "none"}


def main(program, package):
    """As program.main; skipped without the server."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if shutil.which(program) is None:
        print(f"skipped: {program} is not installed (package {package})")
        sys.exit(77)
    main_of_tests()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class ServerTest(ProgramTest):
    how_to_end = signal.SIGTERM

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # servers that are started by root become somebody else

    def daemon(self, *words, port, say="daemon.out"):
        """Started, and listening; ends with the test."""
        out = open(self.folder / say, "ab")  # pylint: disable=consider-using-with
        self.addCleanup(out.close)
        process = subprocess.Popen(list(map(str, words)), stdout=out, stderr=out, cwd=self.folder,
                                   env=clean_environment(), stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, process, self.how_to_end)
        deadline = time.monotonic() + LIMIT
        while not listens(port):
            self.assertIsNone(process.poll(), (self.folder / say).read_text())
            self.assertLess(time.monotonic(), deadline, "it does not listen")
            time.sleep(0.005)
        return process

    @staticmethod
    def end(process, how=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()

    def make_certificate(self):
        """key.pem and cert.pem, which trusts itself."""
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1"],
                       cwd=self.folder, check=True, capture_output=True)

    def policy(self, **keys):
        """The policy of all requests."""
        (self.folder / "policy.json").write_text(json.dumps(
            {"version": 1, "default": {"preset": "standard", **NO_BUDGET, **keys}}))

    def load(self, url, count, *args, at_once=16):
        """Starts sending numbered requests, "URL?N". The responses are discarded, because the program
        would wait for a reader."""
        (self.folder / "urls").write_text("".join(f'url = "{url}?{i}"\noutput = "/dev/null"\n'
                                                  for i in range(count)))
        return self.start("-Z", "--parallel-max", at_once, "--policy", "policy.json",
                          "--report", "report.json", "-s", "-K", "urls", *args)

    def finish(self, process, status=0):
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, status, said.decode()[-2000:])
        return self.report()

    def books_agree(self, reports, seen):
        """`seen`: the request targets in the server's log, in any order."""
        counts = {}
        for target in seen:
            number = target.partition("?")[2]
            counts[number] = counts.get(number, 0) + 1
        for each in reports:
            number = each["url"].partition("?")[2]
            answered = sum(a["sent"] == "answered" for a in each["attempts"])
            sent = sum(a["wire_sends"] for a in each["attempts"])
            count = counts.pop(number, 0)
            self.assertLessEqual(answered, count, each)
            self.assertLessEqual(count, sent, each)
        self.assertEqual(counts, {}, "the server saw what nobody sent")
