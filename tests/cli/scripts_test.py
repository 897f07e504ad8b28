"""Scripts as people have them for curl. Each runs with the program under the name `curl`, and with
curl itself where it is installed: both must print the same, exit alike and leave the same files."""

import email.utils
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import textwrap
import threading

from program import LIMIT, PROGRAM, ProgramTest, clean_environment, main

FILE = bytes(range(256)) * 64
CHANGED = "Sun, 01 Nov 2020 10:00:00 GMT"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        count = self.server.counts[path] = self.server.counts.get(path, 0) + 1
        {"/healthz": self.health, "/file": self.file, "/me": self.me, "/mirror": self.mirror,
         "/login": lambda: self.answer(302, Set_Cookie="session=42; Path=/", Location="/me"),
         "/latest": lambda: self.answer(302, Location="/file/v1.2.tar.gz"),
         "/file/v1.2.tar.gz": lambda: self.answer(
             200, b"release", Content_Disposition='attachment; filename="../tool-1.2.tar.gz"'),
         "/slow": lambda: self.answer(503 if count < 3 else 200, b"up\n"),
         }.get(path, lambda: self.answer(404 if "missing" in path else 200,
                                         f"page {path}\n".encode()))()

    do_HEAD = do_GET

    def health(self):
        self.answer(200, b"ok")

    def me(self):
        known = "session=42" in self.headers.get("Cookie", "")
        self.answer(200 if known else 401, b"hello\n" if known else b"who are you\n")

    def mirror(self):
        since = self.headers.get("If-Modified-Since")
        newer = since and (email.utils.parsedate_to_datetime(since) >=
                           email.utils.parsedate_to_datetime(CHANGED))
        self.answer(304 if newer else 200, b"" if newer else b"content\n", Last_Modified=CHANGED)

    def file(self):
        asked = self.headers.get("Range")
        if not asked:
            return self.answer(200, FILE, ETag='"1"')
        first, last = asked.removeprefix("bytes=").split("-")
        begin, end = int(first), min(int(last or len(FILE)), len(FILE) - 1)
        self.answer(206, FILE[begin:end + 1], ETag='"1"',
                    Content_Range=f"bytes {begin}-{end}/{len(FILE)}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.command, self.path, self.headers["Content-Type"], body))
        self.answer(201, json.dumps({"id": 7, "bytes": len(body)}).encode())

    do_PUT = do_POST


class Site(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.counts, self.bodies = {}, []


class Scripts(ProgramTest):
    def run_script(self, script, curl, stdin=b""):
        """Runs it in an empty folder, where `curl` is that program, and $U is a new server."""
        folder = self.folder / pathlib.Path(curl).name
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "curl").symlink_to(curl)
        site = Site()
        threading.Thread(target=site.serve_forever, daemon=True).start()
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        (folder / "work").mkdir()
        env = clean_environment() | {"U": f"http://127.0.0.1:{site.server_port}",
                                     "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        ran = subprocess.run(["bash", "-c", textwrap.dedent(script)], cwd=folder / "work", env=env,
                             input=stdin, capture_output=True, timeout=LIMIT, check=False,
                             start_new_session=True)
        files = {str(path.relative_to(folder / "work")): path.read_bytes()
                 for path in (folder / "work").rglob("*") if path.is_file()}
        return ran, files, site

    def check(self, script, out, files=None, status=0, stdin=b""):
        """Returns the requests with a body."""
        programs = [str(pathlib.Path(PROGRAM).resolve())]  # "curl" is a link to it
        if shutil.which("curl"):
            programs.append(shutil.which("curl"))
        for program in programs:
            with self.subTest(program=program):
                ran, left, site = self.run_script(script, program, stdin)
                self.assertEqual((ran.stdout.decode(), ran.returncode), (out, status),
                                 ran.stderr.decode())
                self.assertEqual(left, files or {})
                bodies = site.bodies
        return bodies

    def test_health_check_loop(self):
        self.check("""
            for i in 1 2; do
              code=$(curl -s -o /dev/null -w '%{http_code}' --max-time 20 "$U/healthz")
              [ "$code" = 200 ] && echo "up $i" || echo "down: $code"
            done""", "up 1\nup 2\n")

    def test_download_that_is_resumed(self):
        self.check("""
            set -e
            curl -fsS -r 0-999 -o part "$U/file"
            curl -fsS -C 1000 -o part "$U/file"
            cmp part <(curl -fsS "$U/file") && wc -c < part""",
                   f"{len(FILE)}\n", {"part": FILE})

    def test_json_post_and_one_value_of_the_answer(self):
        bodies = self.check("""
            answer=$(curl -sS -X POST -H 'Content-Type: application/json' \\
                          -d '{"name": "x"}' "$U/items")
            echo "$answer" | sed -n 's/.*"id": \\([0-9]*\\).*/id=\\1/p'""", "id=7\n")
        self.assertEqual(bodies, [("POST", "/items", "application/json", b'{"name": "x"}')])

    def test_list_of_mirrors_at_once(self):
        self.check("""
            printf '%s\\n' a b c | while read -r name; do
              echo "url = $U/$name"; echo "output = $name.txt"
            done > list
            curl -sS -Z --parallel-max 2 --fail-early -K list && cat a.txt b.txt c.txt && rm list""",
                   "page /a\npage /b\npage /c\n",
                   {f"{name}.txt": f"page /{name}\n".encode() for name in "abc"})

    def test_wait_for_a_service_in_ci(self):
        self.check("""
            for i in $(seq 10); do
              curl --silent --fail --retry 5 --retry-delay 1 --retry-connrefused "$U/slow" && exit 0
            done
            exit 1""", "up\n")

    def test_webhook_with_data_from_standard_input(self):
        bodies = self.check("""curl -sS -o /dev/null -w '%{http_code}\\n' -d @- "$U/hook" """,
                            "201\n", stdin=b"text=done\n")
        self.assertEqual(bodies[0][3], b"text=done")

    def test_upload(self):
        bodies = self.check("""
            echo content > report.txt
            curl -fsS -T report.txt "$U/reports/" >/dev/null && echo stored""", "stored\n",
                            {"report.txt": b"content\n"})
        self.assertEqual([each[:2] for each in bodies], [("PUT", "/reports/report.txt")])

    def test_login_with_cookies(self):
        self.check("""
            curl -sS -L -c jar -o /dev/null "$U/login" && curl -sS -b jar "$U/me"
            curl -s -u me:secret --basic -w '%{http_code}\\n' "$U/me"
            rm jar""", "hello\nwho are you\n401\n")

    def test_exit_status_by_the_code(self):
        self.check("""
            get() { curl -s -o /dev/null -w '%{http_code}\\n' "$1"; }
            get "$U/x"; get "$U/missing"
            case $(get "$U/missing") in 404) echo none ;; *) echo some ;; esac""",
                   "200\n404\nnone\n")

    def test_fall_back_where_it_fails(self):
        self.check("""
            curl -fsS "$U/missing" 2>/dev/null || curl -fsS "$U/other"
            curl -fs "$U/missing"; echo $?""", "page /other\n22\n")

    def test_file_of_options_with_next(self):
        bodies = self.check("""
            cat > steps <<END
            url = "$U/first"
            request = POST
            data = "a=1"
            output = "one"
            next
            url = "$U/second"
            silent
            END
            curl -q -s -K steps; echo; rm one steps""", "page /second\n\n")
        self.assertEqual([each[:2] for each in bodies], [("POST", "/first")])

    def test_release_with_the_name_of_the_server(self):
        self.check("""
            curl -fsSL -OJ "$U/latest" && ls
            curl -fsSL -OJ "$U/latest" 2>/dev/null || echo "not again: $?"
            curl -fsSL --create-dirs --output-dir got/it --remote-name-all "$U/a.txt" "$U/b.txt" """,
                   "tool-1.2.tar.gz\nnot again: 23\n",
                   {"tool-1.2.tar.gz": b"release", "got/it/a.txt": b"page /a.txt\n",
                    "got/it/b.txt": b"page /b.txt\n"})

    def test_first_bytes(self):
        self.check("""curl -sS -r 0-3 "$U/file" | od -An -tu1; curl -s -r 0-0 -D - -o one "$U/file" |
                      tr -d '\\r' | grep -i -e '^content-range' -e ' 206'; rm one""",
                   "   0   1   2   3\nHTTP/1.1 206 Partial Content\n"
                   f"Content-Range: bytes 0-0/{len(FILE)}\n")

    def test_mirror_of_what_has_changed(self):
        self.check("""
            for i in 1 2; do
              curl -sS -z copy -o copy -w '%{http_code}\\n' "$U/mirror" 2>/dev/null
            done
            curl -s -z 2019-01-01 -o /dev/null -w '%{http_code}\\n' "$U/mirror" """,
                   "200\n304\n200\n", {"copy": b"content\n"})

    def test_install_script_over_tls_only(self):
        scenario = self.folder / "install.json"
        scenario.write_text(json.dumps({"steps": [{"status": 200, "body": "echo installed\n"}]}))
        process = self.start("serve", "--tls", "--scenario", scenario)
        address = process.stdout.readline().decode().strip()
        authority = process.stderr.readline().decode().split(": ")[1].strip()
        self.check(f"""
            curl --proto '=https' --tlsv1.2 -sSf --cacert {authority} {address}/install.sh | sh
            curl --proto '=https' -sSf "$U/install.sh" 2>/dev/null | sh
            echo "${{PIPESTATUS[0]}}" """, "installed\n1\n")


if __name__ == "__main__":
    main()
