"""Proxies that lie about a tunnel. Nothing is sent through it, and each call ends."""

import contextlib
import socket
import threading

from program import LIMIT, QUICK, ProgramTest, main, stop_accepting

OK = b"HTTP/1.1 200 OK\r\n"
LOGIN = b"HTTP/1.1 407 Login\r\nProxy-Authenticate: "


class LyingProxy:
    """Answers each CONNECT with `reply`, and then with `more` until the client goes."""

    def __init__(self, reply, more=b""):
        self.reply, self.more = reply, more
        self.connects = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://me:pw@127.0.0.1:{self.listener.getsockname()[1]}"
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.settimeout(LIMIT)
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while any(line == b"\r\n" for line in stream):
                self.connects += 1
                connection.sendall(self.reply)
                while self.more:
                    connection.sendall(self.more)


class Lies(ProgramTest):
    def get(self, reply, more=b"", status=56, args=()):
        proxy = LyingProxy(reply, more)
        self.addCleanup(stop_accepting, proxy.listener, proxy.accepting)
        result = self.run_program(*QUICK, "--retry", 1, "--report", "report.json", "-x", proxy.url,
                                  *args, "https://example.test/", status=status)
        self.assertEqual(result.stdout, b"")
        for attempt in self.report()["attempts"]:
            self.assertEqual((attempt["sent"], attempt["wire_sends"]), ("never", 0))
        self.assertLessEqual(proxy.connects, 2)
        return result.stderr.decode()

    def test_what_follows_a_tunnel_is_no_response(self):
        for rest in (b"\r\nno TLS" * 50, b"Content-Length: 5\r\n\r\nhello",
                     b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"):
            with self.subTest(rest=rest):
                self.assertIn("wrong version number", self.get(OK + rest, status=35))

    def test_a_login_that_is_never_good_enough_ends(self):
        for scheme in (b"Basic realm=x", b"Digest realm=x, nonce=n, stale=true"):
            with self.subTest(scheme=scheme):
                self.assertIn("with status 407", self.get(LOGIN + scheme + b"\r\n\r\n"))

    def test_a_refusal_has_no_body_to_wait_for(self):
        self.assertIn("with status 407", self.get(
            LOGIN + b"Basic realm=x\r\nContent-Length: 99999999999\r\n\r\n", b"b" * 65536))
        self.assertIn("with status 403", self.get(
            b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n"))

    def test_headers_without_end_are_too_large(self):
        self.assertIn("headers are larger than 262144 bytes",
                      self.get(OK, b"X: %s\r\n" % (b"y" * 200) * 100, status=63))
        self.assertIn("too large", self.get(OK + b"X: ", b"y" * 65536))

    def test_a_redirect_of_a_tunnel_leads_nowhere_and_sets_no_cookie(self):
        reply = b"HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nSet-Cookie: a=b\r\n\r\n"
        self.assertIn("with status 302", self.get(reply, args=("-L", "-c", "jar")))
        self.assertNotIn("a", (self.folder / "jar").read_text().splitlines()[-1].split("\t"))

    def test_a_time_limit_ends_a_tunnel_that_is_never_there(self):
        for reply in (b"", OK, OK + b"\r\n", b"SSH-2.0\r\n", b"HTTP/1.1 204 No\r\n\r\n"):
            with self.subTest(reply=reply):
                self.get(reply, status=28, args=("-m", "0.3"))


if __name__ == "__main__":
    main()
