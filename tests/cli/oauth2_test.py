"""--oauth2, with a token server that fails, throttles, expires tokens and revokes them."""

import base64
import http.server
import json
import os
import subprocess
import threading
import unittest
import urllib.parse

from program import PROGRAM, QUICK, ProgramTest, closed_port, main
from queue_program import QueueTest

SECRET = "s3cr3t/+ &"
ENCODED = urllib.parse.quote(SECRET, safe="")
BASIC = base64.b64encode(f"my%20app:{ENCODED}".encode()).decode()  # as the Authorization header has it


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def respond(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.world.serve_item(self)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/token":
            self.server.world.serve_token(self, body)
        else:
            self.server.world.serve_item(self)


class World:
    """A token server and an API. `failures` has the next responses of the token server, each a status, a body and
    headers; after those it issues tokens. `uses` is how many requests a token is good for; None: any number."""

    def __init__(self):
        self.lock = threading.Lock()
        self.failures = []
        self.expires_in = 3600
        self.uses = None
        self.token_requests = []  # (Authorization, parameters)
        self.left = {}  # by token
        self.statuses = []  # of the API
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.world = self
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def serve_token(self, handler, body):
        with self.lock:
            self.token_requests.append((handler.headers["Authorization"], dict(urllib.parse.parse_qsl(body))))
            if self.failures:
                response = self.failures.pop(0)
            else:
                token = f"t0k3n-{len(self.left) + 1}"
                self.left[token] = self.uses
                response = (200, json.dumps({"access_token": token, "token_type": "Bearer",
                                             "expires_in": self.expires_in}).encode())
        handler.respond(*response)

    def serve_item(self, handler):
        with self.lock:
            token = (handler.headers["Authorization"] or "").removeprefix("Bearer ")
            left = self.left.get(token, 0)
            status = 401 if left == 0 else 200
            if left:
                self.left[token] = left - 1
            self.statuses.append(status)
        handler.respond(status, b"an item\n" if status == 200 else b"")

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def refusal(status, **members):
    return status, json.dumps(members).encode(), [("Content-Type", "application/json")]


@unittest.skipUnless(b"--oauth2 " in subprocess.run([PROGRAM, "--help"], capture_output=True, check=True).stdout,
                     "this build has no --oauth2")
class OAuth2Test(ProgramTest):
    def setUp(self):
        super().setUp()
        self.world = World()
        self.addCleanup(self.world.close)
        self.url = self.world.url("/items")
        self.write()

    def write(self, **members):
        members = {"token_url": self.world.url("/token"), "id": "my app", "secret": SECRET} | members
        (self.folder / "oauth2.json").write_text(json.dumps(members))

    def run_oauth2(self, *args, **options):
        done = self.run_program("--oauth2", "oauth2.json", *QUICK, *args, **options)
        for output in (done.stdout, done.stderr):
            self.assert_no_secret(output.decode())
        return done

    def assert_no_secret(self, text):
        for hidden in ("s3cr3t", "t0k3n", base64.b64encode(b"my%20app:")[:11].decode()):
            self.assertNotIn(hidden, text)


class Send(OAuth2Test):
    def test_a_token_is_fetched_with_basic_authentication_and_used_for_all_urls(self):
        self.write(scope="read write")
        self.assertEqual(self.run_oauth2(self.url, self.url).stdout, b"an item\nan item\n")
        (authorization, parameters), = self.world.token_requests
        user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        self.assertEqual([urllib.parse.unquote(user), urllib.parse.unquote(password)], ["my app", SECRET])
        self.assertEqual(parameters, {"grant_type": "client_credentials", "scope": "read write"})

    def test_the_credentials_may_go_into_the_body_with_further_parameters(self):
        self.write(authentication="body", parameters={"audience": "api"})
        self.run_oauth2(self.url)
        self.assertEqual(self.world.token_requests, [
            (None, {"grant_type": "client_credentials", "client_id": "my app", "client_secret": SECRET,
                    "audience": "api"})])

    def test_parallel_requests_share_one_token_request(self):
        self.run_oauth2("-Z", *[self.url] * 20)
        self.assertEqual(len(self.world.token_requests), 1)
        self.assertEqual(self.world.statuses, [200] * 20)

    def test_a_token_server_that_fails_and_throttles_is_asked_again(self):
        self.world.failures = [(503,), (429, b"", [("Retry-After", "0")])]
        self.run_oauth2("--report", "report.json", "-o", "item", self.url)
        self.assertEqual(len(self.world.token_requests), 3)
        self.assertEqual([each["status"] for each in self.report()["attempts"]], [200])

    def test_a_token_that_expires_is_renewed_in_time(self):
        self.world.expires_in = 0
        self.run_oauth2(self.url, self.url)
        self.assertEqual((len(self.world.token_requests), self.world.statuses), (2, [200, 200]))

    def test_a_token_that_is_revoked_is_renewed_once(self):
        self.world.uses = 2
        self.run_oauth2(*[self.url] * 3)
        self.assertEqual((len(self.world.token_requests), self.world.statuses), (2, [200, 200, 401, 200]))
        self.world.uses = 0
        self.run_oauth2(self.url, status=22)
        self.assertEqual(self.world.statuses[4:], [401, 401])

    def test_the_message_names_the_token_url_and_what_the_server_said(self):
        token_url = self.world.url("/token")
        start = f"httpretry: (22) GET {self.url}: no bearer token: {token_url}: "
        for failure, said in (
                (refusal(401, error="invalid_client", error_description=f"no {SECRET}\x1b[2J"),
                 "invalid_client: no REDACTED"),
                (refusal(401, error="invalid_client", error_description=f"body client_secret={ENCODED}, header {BASIC}"),
                 "invalid_client: body client_secret=REDACTED, header REDACTED (status 401)"),
                (refusal(400, error="invalid_scope"), "invalid_scope (status 400)"),
                ((403, b"<html>"), "failed after 1 attempt in ")):
            with self.subTest(failure=failure):
                self.world.failures = [failure]
                shown = self.run_oauth2(self.url, status=22).stderr.decode()
                self.assertTrue(shown.startswith(start + said), shown)
                self.assertRegex(shown, r"^[\n -~]+$")
        self.world.failures = [(200, b"t0k3n")]
        self.assertIn("the body is not JSON", self.run_oauth2(self.url, status=8).stderr.decode())
        self.world.failures = [(200, b'{"access_token": "a\\r\\nX: y"}')]
        self.assertIn("its \"access_token\" contains a control byte", self.run_oauth2(self.url, status=8).stderr.decode())
        self.assertEqual(self.world.statuses, [])

    def test_a_token_server_that_is_down_has_its_own_exit_status(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        self.write(token_url=f"http://me.invalid:{port}/token?key=s3cr3t")
        shown = self.run_oauth2("--resolve", f"me.invalid:{port}:127.0.0.1", "--retry", 1, self.url, status=7)
        self.assertIn(f"http://me.invalid:{port}/token", shown.stderr.decode())

    def test_the_time_of_m_includes_the_token(self):
        self.world.failures = [(503, b"", [("Retry-After", "30")])]
        self.run_oauth2("-m", 1, self.url, status=(22, 28))
        self.assertEqual(self.world.statuses, [])

    def test_no_output_has_the_secret_or_the_token(self):
        self.world.failures = [(503,)]
        self.world.uses = 1
        self.run_oauth2("-v", "--trace", "--report", "report.json", "--har", "har.json", "--metrics", "metrics",
                        "-D", "headers", "-w", "%{json}", "-o", "a", "-o", "b", self.url, self.url)
        for name in ("report.json", "har.json", "metrics", "headers"):
            text = (self.folder / name).read_text()
            self.assertTrue(text)
            self.assert_no_secret(text)
        self.assertIn(self.world.url("/token"), (self.folder / "har.json").read_text())
        self.assertNotIn("503", (self.folder / "headers").read_text())
        self.assert_no_secret(self.run_oauth2("--log-json", self.url).stderr.decode())

    def test_the_token_stays_at_its_origin(self):
        other = self.server(200)
        first = self.start("serve", "--outcomes", f"302:location={other.url()}")
        self.run_oauth2("-L", first.stdout.readline().decode().strip())
        self.assertNotIn("authorization", other.seen[0].headers)
        self.assertEqual(len(self.world.token_requests), 1)

    def test_the_options_of_a_connection_apply_to_the_token_server_too(self):
        self.write(token_url=f"http://login.test:{self.world.server.server_address[1]}/token")
        self.run_oauth2("--connect-to", "login.test::127.0.0.1:", self.url)
        self.assertEqual(len(self.world.token_requests), 1)

    def test_mistakes_in_the_file_are_shown_with_their_position(self):
        for text, said in ((f'{{"secret": {SECRET}}}', "oauth2.json:1:12: this is not valid JSON"),
                           ('{\n "token_url": "x", "id": 7, "secret": "x"}',
                            "oauth2.json:2:26: /id: expected a string")):
            (self.folder / "oauth2.json").write_text(text)
            done = self.run_oauth2(self.url, status=2)
            self.assertTrue(done.stderr.decode().startswith(
                f"httpretry: option --oauth2: the file has errors:\n{said}\n"), done.stderr)
        os.unlink(self.folder / "oauth2.json")
        self.assertIn("cannot read oauth2.json", self.run_oauth2(self.url, status=26).stderr.decode())
        self.write()
        for login in (("-u", "a:b"), ("--oauth2-bearer", "x")):
            self.assertEqual(self.usage_error("--oauth2", "oauth2.json", *login, self.url),
                             "httpretry: --oauth2 cannot be combined with -u or --oauth2-bearer")

    def test_the_file_may_be_a_pipe(self):
        text = (self.folder / "oauth2.json").read_bytes()
        self.run_program("--oauth2", "-", self.url, stdin=text)
        self.assertEqual(self.world.statuses, [200])


class Batch(OAuth2Test):
    def run_batch(self, *args, count=5, **options):
        (self.folder / "urls.txt").write_text("".join(f"{self.url}?{i}\n" for i in range(count)))
        done = self.run_program("batch", "--oauth2", "oauth2.json", *QUICK, *args, "urls.txt", **options)
        for text in (done.stdout.decode(), done.stderr.decode(),
                     (self.folder / "urls.txt.results.jsonl").read_text()):
            self.assert_no_secret(text)
        return done

    def states(self):
        lines = (self.folder / "urls.txt.results.jsonl").read_text().splitlines()
        return [json.loads(line)["state"] for line in lines]

    def test_all_jobs_share_a_token(self):
        self.run_batch(count=30)
        self.assertEqual((self.states(), len(self.world.token_requests)), (["done"] * 30, 1))

    def test_jobs_wait_while_the_token_server_is_down(self):
        self.world.failures = [(503,)] * 100
        self.run_batch("--max-idle", 1, status=75)
        self.assertEqual((self.states(), self.world.statuses), ([], []))
        shown = self.run_program("batch", "--status", "--format", "json", "urls.txt.httpretry.db")
        self.assertEqual(json.loads(shown.stdout)["dead"], 0)

    def test_wrong_credentials_end_the_jobs(self):
        self.world.failures = [refusal(401, error="invalid_client")] * 100
        self.run_batch(status=22)
        self.assertEqual(self.states(), ["dead"] * 5)
        self.assertIn("invalid_client", (self.folder / "urls.txt.results.jsonl").read_text())

    def test_a_line_with_its_own_authorization_needs_no_token(self):
        (self.folder / "jobs.jsonl").write_text(json.dumps({"url": self.url, "headers": {"Authorization": "x"}}))
        self.run_program("batch", "--oauth2", "oauth2.json", "jobs.jsonl", status=22)
        self.assertEqual((self.world.token_requests, self.world.statuses), ([], [401]))


class Work(QueueTest, OAuth2Test):
    def test_the_jobs_of_a_worker_share_a_token(self):
        self.redis()
        self.enqueue(*[{"id": str(i), "url": self.url} for i in range(5)])
        self.assert_no_secret(self.drain("--oauth2", "oauth2.json", *QUICK))
        self.assertEqual((self.world.statuses, len(self.world.token_requests)), ([200] * 5, 1))


if __name__ == "__main__":
    main()
