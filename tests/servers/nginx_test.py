"""nginx: rate limits, reloads and restarts under load, connections that it closes first, 444."""

import json
import signal
import time

from daemon import ServerTest, free_port, listens, main
from program import LIMIT


class Nginx(ServerTest):
    scheme = "http"

    def nginx(self, server, http="", port=None, listen=""):
        self.port = port or free_port()
        temporary = " ".join(f"{kind}_temp_path {self.folder}/t_{kind};" for kind in
                             ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(f"""
daemon off; worker_processes 2; pid {self.folder}/pid; error_log {self.folder}/error_log;
events {{ worker_connections 1000; }}
http {{
  {temporary}
  log_format targets '$request_method $request_uri $status';
  access_log {self.folder}/access_log targets;
  {http}
  server {{ listen 127.0.0.1:{self.port} {listen}; root {self.folder}/www; {server} }}
}}
""")
        (self.folder / "www").mkdir(exist_ok=True)
        (self.folder / "www/file").write_bytes(b"f" * 3000)
        return self.start_again()

    def start_again(self):
        return self.daemon("nginx", "-p", self.folder, "-c", self.folder / "nginx.conf",
                           "-e", self.folder / "error_log", port=self.port)

    def http2(self, server, http=""):
        self.make_certificate()
        self.scheme = "https"
        return self.nginx(f"ssl_certificate {self.folder}/cert.pem; {server}",
                          f"ssl_certificate_key {self.folder}/key.pem; {http}", listen="ssl http2")

    def url(self, path="/file"):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def log(self, least=0):
        """Its lines come after the responses; `least`: as many as there must be."""
        deadline = time.monotonic() + LIMIT
        while True:
            lines = (self.folder / "access_log").read_text().splitlines()
            if len(lines) >= least:
                return [line.split() for line in lines]
            self.assertLess(time.monotonic(), deadline, "lines are missing")
            time.sleep(0.005)

    def test_a_rate_limit_is_kept_to_and_everything_gets_through(self):
        self.nginx("limit_req zone=z burst=3 nodelay; limit_req_status 429;",
                   "limit_req_zone $server_port zone=z:1m rate=20r/s;")
        self.policy(max_attempts=30, throttle_backoff={"kind": "exponential", "initial": "100ms",
                                                       "max_interval": "400ms"})
        reports = self.finish(self.load(self.url(), 40))
        self.assertEqual({each["status"] for each in reports}, {200})
        attempts = sum(len(each["attempts"]) for each in reports)
        statuses = [status for _, _, status in self.log(attempts)]
        self.assertEqual(statuses.count("200"), 40)
        self.assertGreater(statuses.count("429"), 0)
        self.assertEqual(len(statuses), attempts)

    def test_the_budget_lasts_while_a_limiter_lets_requests_through(self):
        self.nginx("limit_req zone=z burst=3 nodelay; limit_req_status 429;",
                   "limit_req_zone $server_port zone=z:1m rate=20r/s;")
        urls = [f"{self.url()}?{i}" for i in range(80)]
        ran = self.run_program("-s", "-Z", "--retry", 8, "--set", "throttle_backoff.initial=200ms",
                               "--report", "report.json", "-o", "/dev/null",
                               *[word for url in urls for word in (url, "-o", "/dev/null")][:-2])
        self.assertEqual(ran.returncode, 0)
        reports = json.loads((self.folder / "report.json").read_text())
        self.assertEqual([each["stop_reason"] for each in reports], ["success"] * 80)
        retries = sum(len(each["attempts"]) - 1 for each in reports)
        self.assertGreater(retries, 100)  # more than the budget of a program

    def test_a_post_that_was_limited_is_sent_again_and_done_once(self):
        origin = self.server(200)
        self.nginx(f"limit_req zone=z burst=1 nodelay; limit_req_status 429;"
                   f"location / {{ proxy_pass {origin.url('')}; proxy_next_upstream off; }}",
                   "limit_req_zone $server_port zone=z:1m rate=20r/s;")
        self.policy(max_attempts=30, throttle_backoff={"kind": "exponential", "initial": "100ms",
                                                       "max_interval": "400ms"})
        reports = self.finish(self.load(self.url("/"), 12, "-d", "once"))
        self.assertEqual({each["status"] for each in reports}, {200})
        self.assertGreater(sum(len(each["attempts"]) for each in reports), 12)
        targets = [seen.target for seen in origin.seen]
        self.assertEqual((len(targets), len(set(targets))), (12, 12))

    def test_reloads_under_load_lose_nothing(self):
        process = self.nginx("")
        self.policy(max_attempts=6, backoff={"kind": "constant", "interval": "5ms"})
        load = self.load(self.url(), 1500)
        self.log(50)
        reloads = 0
        while load.poll() is None and reloads < 20:
            process.send_signal(signal.SIGHUP)
            reloads += 1
            time.sleep(0.03)
        reports = self.finish(load)
        self.assertEqual({each["status"] for each in reports}, {200})
        self.end(process, signal.SIGQUIT)  # writes its log to the end
        self.books_agree(reports, [target for _, target, _ in self.log()])

    def test_a_stop_and_a_start_under_load(self):
        process = self.nginx("")
        self.policy(max_attempts="unlimited", backoff={"kind": "constant", "interval": "20ms"},
                    connect_timeout="5s")
        load = self.load(self.url(), 1500)
        for i in range(4):
            self.log(50 * (i + 1))
            self.end(process, signal.SIGTERM)
            self.assertFalse(listens(self.port))
            time.sleep(0.05)
            process = self.start_again()
        reports = self.finish(load)
        self.assertEqual({each["status"] for each in reports}, {200})
        self.end(process, signal.SIGQUIT)
        log = [target for _, target, _ in self.log()]
        self.assertLessEqual(len(reports), len(log))
        attempts = [a for each in reports for a in each["attempts"]]
        self.assertGreater(len(attempts), len(reports))
        self.assertLessEqual(len(log), sum(a["wire_sends"] for a in attempts))

    def test_connections_that_the_server_closes_first(self):
        self.nginx("keepalive_timeout 200ms; location / { return 503 busy; }")
        self.policy(max_attempts=12, backoff={"kind": "constant", "interval": "200ms"})
        self.run_program("--policy", "policy.json", "--report", "report.json", self.url("/a"),
                         status=22)
        attempts = self.report()["attempts"]
        stale = [a for a in attempts if a["status"] is None]
        # Of the connections that were closed in that very moment, the first of a call costs no attempt.
        answered = 12 - max(0, len(stale) - 1)
        self.assertEqual([a["status"] for a in attempts if a not in stale], [503] * answered)
        self.assertEqual(len(self.log(answered)), answered)
        self.assertLess(len(stale), 6, attempts)
        for number, attempt in enumerate(stale):
            rule = "transport: (receive|send)" if number > 0 else "stale connection"
            self.assertRegex(attempt["rule"], f"^{rule}$", attempts)

    def test_444_is_no_response_and_a_post_is_not_repeated(self):
        self.nginx("location / { return 444; }")
        self.policy(max_attempts=3, backoff={"kind": "none"})
        self.run_program("--policy", "policy.json", "--report", "report.json", self.url("/g"),
                         status=52)
        self.assertEqual(self.report()["stop_reason"], "attempts_exhausted")
        self.run_program("--policy", "policy.json", "--report", "report.json", "-d", "x",
                         self.url("/p"), status=52)
        self.assertEqual(self.report()["stop_reason"], "unsafe_to_repeat")
        self.assertEqual(self.log(4), [["GET", "/g", "444"]] * 3 + [["POST", "/p", "444"]])

    def posts_over_http2(self, keepalive_requests, count):
        """Each reads its request to the end, in the server behind it."""
        process = self.http2(
            f"keepalive_requests {keepalive_requests};"
            f"location / {{ proxy_pass http://unix:{self.folder}/origin:; }}",
            f"server {{ listen unix:{self.folder}/origin; access_log off; return 200; }}")
        self.policy(max_attempts=40, backoff={"kind": "none"})
        reports = self.finish(self.load(self.url("/"), count, "--cacert", "cert.pem", "-d", "once",
                                        at_once=64))
        self.end(process, signal.SIGQUIT)
        targets = [target for _, target, _ in self.log()]
        (self.folder / "access_log").unlink()
        (self.folder / "origin").unlink(missing_ok=True)
        self.assertEqual({each["http_version"] for each in reports}, {"2"})
        self.assertEqual((len(targets), len(set(targets))), (count, count))
        return sum(len(each["attempts"]) for each in reports)

    def test_each_post_is_done_once_where_a_connection_takes_few_requests(self):
        attempts = 0
        for most, count in ((2, 500), (10, 500), (100, 500), (1000, 2500)):
            with self.subTest(keepalive_requests=most):
                attempts += self.posts_over_http2(most, count)
        self.assertGreater(attempts, 4000)

    def test_a_response_before_the_end_of_the_request_counts(self):
        self.http2("return 200;")
        self.policy(max_attempts=3, backoff={"kind": "none"})
        reports = self.finish(self.load(self.url("/"), 200, "--cacert", "cert.pem", "-d", "once",
                                        "-X", "PUT", at_once=1))
        self.assertEqual({each["status"] for each in reports}, {200})
        # libcurl 7.88 loses the headers where the end of the stream comes in the same read.
        attempts = [a for each in reports for a in each["attempts"]]
        self.assertEqual([a for a in attempts if a["error"] and a["status"] is not None], [])


if __name__ == "__main__":
    main("nginx", "nginx-light")
