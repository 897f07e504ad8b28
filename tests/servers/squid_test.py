"""squid as the proxy of plain requests and of tunnels; what it refuses never reached the origin."""

import signal

from daemon import ServerTest, free_port, main
from program import Response, closed_port


class Squid(ServerTest):
    def squid(self, rules="http_access allow all"):
        port = free_port()
        self.folder.chmod(0o777)
        (self.folder / "squid.conf").write_text(f"""
http_port 127.0.0.1:{port}
{rules}
cache deny all
pid_filename none
cache_log {self.folder}/cache_log
access_log stdio:{self.folder}/access_log
netdb_filename none
shutdown_lifetime 0 seconds
connect_timeout 2 seconds
connect_retries 0
""")
        self.how_to_end = signal.SIGKILL  # it would take its time
        self.daemon("squid", "-N", "-f", self.folder / "squid.conf", port=port)
        return f"http://127.0.0.1:{port}"

    def test_plain_requests_with_retries(self):
        proxy = self.squid()
        origin = self.server(503, Response(200, b"through"))
        self.policy(backoff={"kind": "none"})
        result = self.run_program("-x", proxy, "--policy", "policy.json", "--report", "report.json",
                                  origin.url("/a"))
        self.assertEqual(result.stdout, b"through")
        self.assertEqual(len(origin.seen), 2)
        self.assertIn("squid", origin.seen[0].headers["via"])
        self.assertEqual([a["status"] for a in self.report()["attempts"]], [503, 200])

    def test_a_tunnel(self):
        proxy = self.squid()
        process = self.start("serve", "--tls", "--outcomes", "503:retry-after=0,200")
        address = process.stdout.readline().decode().strip()
        authority = process.stderr.readline().decode().split(": ")[1].strip()
        self.run_program("-x", proxy, "--cacert", authority, "--report", "report.json", address)
        self.assertEqual([a["status"] for a in self.report()["attempts"]], [503, 200])

    def test_a_tunnel_that_is_refused_was_never_sent(self):
        proxy = self.squid("acl tunnels method CONNECT\nhttp_access deny tunnels\n"
                           "http_access allow all")
        self.policy(backoff={"kind": "none"})
        self.run_program("-x", proxy, "--policy", "policy.json", "--report", "report.json",
                         "-d", "x", "https://127.0.0.1:1/", status=56)
        attempts = self.report()["attempts"]
        self.assertEqual([(a["sent"], a["wire_sends"]) for a in attempts], [("never", 0)])
        self.assertIn("with status 403", attempts[0]["error"]["message"])

    def test_an_origin_that_is_down_is_tried_again(self):
        proxy = self.squid()
        holder, port = closed_port()
        self.addCleanup(holder.close)
        self.policy(max_attempts=3, backoff={"kind": "none"})
        self.run_program("-x", proxy, "--policy", "policy.json", "--report", "report.json",
                         f"http://127.0.0.1:{port}/", status=22)
        self.assertEqual([a["status"] for a in self.report()["attempts"]], [503] * 3)


if __name__ == "__main__":
    main("squid", "squid-openssl")
