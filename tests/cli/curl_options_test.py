"""Options of curl that scripts use, on the wire."""

import base64
import hashlib
import hmac
import os
import pathlib
import re
import shutil
import ssl
import struct
import subprocess
import threading
import unittest

from program import LIMIT, QUICK, ProgramTest, Response, Server, closed_port, main, wait_until

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
SECONDS = 784111777  # the same


def redirect(to, status=302):
    return Response(status, b"", [("Location", to)])


class Redirects(ProgramTest):
    def test_only_trusted_origins_get_everything(self):
        for trusted in (False, True):
            with self.subTest(trusted=trusted):
                other = self.server(200)
                first = self.server(Response(307, b"", [("Location", other.url("/there")),
                                                        ("Set-Cookie", "set=1")]))
                flags = ("--location-trusted",) if trusted else ("-L",)
                self.run_program(*flags, "-b", "", first.url())
                self.assertEqual(other.seen[0].headers.get("cookie"), "set=1" if trusted else None)
                self.run_program(*flags, "-u", "me:pw", "-b", "a=b", "-H", "X-Key: k", "-H",
                                 "Host: h.test", first.url())
                seen = other.seen[1].headers
                self.assertEqual(seen.get("authorization"), "Basic bWU6cHc=" if trusted else None)
                self.assertEqual(seen.get("x-key"), "k" if trusted else None)
                self.assertEqual(seen["host"], f"127.0.0.1:{other.port}")
                self.assertEqual(seen.get("cookie"), "a=b" if trusted else None)

    def test_trusted_origins_get_bodies_and_names_in_urls(self):
        other = self.server(200)
        first = self.server(redirect(other.url("/there"), 308))
        url = f"http://me:pw@127.0.0.1:{first.port}/"
        self.run_program("--location-trusted", "-d", "data", url)
        self.assertEqual((other.seen[0].method, other.seen[0].body), ("POST", b"data"))
        self.assertEqual(other.seen[0].headers["authorization"], "Basic bWU6cHc=")
        self.run_program("-L", "-d", "data", url, status=8)

    def test_a_post_stays_a_post_if_that_is_wanted(self):
        for status in (301, 302, 303):
            for flag in ((), ("--post301",), ("--post302",), ("--post303",)):
                server = self.server(redirect("/next", status), 200)
                self.run_program("-L", *flag, "-d", "data", server.url())
                kept = bool(flag) and flag[0].endswith(str(status))
                self.assertEqual((server.seen[1].method, server.seen[1].body),
                                 ("POST", b"data") if kept else ("GET", b""))


class Files(ProgramTest):
    def test_a_file_gets_the_time_of_its_content(self):
        server = self.server(Response(200, b"x", [("Last-Modified", DATE)]))
        for flags in (("-R", "-o", "f"), ("--remote-time", "-i", "-o", "f"), ("-R", "-O")):
            (self.folder / "f").unlink(missing_ok=True)
            self.run_program(*flags, server.url("/f"))
            self.assertEqual((self.folder / "f").stat().st_mtime, SECONDS)
        self.run_program("-o", "f", server.url())
        self.assertNotEqual((self.folder / "f").stat().st_mtime, SECONDS)
        for response in (Response(200, b"x"), Response(404, b"x", [("Last-Modified", DATE)]),
                         Response(200, b"x", [("Last-Modified", "then")])):
            self.run_program("-R", "-o", "f", self.server(response).url(), status=(0, 22))
            self.assertNotEqual((self.folder / "f").stat().st_mtime, SECONDS)
        self.run_program("-R", "-o", "/dev/null", server.url())
        self.run_program("-R", server.url())

    def test_an_etag_is_saved_and_compared(self):
        server = self.server(Response(200, b"one", [("ETag", '"1"')]), 304,
                             Response(200, b"two", [("ETag", 'W/"2"')]), Response(200, b"three"))
        flags = ("--etag-save", "tag", "--etag-compare", "tag", "-o", "f", server.url())
        for sent, body, tag in (('""', b"one", '"1"\n'), ('"1"', b"one", '"1"\n'),
                                ('"1"', b"two", 'W/"2"\n'), ('W/"2"', b"three", "")):
            self.run_program(*flags)
            self.assertEqual(server.seen[-1].headers["if-none-match"], sent)
            self.assertEqual((self.folder / "f").read_bytes(), body)
            self.assertEqual((self.folder / "tag").read_text(), tag)

    def test_an_etag_is_saved_only_with_its_content(self):
        (self.folder / "tag").write_text('"old"\n')
        for response in (Response(404, b"", [("ETag", '"new"')]),
                         Response(200, raw=b'HTTP/1.1 200 O\r\nETag: "new"\r\n'
                                           b"Content-Length: 9\r\n\r\nhalf")):
            self.run_program("--retry", 0, "--etag-save", "tag", "-o", "f",
                             self.server(response).url(), status=(18, 22))
            self.assertEqual((self.folder / "tag").read_text(), '"old"\n')

    def test_an_error_page_does_not_replace_the_content_of_an_etag(self):
        server = self.server(Response(200, b"good", [("ETag", '"1"')]), Response(500, b"bad"), 304)
        for status in (0, 22, 0):
            self.run_program("--retry", 0, "--etag-save", "tag", "--etag-compare", "tag", "-o", "f", server.url(),
                             status=status)
            self.assertEqual((self.folder / "f").read_bytes(), b"good")

    def test_an_error_page_is_no_file_with_remove_on_error(self):
        server = self.server(Response(404, b"bad"))
        for flags in ([], ["-i"], ["-i", "-f"]):
            self.run_program("--remove-on-error", *flags, "-o", "f", server.url(), status=22)
            self.assertFalse((self.folder / "f").exists())
        ran = self.run_program("--remove-on-error", "-o", "f", server.url(), "--next", server.url(), status=22)
        self.assertEqual(ran.stdout, b"bad")
        self.run_program("--remove-on-error", "--no-fail", "-o", "f", server.url())
        self.assertEqual((self.folder / "f").read_bytes(), b"bad")

    def test_etags_need_their_file_and_one_url(self):
        result = self.run_program("--etag-compare", "none", "http://h.invalid/", status=26)
        self.assertIn("cannot read none", result.stderr.decode())
        for flag in ("--etag-compare", "--etag-save"):
            self.assertIn("--etag-save and --etag-compare need a single URL",
                          self.usage_error(flag, "f", "http://h/1", "http://h/2"))

    def test_no_file_is_replaced_with_no_clobber(self):
        server = self.server(Response(200, b"new"))
        for name in ("f", "f.1"):
            (self.folder / name).write_bytes(b"old")
        self.run_program("--no-clobber", "-o", "f", "-O", server.url("/a"), server.url("/f"))
        for name, content in (("f", b"old"), ("f.1", b"old"), ("f.2", b"new"), ("f.3", b"new")):
            self.assertEqual((self.folder / name).read_bytes(), content)
        shown = self.run_program("--no-clobber", "-o", "f", "-w", "%{filename_effective} ", server.url(),
                                 "--next", "--no-clobber", "-o", "f", "-w", "%{filename_effective}",
                                 server.url())
        self.assertEqual(shown.stdout, b"f.4 f.5")
        for number in range(101):
            (self.folder / f"g.{number}").write_bytes(b"")
        (self.folder / "g").write_bytes(b"")
        full = self.run_program("--no-clobber", "-o", "g", server.url(), status=23)
        self.assertIn("option --no-clobber: g and the names up to g.100 are taken",
                      full.stderr.decode())
        self.assertIn("-C cannot be combined with --no-clobber",
                      self.usage_error("--no-clobber", "-C", "-", "-o", "f", "u"))

    def test_existing_files_are_skipped(self):
        server = self.server(Response(200, b"new"))
        (self.folder / "b").write_bytes(b"old")
        for flags in ((), ("-Z",)):
            server.seen.clear()
            ran = self.run_program("--skip-existing", *flags, "--report", "report.json",
                                   "--remote-name-all", server.url("/a"), server.url("/b"),
                                   "--next", "-o", "c", server.url("/c"))
            self.assertIn("httpretry: b exists, so its URL is skipped", ran.stderr.decode())
            self.assertEqual(sorted(seen.target for seen in server.seen), ["/a", "/c"])
            self.assertEqual(len(self.report()), 2)
            for name in ("a", "c"):
                (self.folder / name).unlink()
        ran = self.run_program("-s", "--skip-existing", "--report", "report.json", "-o", "b",
                               server.url())
        self.assertEqual((ran.stderr, self.report()), (b"", []))
        self.assertEqual((self.folder / "b").read_bytes(), b"old")
        self.run_program("--skip-existing", "-o", "/dev/null", server.url("/d"))
        self.assertEqual(server.seen[-1].target, "/d")

    def test_a_response_is_discarded(self):
        server = self.server(Response(200, b"x"))
        for flags in (("--out-null",), ("--out-null", "--output-dir", "nowhere")):
            ran = self.run_program(*flags, "-w", "%{http_code}", server.url())
            self.assertEqual(ran.stdout, b"200")

    def test_a_number_of_a_glob_needs_urls(self):
        server = self.server(Response(200, b"x"))
        for url in ("http://h/{a,b}", "http://h/[1-3]", "http://[::1]/[1-3]"):
            self.assertIn('option -o: "f#1" needs a URL for each file',
                          self.usage_error("-o", "f#1", url))
            self.assertIn('option -o: "f#x#1" needs', self.usage_error("-o", "f#x#1", url))
        self.run_program("-o", "f#1", server.url("/a"))  # as curl
        self.run_program("-g", "-o", "g#1", server.url("/{a}"))
        self.assertTrue((self.folder / "f#1").exists() and (self.folder / "g#1").exists())
        self.run_program("--retry", 0, "-o", "f#1", "http://[::1]:1/", status=7)


class Requests(ProgramTest):
    def test_a_path_is_sent_as_it_is(self):
        server = self.server(redirect("/../x/./y"), 200)
        self.run_program(server.url("/a/../b/./c?d=/../e"))
        self.run_program("--path-as-is", server.url("/a/../b/./c"))
        self.assertEqual([seen.target for seen in server.seen], ["/b/c?d=/../e", "/a/../b/./c"])

    def test_a_path_is_as_it_is_after_a_challenge_too(self):
        asks = Response(401, b"", [("WWW-Authenticate", 'Digest realm="r", nonce="n", qop="auth"')])
        server = self.server(503, asks, 200)
        self.run_program(*QUICK, "--path-as-is", "--digest", "-u", "me:pw", server.url("/a/../b"))
        self.assertEqual([seen.target for seen in server.seen], ["/a/../b"] * 3)
        self.assertIn('uri="/a/../b"', server.seen[2].headers["authorization"])

    def test_data_in_ascii_is_data(self):
        server = self.server(200)
        self.run_program("--data-ascii", "a=b", "-d", "c", server.url(), "-:", server.url("/2"))
        self.assertEqual([seen.body for seen in server.seen], [b"a=b&c", b""])

    def test_the_scheme_of_a_url_without_one(self):
        server = self.server(200)
        self.run_program("--proto-default", "http", f"127.0.0.1:{server.port}/a")
        closed, port = closed_port()
        self.addCleanup(closed.close)
        refused = self.run_program("--retry", 0, "--proto-default", "https", f"127.0.0.1:{port}", status=7)
        self.assertIn(b"GET https://127.0.0.1:", refused.stderr)
        self.assertEqual([seen.target for seen in server.seen], ["/a"])
        self.assertIn('option --proto-default: "ftp" is not one of http, https',
                      self.usage_error("--proto-default", "ftp", "u"))

    def test_names_in_urls_are_refused_if_that_is_wanted(self):
        said = self.usage_error("--disallow-username-in-url", "http://me:secret@h/")
        self.assertIn("option --disallow-username-in-url: http://", said)
        self.assertNotIn("secret", said)

    def test_session_cookies_are_left_out(self):
        (self.folder / "jar").write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t1\n"
                                         "127.0.0.1\tFALSE\t/\tFALSE\t9999999999\tkept\t2\n")
        server = self.server(200)
        for flags, cookies in (((), {"session=1", "kept=2"}), (("-j",), {"kept=2"}),
                               (("--junk-session-cookies",), {"kept=2"})):
            self.run_program(*flags, "-b", "jar", server.url())
            self.assertEqual(set(server.seen[-1].headers["cookie"].split("; ")), cookies)

    def test_netrc_is_optional(self):
        (self.folder / ".netrc").write_text("machine 127.0.0.1 login me password pw\n")
        server = self.server(200)
        self.run_program("--netrc-optional", server.url(), env={"HOME": str(self.folder)})
        self.assertEqual(server.seen[0].headers["authorization"], "Basic bWU6cHc=")

    def test_a_body_waits_for_the_server_as_long_as_wanted(self):
        server = self.server(200)
        self.run_program("--expect100-timeout", "0.01", "-H", "Expect: 100-continue", "-d", "x",
                         server.url())
        self.assertEqual((server.seen[0].headers["expect"], server.seen[0].body),
                         ("100-continue", b"x"))

    def test_options_that_change_nothing_are_accepted(self):
        server = self.server(200)
        self.run_program("--remove-on-error", "--parallel-immediate", "--tcp-nodelay",
                         "--suppress-connect-headers", server.url())


class NtlmServer(Server):
    """Asks for NTLM on each connection. `known` has how many requests of a connection were authenticated."""

    CHALLENGE = base64.b64encode(b"NTLMSSP\0" + struct.pack("<IHHII", 2, 0, 0, 48, 0x8201) + b"12345678" +
                                 bytes(8) + struct.pack("<HHI", 0, 0, 48)).decode()

    def __init__(self):
        super().__init__(200)
        self.users = []
        self.connections = 0

    def serve(self, connection):
        self.connections += 1
        with connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                headers = dict(re.split(r":\s*", field.decode().strip().lower(), maxsplit=1)[:1] +
                               [field.decode().strip().partition(": ")[2]]
                               for field in iter(stream.readline, b"\r\n"))
                body = self.read_body(stream, headers)
                message = base64.b64decode(headers.get("authorization", "").partition(" ")[2])
                kind = message[8] if message.startswith(b"NTLMSSP\0") else 0
                if kind == 3:
                    size, _, at = struct.unpack("<HHI", message[36:44])
                    self.users.append((message[at:at + size].replace(b"\0", b"").decode(), body))
                    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nknown"
                else:
                    scheme = f"NTLM {self.CHALLENGE}" if kind == 1 else "NTLM"
                    reply = (f"HTTP/1.1 401 Who\r\nWWW-Authenticate: {scheme}\r\n"
                             "Content-Length: 0\r\n\r\n").encode()
                connection.sendall(reply)


class Authentication(ProgramTest):
    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_ntlm_and_any_scheme(self):
        features = subprocess.run(["curl", "-V"], stdout=subprocess.PIPE, check=True).stdout
        if b" NTLM" not in features:  # as in Debian's libcurl 8.23
            server = self.server(200)
            ran = self.run_program("--ntlm", "-u", "me:secret", server.url(), status=4)
            self.assertIn(b" refuses the option HTTPAUTH, which is needed here: ", ran.stderr)
            self.assertEqual(server.seen, [])
            return
        for flag in ("--ntlm", "--anyauth"):
            server = NtlmServer()
            self.addCleanup(server.close)
            ran = self.run_program(flag, "-u", "me:secret", "-d", "body", server.url("/1"), server.url("/2"))
            self.assertEqual(ran.stdout, b"knownknown")
            self.assertEqual(server.users, [("me", b"body")] * 2)
            self.assertGreaterEqual(server.connections, 2)

    def test_any_scheme_takes_what_the_server_offers(self):
        for offer, scheme in (("Basic realm=x", "Basic "), ('Digest realm="r", nonce="n"', "Digest ")):
            server = self.server(Response(401, b"", [("WWW-Authenticate", offer)]), 200)
            self.run_program("--anyauth", "-u", "me:secret", server.url())
            self.assertNotIn("authorization", server.seen[0].headers)
            self.assertTrue(server.seen[1].headers["authorization"].startswith(scheme))

    def test_digest_for_a_proxy(self):
        asks = Response(407, b"", [("Proxy-Authenticate", 'Digest realm="r", nonce="n", qop="auth"')])
        proxy = self.server(asks, 200)
        self.run_program("--proxy-basic", "--proxy-digest", "-U", "me:pw", "-x", proxy.url(),
                         "http://h.invalid/")
        self.assertTrue(proxy.seen[1].headers["proxy-authorization"].startswith("Digest "))


def signature(seen, secret):
    """The signature that the service computes for a request, from what has arrived."""
    fields = dict(re.findall(r"(\w+)=([^,\s]+)", seen.headers["authorization"]))
    _, date, region, service, last = fields["Credential"].split("/")
    path, _, query = seen.target.partition("?")
    names = fields["SignedHeaders"].split(";")
    headers = "".join(f"{name}:{' '.join(seen.headers[name].split())}\n" for name in names)
    hashed = seen.headers.get("x-amz-content-sha256") or hashlib.sha256(seen.body).hexdigest()
    request = "\n".join((seen.method, path, query, headers, fields["SignedHeaders"], hashed))
    text = "\n".join(("AWS4-HMAC-SHA256", seen.headers["x-amz-date"],
                      f"{date}/{region}/{service}/{last}", hashlib.sha256(request.encode()).hexdigest()))
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, last, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return fields["Signature"], key.hex()


class Signatures(ProgramTest):
    FLAGS = ("--aws-sigv4", "aws:amz:eu-central-1:s3", "-u", "KEY:secret")

    def test_a_request_is_signed_with_its_body(self):
        (self.folder / "file").write_bytes(b"0123456789" * 200000)
        for flags, body in (((), b""), (("-d", "a=b"), b"a=b"), (("--json", "{}"), b"{}"),
                            (("-X", "DELETE"), b""), (("-I",), b""), (("-H", "X-A: b  c"), b""),
                            (("-T", "file"), b"0123456789" * 200000),
                            (("-T", "file", "-C", "1999999"), b"9"), (("-X", "PUT", "-d", ""), b"")):
            with self.subTest(flags=flags):
                server = self.server(200)
                self.run_program(*self.FLAGS, *flags, server.url("/a/b?c=d&e="))
                seen = server.seen[-1]
                self.assertEqual(seen.body, body)
                self.assertEqual(seen.headers["x-amz-content-sha256"], hashlib.sha256(body).hexdigest())
                sent, computed = signature(seen, "secret")
                self.assertEqual(sent, computed)

    def test_each_attempt_has_a_new_signature(self):
        server = self.server(503, 200)
        self.run_program(*self.FLAGS, "--retry-delay", "1.1", "-T", "-", server.url("/a"), stdin=b"data")
        for seen in server.seen:
            self.assertEqual(*signature(seen, "secret"))
        self.assertNotEqual(*(seen.headers["x-amz-date"] for seen in server.seen))

    def test_another_origin_gets_no_signature(self):
        other = self.server(200)
        server = self.server(redirect(other.url()))
        self.run_program("-L", *self.FLAGS, server.url())
        self.assertNotIn("authorization", other.seen[0].headers)

    def test_what_cannot_be_signed(self):
        self.assertIn("--aws-sigv4 needs -u KEY:SECRET", self.usage_error("--aws-sigv4", "aws:amz", "u"))
        (self.folder / "ten").write_bytes(b"0123456789")
        self.assertIn("cannot read ten: it has 10 bytes, but -C skips 10",
                      self.run_program(*self.FLAGS, "-T", "ten", "-C", 10, "http://a/",
                                       status=26).stderr.decode())
        (self.folder / "file").write_bytes(b"x")
        ran = self.run_program(*self.FLAGS, "-F", "a=@file", "http://127.0.0.1:1/", status=2)
        self.assertIn("a body that is signed must be in memory", ran.stderr.decode())

    def test_another_provider(self):
        server = self.server(200)
        self.run_program("--aws-sigv4", "osc:osc:eu:api", "-u", "KEY:secret", "-d", "x", server.url())
        self.assertIn("OSC4-HMAC-SHA256 Credential=KEY/", server.seen[0].headers["authorization"])
        self.assertNotIn("x-amz-content-sha256", server.seen[0].headers)


class Proxies(ProgramTest):
    def test_a_header_is_for_the_proxy_only(self):
        proxy = self.server(Response(200, b"by proxy"))
        (self.folder / "lines").write_text("X-B: 2\n")
        self.run_program("-x", proxy.url(), "--proxy-header", "X-A: 1", "--proxy-header", "@lines",
                         "http://h.invalid/")
        self.assertEqual((proxy.seen[0].headers["x-a"], proxy.seen[0].headers["x-b"]), ("1", "2"))
        server = self.server(200)
        self.run_program("--proxy-header", "X-A: 1", server.url())
        self.assertNotIn("x-a", server.seen[0].headers)
        self.assertIn("option --proxy-header: the text is not a header",
                      self.usage_error("-x", "p", "--proxy-header", "nonsense", "u"))

    def test_a_tunnel_for_http(self):
        server = self.server(Response(200, b"x"))
        proxy = Tunnel(server.port)
        self.addCleanup(proxy.close)
        for flag in ("-p", "--proxytunnel"):
            ran = self.run_program(flag, "-x", proxy.url(), "--proxy-header", "X-A: 1",
                                   "http://h.invalid/path")
            self.assertEqual(ran.stdout, b"x")
            self.assertEqual((server.seen[-1].target, server.seen[-1].headers["host"]),
                             ("/path", "h.invalid"))
            self.assertNotIn("x-a", server.seen[-1].headers)
            self.assertIn(b"CONNECT h.invalid:80 ", proxy.heads[-1])
            self.assertIn(b"X-A: 1\r\n", proxy.heads[-1])

    def test_socks(self):
        for flag, first in (("--socks4", b"\4"), ("--socks4a", b"\4"), ("--socks5", b"\5"),
                            ("--socks5-hostname", b"\5")):
            proxy = Greeted()
            self.addCleanup(proxy.close)
            host = "127.0.0.1" if flag in ("--socks4", "--socks5") else "h.invalid"
            self.run_program("--retry", 0, flag, f"127.0.0.1:{proxy.port}", f"http://{host}/",
                             status=97)
            self.assertEqual(proxy.greetings[0][:1], first)


class Greeted(Server):
    """Records the first bytes of each connection, and closes it."""

    def __init__(self):
        super().__init__(200)
        self.greetings = []

    def serve(self, connection):
        with connection:
            self.greetings.append(connection.recv(4096))


class Tunnel(Server):
    """A proxy whose tunnels all lead to a port of this machine."""

    def __init__(self, port):
        super().__init__(200)
        self.to, self.heads = port, []

    def serve(self, connection):
        import socket
        with connection, socket.create_connection(("127.0.0.1", self.to)) as onward:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(1)
            self.heads.append(head)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

            def copy(source, to):
                try:
                    while piece := source.recv(65536):
                        to.sendall(piece)
                    to.shutdown(socket.SHUT_WR)
                except OSError:
                    pass

            back = threading.Thread(target=copy, args=(onward, connection), daemon=True)
            back.start()
            copy(connection, onward)
            back.join(LIMIT)


class Connections(ProgramTest):
    def test_a_transfer_that_is_too_slow_ends(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        server = self.server(Response(200, b"x" * 1000, hold_rest=gate))
        for flags in (("-y", 1), ("-Y", 100000, "--speed-time", 1), ("--speed-limit", 1, "-y", 1)):
            ran = self.run_program("--retry", 0, *flags, server.url(), status=28)
            self.assertIn("Operation too slow", ran.stderr.decode())
        gate.set()
        self.run_program("-Y", 0, "-y", 1, server.url())

    def test_no_more_to_a_host_at_once_than_wanted(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        one, two = (self.server(Response(200, b"x", hold=gate)) for _ in range(2))
        process = self.start("-sZ", "--parallel-max-host", 2,
                             *[server.url(f"/{i}") for i in range(5) for server in (one, two)])
        for server in (one, two, one, two):
            server.arrived.get(timeout=LIMIT)
        self.assertEqual((len(one.seen), len(two.seen)), (2, 2))
        gate.set()
        out, said = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out, said), (0, b"x" * 10, b""))

    def test_ports_and_probes(self):
        server = self.server(Response(200, b"x"))
        shown = self.run_program("--local-port", "20000-29999", "-w", " %{local_port}", server.url())
        self.assertRegex(shown.stdout, rb"^x 2\d{4}$")
        for value in ("0", "x", "5-", "70000", "9-8", "1-2-3"):
            self.assertIn(f'option --local-port: "{value}" is not a port or a range such as 4000-4100',
                          self.usage_error("--local-port", value, "u"))
        self.run_program("--keepalive-time", 5, "--no-keepalive", "--happy-eyeballs-timeout-ms", 50,
                         server.url())

    def test_a_keepalive_time_of_0_undoes_an_earlier_one(self):
        def seconds_to_probe(port):
            """Of the connection to the port, or None while another timer runs."""
            for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
                remote, timer = line.split()[2], line.split()[5]
                if int(remote.split(":")[1], 16) == port and timer.startswith("02:"):
                    return int(timer[3:], 16) / os.sysconf("SC_CLK_TCK")
            return None

        for later, is_default in (([], False), (["--keepalive-time", 0], True)):
            gate = threading.Event()
            self.addCleanup(gate.set)
            server = self.server(Response(200, b"x", hold=gate))
            process = self.start("--keepalive-time", 5000, *later, server.url())
            server.arrived.get(timeout=LIMIT)
            wait_until(lambda: seconds_to_probe(server.port) is not None)
            self.assertEqual(seconds_to_probe(server.port) < 100, is_default)
            gate.set()
            self.assertEqual(process.wait(LIMIT), 0)


@unittest.skipUnless(shutil.which("openssl"), "no openssl")
class Tls(ProgramTest):
    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True)

    def setUp(self):
        super().setUp()
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
                     "cert.pem", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1")

    def tls_server(self, server, configure=lambda context: None):
        """The server behind TLS; `handshakes` gets the version and the cipher of each connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        configure(context)
        context.load_cert_chain(self.folder / "cert.pem", self.folder / "key.pem")
        plain, handshakes = server.serve, []

        def serve(connection):
            try:
                secure = context.wrap_socket(connection, server_side=True)
                handshakes.append((secure.version(), secure.cipher()[0]))
                plain(secure)
            except OSError:
                connection.close()
        server.serve = serve
        return handshakes

    def test_versions_and_ciphers(self):
        server = self.server(Response(200, b"x"))
        handshakes = self.tls_server(server)
        url = f"https://127.0.0.1:{server.port}/"
        for flags, expected in (
                (("--tls-max", "1.2"), ("TLSv1.2", None)),
                (("--tls-max", "1.2", "--tls-max", "default"), ("TLSv1.3", None)),
                (("--tls-max", "1.3"), ("TLSv1.3", None)),
                (("--tls-max", "1.2", "--ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
                 ("TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256")),
                (("--tls13-ciphers", "TLS_CHACHA20_POLY1305_SHA256"),
                 ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256")),
                (("--curves", "P-384"), ("TLSv1.3", None)), (("--no-alpn",), ("TLSv1.3", None))):
            with self.subTest(flags=flags):
                self.run_program("--cacert", "cert.pem", *flags, url)
                version, cipher = handshakes[-1]
                self.assertEqual((version, cipher if expected[1] else None), expected)
        for flags, status in ((("--ciphers", "none"), 59),
                              (("--tls-max", "1.3", "--tls13-ciphers", "none"), 59),
                              (("--curves", "none"), 59), (("--cert-status",), 91),
                              (("--crlfile", "none"), 82)):
            with self.subTest(flags=flags):
                self.run_program("--retry", 0, "--tls-max", "1.2", "--cacert", "cert.pem", *flags, url,
                                 status=status)
        self.assertIn("option --tls-max: it is below min_tls",
                      self.usage_error("--tlsv1.3", "--tls-max", "1.2", url))
        self.assertIn('option --tls-max: "1.1" is not one of default, 1.2, 1.3',
                      self.usage_error("--tls-max", "1.1", url))

    def test_an_https_proxy(self):
        proxy = self.server(Response(200, b"by proxy"))
        handshakes = self.tls_server(proxy)
        flags = ("-x", f"https://127.0.0.1:{proxy.port}", "http://h.invalid/")
        self.run_program("--retry", 0, *flags, status=60)
        for more in (("--proxy-insecure",), ("--proxy-cacert", "cert.pem"),
                     ("--proxy-insecure", "--proxy-tls13-ciphers", "TLS_CHACHA20_POLY1305_SHA256")):
            self.assertEqual(self.run_program(*more, *flags).stdout, b"by proxy")
        self.assertEqual(handshakes[-1][1], "TLS_CHACHA20_POLY1305_SHA256")
        self.run_program("--retry", 0, "--proxy-insecure", "--proxy-ciphers", "none", *flags, status=59)

    def test_an_https_proxy_that_wants_a_certificate(self):
        def wants_certificate(context):
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.folder / "cert.pem")
        proxy = self.server(Response(200, b"by proxy"))
        self.tls_server(proxy, wants_certificate)
        self.openssl("rsa", "-aes128", "-in", "key.pem", "-out", "locked.pem", "-passout", "pass:pw")
        self.openssl("rsa", "-in", "key.pem", "-outform", "DER", "-out", "key.der")
        flags = ("--retry", 0, "--proxy-cacert", "cert.pem", "-x", f"https://127.0.0.1:{proxy.port}",
                 "http://h.invalid/")
        self.run_program(*flags, status=(35, 55, 56))
        for more in (("--proxy-cert", "cert.pem", "--proxy-key", "key.pem", "--proxy-key-type", "PEM"),
                     ("--proxy-cert", "cert.pem", "--proxy-cert-type", "PEM", "--proxy-key", "key.der",
                      "--proxy-key-type", "DER"),
                     ("--proxy-cert", "cert.pem:pw", "--proxy-key", "locked.pem"),
                     ("--proxy-cert", "cert.pem", "--proxy-key", "locked.pem", "--proxy-pass", "pw")):
            with self.subTest(more=more):
                self.assertEqual(self.run_program(*more, *flags).stdout, b"by proxy")
        self.run_program("--proxy-pinnedpubkey", "sha256//" + "A" * 43 + "=", *flags, status=90)
        self.run_program("--proxy-crlfile", "none", *flags, status=82)
        self.assertIn('option --proxy-cert: there is no file name before the ":"',
                      self.usage_error("--proxy-cert", ":pw", "u"))

    def test_formats_of_certificates(self):
        self.openssl("x509", "-in", "cert.pem", "-outform", "DER", "-out", "cert.der")
        self.openssl("rsa", "-in", "key.pem", "-outform", "DER", "-out", "key.der")
        self.openssl("pkcs12", "-export", "-in", "cert.pem", "-inkey", "key.pem", "-passout", "pass:pw",
                     "-out", "both")
        seen = []

        def wants_certificate(context):
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.folder / "cert.pem")
        server = self.server(Response(200, b"x"))
        seen = self.tls_server(server, wants_certificate)
        url = f"https://127.0.0.1:{server.port}/"
        for flags in (("-E", "cert.der", "--cert-type", "DER", "--key", "key.der", "--key-type", "DER"),
                      ("-E", "cert.pem", "--cert-type", "PEM", "--key", "key.pem", "--key-type", "PEM"),
                      ("-E", "both:pw", "--cert-type", "P12")):
            with self.subTest(flags=flags):
                seen.clear()
                self.assertEqual(self.run_program("--cacert", "cert.pem", *flags, url).stdout, b"x")
                self.assertEqual(len(seen), 1)
        self.assertIn('option --cert-type: "ENG" is not one of PEM, DER, P12',
                      self.usage_error("--cert-type", "ENG", "u"))


if __name__ == "__main__":
    main()
