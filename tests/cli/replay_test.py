"""--har-bodies and serve --har: what is recorded, what is replayed, and the recipes of the page."""
import base64
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import types
import unittest.mock

from program import LIMIT, PROGRAM, ProgramTest, Response, clean_environment, main

PAGE = pathlib.Path(__file__).parents[2] / "lib/extras/testing/README.md"
SECRET = "s3cr3t"


def recipes(language):
    section = PAGE.read_text().split("## Replay recorded traffic")[1]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.S | re.M)


class Replay(ProgramTest):
    def record(self, server, *args):
        self.run_program("--har", "recorded.har", "--har-bodies", "--set", "backoff.initial=1ms", *args)
        return json.loads((self.folder / "recorded.har").read_text())["log"]["entries"]

    def serve(self, har="recorded.har"):
        process = self.start("serve", "--har", har, "--log", "log")
        return process, process.stdout.readline().decode().strip()

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        return process.wait(LIMIT), process.stderr.read().decode()

    def test_what_was_recorded_is_replayed(self):
        binary = bytes(range(256))
        server = self.server(Response(503, b"busy"), Response(0, reset=True), Response(200, b"first", [("X-A", "b")]),
                             Response(200, binary))
        url = server.url(f"/a?key={SECRET}")
        entries = self.record(server, "-H", f"Authorization: {SECRET}", "-o", "one", "-o", "two", url, url)
        self.assertNotIn(SECRET, (self.folder / "recorded.har").read_text())
        self.assertEqual([entry["response"]["status"] for entry in entries], [503, 0, 200, 200])
        contents = [entry["response"]["content"] for entry in entries]
        self.assertEqual([contents[0]["text"], contents[2]["text"]], ["busy", "first"])
        self.assertEqual(base64.b64decode(contents[3]["text"]), binary)
        # The output is the same as without an archive.
        self.assertEqual([(self.folder / name).read_bytes() for name in ("one", "two")], [b"first", binary])

        process, address = self.serve()
        result = self.run_program("--set", "backoff.initial=1ms", "--report", "report.json", "-i",
                                  address + "/a?key=another")
        self.assertIn(b"X-A: b", result.stdout)
        self.assertTrue(result.stdout.endswith(b"first"))
        self.assertEqual([attempt["status"] for attempt in self.report()["attempts"]], [503, None, 200])
        for _ in range(2):  # the last response repeats
            self.assertEqual(self.run_program("-o", "-", address + "/a?key=x").stdout, binary)
        self.assertEqual(self.end(process), (0, ""))

    def test_compressed_bodies(self):
        import gzip
        body = gzip.compress(b"plain")
        for flags, recorded in (((), body), (("--compressed",), b"plain")):
            server = self.server(Response(200, body, [("Content-Encoding", "gzip")]))
            self.record(server, *flags, "-o", "out", server.url())
            process, address = self.serve()
            self.assertEqual(self.run_program("-o", "-", address + "/").stdout, recorded)
            self.assertEqual(self.run_program("--compressed", address + "/").stdout, b"plain")
            self.end(process)

    def test_a_request_that_was_not_recorded(self):
        server = self.server(Response(200, b"x"))
        self.record(server, server.url("/a"))
        process, address = self.serve()
        result = self.run_program("--no-fail", address + "/b?c=d")
        self.assertEqual(result.stdout, b"no response to GET /b?c=d was recorded\n")
        status, said = self.end(process)
        self.assertEqual((status, said), (1, "httpretry: no response to GET /b?c=d was recorded\n"
                                             "httpretry: 1 request had no recorded response\n"))

    def test_an_archive_without_bodies(self):
        server = self.server(Response(200, b"x"))
        self.run_program("--har", "recorded.har", server.url("/a"))
        self.assertNotIn("text\"", (self.folder / "recorded.har").read_text())
        process, address = self.serve()
        self.assertIn(b"--har-bodies", self.run_program("--no-fail", address + "/a").stdout)
        self.assertEqual(self.end(process)[0], 1)

    def test_redirects_stay_at_the_server(self):
        there = self.server(Response(200, b"there"))
        server = self.server(Response(302, b"", [("Location", there.url(f"/b?token={SECRET}"))]))
        self.record(server, "-L", server.url("/a"))
        process, address = self.serve()
        self.assertEqual(self.run_program("-L", address + "/a").stdout, b"there")
        self.assertEqual(self.end(process)[0], 0)
        self.assertEqual(len(there.seen), 1)

    def test_pages_stay_at_the_server(self):
        server = self.server(200)
        link = f'<{server.url(f"/a?page=2&key={SECRET}")}>; rel="next"'
        server.responses = [Response(200, b"[1]", [("Link", link)]), Response(200, b"[2]")]
        self.record(server, "--join-pages", server.url("/a"))
        process, address = self.serve()
        self.assertEqual(json.loads(self.run_program("--join-pages", address + "/a").stdout), [1, 2])
        self.assertEqual(self.end(process)[0], 0)
        self.assertEqual(len(server.seen), 2)

    def test_mistakes(self):
        self.assertIn("--har-bodies needs --har", self.usage_error("--har-bodies", "http://127.0.0.1/"))
        (self.folder / "bad.har").write_text('{"log": {}}')
        self.assertIn("the archive has errors", self.usage_error("serve", "--har", "bad.har"))
        result = self.run_program("serve", "--har", "bad.har", status=2)
        self.assertIn('bad.har:1:9: /log: expected an array "entries" here', result.stderr.decode())
        self.assertIn("option --har: cannot read missing.har", self.usage_error("serve", "--har", "missing.har"))
        self.assertIn("cannot be combined", self.usage_error("serve", "--har", "bad.har", "--outcomes", "200"))
        with open(self.folder / "huge.har", "wb") as file:
            file.truncate((64 << 20) + 1)
        self.assertIn("option --har: cannot read huge.har", self.usage_error("serve", "--har", "huge.har"))


class Recipes(ProgramTest):
    def setUp(self):
        super().setUp()
        server = self.server(Response(503), Response(200, b"[1, 2]"))
        self.run_program("--har", "recorded.har", "--har-bodies", "--set", "backoff.initial=1ms",
                         server.url("/v1/items"))
        (self.folder / "bin").mkdir()
        (self.folder / "bin/httpretry").symlink_to(PROGRAM)
        client = self.folder / "my_client"
        client.write_text('#!/bin/sh\nexec httpretry -fsS --set backoff.initial=1ms "$1"\n')
        client.chmod(client.stat().st_mode | stat.S_IXUSR)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        self.environment = clean_environment() | {"PATH": path}

    def run_recipe(self, *command):
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True,
                              timeout=LIMIT, check=False)

    def test_shell(self):
        (self.folder / "replay.sh").write_text(recipes("sh")[-1])
        result = self.run_recipe("sh", "replay.sh", self.folder / "my_client")
        self.assertEqual((result.returncode, result.stdout), (0, b"[1, 2]"), result.stderr)
        # A client that requests something else fails, even if it does not notice.
        (self.folder / "my_client").write_text('#!/bin/sh\nhttpretry -sS "$1/other" || true\n')
        result = self.run_recipe("sh", "replay.sh", self.folder / "my_client")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"no response to GET /v1/items/other was recorded", result.stderr)

    def test_ctest(self):
        (self.folder / "replay.sh").write_text(recipes("sh")[-1])
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(client LANGUAGES NONE)\nenable_testing()\n"
            + recipes("cmake")[0])
        for command in (("cmake", "-S", ".", "-B", "build"), ("ctest", "--test-dir", "build", "--output-on-failure")):
            result = self.run_recipe(*command)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_pytest(self):
        """With stand-ins for pytest, which only marks the fixture here, and for the client."""
        def items(url):
            return json.loads(self.run_recipe("./my_client", url).stdout)

        stand_ins = {"pytest": types.SimpleNamespace(fixture=lambda function: function),
                     "my_client": types.SimpleNamespace(items=items)}
        names = {}
        with unittest.mock.patch.dict(sys.modules, stand_ins), \
                unittest.mock.patch.dict(os.environ, PATH=self.environment["PATH"]):
            exec(recipes("python")[0], names)  # pylint: disable=exec-used
            self.addCleanup(os.chdir, os.getcwd())
            os.chdir(self.folder)
            server = names["server"]()
            names["test_items"](next(server))
            self.assertRaises(StopIteration, next, server)

    def test_they_are_short(self):
        for recipe in recipes("sh") + recipes("cmake") + recipes("python"):
            self.assertLessEqual(len(recipe.splitlines()), 20)


if __name__ == "__main__":
    main()
