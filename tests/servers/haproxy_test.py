"""haproxy: requests that wait too long in its queue, and clients that ask too often."""

import threading
import time

from daemon import ServerTest, free_port, main
from program import Response


class Slow(threading.Event):
    """A response that takes its time."""

    def wait(self, timeout=None):
        time.sleep(0.06)
        return True


class Haproxy(ServerTest):
    def haproxy(self, frontend, server_options=""):
        self.origin = self.server(Response(200, b"done", hold=Slow()))
        port = free_port()
        (self.folder / "haproxy.cfg").write_text(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  timeout queue 100ms
  retries 0
frontend in
  bind 127.0.0.1:{port}
  {frontend}
  default_backend out
backend out
  server one 127.0.0.1:{self.origin.port} {server_options}
""")
        self.daemon("haproxy", "-db", "-f", self.folder / "haproxy.cfg", port=port)
        return f"http://127.0.0.1:{port}/"

    def done(self, reports, count):
        """All have their response, and the origin did each once."""
        self.assertEqual([each["status"] for each in reports], [200] * count)
        targets = [seen.target for seen in self.origin.seen]
        self.assertEqual(len(targets), count)
        self.assertEqual(len(set(targets)), count)

    def test_a_timeout_in_the_queue(self):
        url = self.haproxy("", "maxconn 1")
        self.policy(max_attempts=40, backoff={"kind": "exponential", "initial": "50ms",
                                              "max_interval": "200ms"})
        reports = self.finish(self.load(url, 12))
        self.done(reports, 12)
        statuses = [a["status"] for each in reports for a in each["attempts"]]
        self.assertGreater(statuses.count(503), 0)

    def test_too_many_requests_of_one_client(self):
        url = self.haproxy("""
  stick-table type ip size 1k expire 10s store http_req_rate(300ms)
  http-request track-sc0 src
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 4 }""")
        self.policy(max_attempts=40, throttle_backoff={"kind": "exponential", "initial": "300ms",
                                                       "max_interval": "1s"})
        reports = self.finish(self.load(url, 10, "-d", "a POST"))
        self.done(reports, 10)
        statuses = [a["status"] for each in reports for a in each["attempts"]]
        self.assertGreater(statuses.count(429), 0)


if __name__ == "__main__":
    main("haproxy", "haproxy")
