"""The promises of SECURITY.md that can be tested with the program: hostile servers, line ends in
input, secrets."""

import gzip
import json
import os
import shutil
import ssl
import stat
import subprocess

from program import Response, LIMIT, PROGRAM, ProgramTest, clean_environment, closed_port, main

CRLF = "x\r\nInjected: yes"
SECRET = "s3cr3t"
ALLOWED_ENVIRONMENT = {
    # As curl: proxies, authorities, the key log of its TLS library, the home of .netrc.
    "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE", "HOME", "NETRC",
    # Ours, and what terminals and the C library have.
    "HTTPRETRY_POLICY", "HTTPRETRY_SHARED", "HTTPRETRY_QUEUE", "OTEL_TRACES_EXPORTER", "NO_COLOR", "TERM", "COLUMNS",
    "TZ", "TMPDIR"}


class Endless(Response):
    """A head, then the same bytes until the client disconnects."""

    def __init__(self, head, piece):
        super().__init__(200)
        self.raw = head + piece * (40_000_000 // len(piece))


class Injection(ProgramTest):
    def test_nothing_that_would_end_a_line_goes_out(self):
        server = self.server(200)
        for flags in (("-H", f"A: {CRLF}"), ("-X", f"GET {CRLF}"), ("-A", CRLF), ("-e", CRLF),
                      ("--oauth2-bearer", CRLF), ("-b", f"a={CRLF}"), ("-u", f"a:{CRLF}"),
                      (f"--idempotency-key={CRLF}", "-d", "x"), ("-H", f"{CRLF}: a"),
                      ("-F", f"a=b;type=text/{CRLF}"), ("-x", f"http://a:{CRLF}@127.0.0.1:1")):
            with self.subTest(flags=flags):
                done = subprocess.run([PROGRAM, *flags, server.url()], check=False,
                                      capture_output=True, timeout=LIMIT, cwd=self.folder,
                                      env=clean_environment())
                self.assertNotIn(done.returncode, (0, 70), done.stderr)
                self.assertNotIn(b"Injected: yes\n", done.stderr)
                for seen in server.seen:
                    self.assertNotIn("injected", seen.headers)

    def test_a_url_stays_one_line(self):
        server = self.server(200)
        self.run_program(server.url("/a\r\nInjected: yes"), status=2)
        self.run_program(server.url("/a%0d%0aInjected:%20yes"))
        self.run_program("--url-query", f"q={CRLF}", server.url("/b"))
        # libcurl 8.20 and later write the bytes in capitals.
        self.assertEqual([seen.target.replace("%0d%0a", "%0D%0A") for seen in server.seen],
                         ["/a%0D%0AInjected:%20yes", "/b?q=x%0D%0AInjected%3A+yes"])

    def test_a_servers_location_stays_one_line(self):
        for location in ("/b%0d%0aInjected:%20yes", "/b\x0bInjected", "/b\rInjected:yes"):
            with self.subTest(location=location):
                server = self.server(Response(302, b"", [("Location", location)]), 200)
                done = subprocess.run([PROGRAM, "-L", "--retry", "0", server.url()],
                                      capture_output=True, timeout=LIMIT, check=False,
                                      cwd=self.folder, env=clean_environment())
                self.assertNotEqual(done.returncode, 70)
                self.assertEqual(server.seen[0].target, "/")
                for seen in server.seen:
                    self.assertNotIn("injected", seen.headers)
                    self.assertRegex(seen.target, r"^[!-~]+$")

    def test_a_url_that_is_none_is_shown_without_what_it_may_hide(self):
        for url in (f"http://me:{SECRET}@a b/", f"http://me:{SECRET}@a:99999/",
                    f"http://me:{SECRET}?b@a/", f"http://me:{SECRET}#b@a/", f"ftp://me:{SECRET}@a/",
                    f"http://a b/?key={SECRET}", "http://a/\x1b[2J\r\nb"):
            with self.subTest(url=url):
                shown = self.run_program(url, status=2).stderr.decode()
                self.assertIn("is not a usable URL", shown)
                self.assertNotIn(SECRET, shown)
                self.assertRegex(shown, r"^[\n -~]+$")

    def test_no_part_of_a_path_becomes_the_host(self):
        """As with an empty $BASE in "$BASE/a"."""
        server = self.server(200)
        port = server.port
        for start in ("/", "//", "///", "http:", "http:/", "http:///", "HTTP:///", "https:/", " "):
            for url in (f"{start}127.0.0.1:{port}/a", f"{start}me:{SECRET}@127.0.0.1:{port}/a"):
                with self.subTest(url=url):
                    done = self.run_program("-u", f"me:{SECRET}", url, status=2)
                    self.assertIn(b"is not a usable URL: it ", done.stderr)
                    self.assertNotIn(SECRET.encode(), done.stderr)
                    self.assertEqual(done.stdout, b"")
        self.assertEqual(server.seen, [])

    def test_a_value_that_is_refused_is_in_no_message(self):
        (self.folder / "lines").write_text(f"Authorization Bearer {SECRET}\n")
        for args in (("-H", f"X-Api-Key;{SECRET}"), ("-H", SECRET), ("-H", "@lines"),
                     ("-H", f"Authorization Bearer {SECRET}"), ("-F", f"password=pa;{SECRET}"),
                     ("-F", SECRET), ("-F", f"a={SECRET};type=x"),
                     ("-F", f'a=b;headers="{SECRET}"'), ("--form-string", SECRET)):
            with self.subTest(args=args):
                self.assertNotIn(SECRET, self.usage_error(*args, "http://h/"))

    def test_what_a_server_says_does_not_steer_the_terminal(self):
        for code, shown in (("\x1b[2J", b""), ("\x9b2J", b"X-A: \\xc2\\x9b2J\n")):
            server = self.server(Response(500, b"", [("X-A", code)]))
            done = self.run_program("-v", "--trace", "--retry", 0, server.url(), status=22)
            self.assertRegex(done.stderr, rb"^[\n -~]+$")
            self.assertIn(shown, done.stderr)

    def test_what_a_server_says_is_escaped_in_json(self):
        server = self.server(Response(200, b"", [("X-A", "\x9b2J\u00a9")]))
        for variable in ("header_json", "json"):
            shown = self.run_program("-w", f"%{{{variable}}}", server.url()).stdout.decode()
            self.assertRegex(shown, r"^[\n -~\u00a0-\u00ff]+$")
        shown = self.run_program("-w", "%{header_json}", server.url()).stdout.decode()
        self.assertIn(r'"x-a":["\u009b2J', shown)
        self.assertEqual(json.loads(shown)["x-a"], ["\x9b2J\u00a9"])


class Schemes(ProgramTest):
    def test_only_http_and_https_are_spoken(self):
        (self.folder / "file").write_text(SECRET)
        for url in (f"file://{self.folder}/file", "ftp://127.0.0.1/", "gopher://127.0.0.1/",
                    "dict://127.0.0.1/d:a", "ldap://127.0.0.1/", "smb://127.0.0.1/a/b",
                    "scp://127.0.0.1/a", "telnet://127.0.0.1/", "data:,a", "javascript:alert(1)"):
            with self.subTest(url=url):
                done = subprocess.run([PROGRAM, url], capture_output=True,
                                      timeout=LIMIT, check=False, cwd=self.folder,
                                      env=clean_environment())
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, b"")
                server = self.server(Response(302, b"", [("Location", url)]), 200)
                done = subprocess.run([PROGRAM, "-L", server.url()],
                                      capture_output=True, timeout=LIMIT, check=False,
                                      cwd=self.folder, env=clean_environment())
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(len(server.seen), 1)
                self.assertNotIn(SECRET.encode(), done.stdout + done.stderr)

    def test_no_way_from_https_to_http(self):
        plain = self.server(200)
        secure = self.start("serve", "--tls", "--outcomes", f"302:location={plain.url()}")
        address = secure.stdout.readline().decode().strip()
        authority = secure.stderr.readline().decode().split(": ")[1].strip()
        done = subprocess.run([PROGRAM, "-L", "--cacert", authority, address],
                              capture_output=True, timeout=LIMIT, check=False, cwd=self.folder,
                              env=clean_environment())
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(plain.seen, [])

    def test_secrets_of_every_kind_stay_with_their_origin(self):
        (self.folder / "netrc").write_text(f"default login me password {SECRET}")
        for flags in (("-u", f"me:{SECRET}"), ("--oauth2-bearer", SECRET), ("-b", f"a={SECRET}"),
                      ("-H", f"X-Api-Key: {SECRET}"), ("-H", f"Authorization: {SECRET}"),
                      ("-H", f"Cookie: {SECRET}"), ("--netrc-file", "netrc"),
                      ("-e", f"http://{SECRET}/"), ("--idempotency-key=" + SECRET,)):
            with self.subTest(flags=flags):
                other = self.server(200)
                first = self.server(Response(302, b"", [("Location", other.url("/there"))]))
                self.run_program("-L", *flags, first.url())
                shown = " ".join(f"{k}: {v}" for k, v in other.seen[0].headers.items())
                self.assertNotIn(SECRET, shown)
                self.assertNotIn("authorization", other.seen[0].headers)


    def test_a_url_in_the_wrong_place_is_shown_without_its_secrets(self):
        url = f"http://me:{SECRET}@h.invalid/?key={SECRET}"
        for args, status in ((("--policy", url, "u"), 3), (("--resolve", url, "u"), 2),
                             (("--connect-to", url, "u"), 2), (("--retry", url, "u"), 2),
                             (("-m", url), 2), (("--preset", url, "u"), 2), (("-K", url), 26),
                             (("-T", url, "u"), 26), (("plan", "--scenario", url), 2),
                             (("plan", "--policy", url), 3), (("policy", "check", url), 1),
                             (("policy", "explain", url, "GET", "u"), 3)):
            with self.subTest(args=args):
                done = self.run_program(*args, status=status)
                self.assertNotIn(SECRET, (done.stdout + done.stderr).decode())
        done = self.run_program("u", env={"HTTPRETRY_POLICY": url}, status=3)
        self.assertNotIn(SECRET, done.stderr.decode())


class Bombs(ProgramTest):
    def peak(self, *args, statuses):
        """The program's largest memory, in MiB, when it is run with these."""
        process = subprocess.Popen([PROGRAM, *map(str, args)], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   env=clean_environment())
        said = process.stderr.read()
        process.stderr.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(process.returncode, statuses, said.decode())
        return used.ru_maxrss / 1024

    def ends(self, response, statuses, *args):
        server = self.server(response)
        self.assertLess(self.peak("--retry", 0, *args, server.url(), statuses=statuses), 400)
        self.assertEqual(len(server.seen), 1)

    def test_a_small_gzip_body_that_is_large(self):
        bomb = gzip.compress(b"\0" * 50_000_000)
        response = Response(200, bomb, [("Content-Encoding", "gzip")])
        self.ends(response, (63,), "--compressed", "--max-filesize", "1M", "-o", "out")
        self.assertFalse((self.folder / "out").exists())
        self.ends(Response(500, bomb, [("Content-Encoding", "gzip")]), (22, 63), "--compressed",
                  "--max-filesize", "1M")

    def test_headers_without_an_end(self):
        self.ends(Endless(b"HTTP/1.1 200 OK\r\n", b"A: " + b"b" * 1000 + b"\r\n"), (63,))
        self.ends(Endless(b"HTTP/1.1 200 OK\r\nA: ", b"b" * 1000), (27, 56, 63))
        self.ends(Endless(b"HTTP/1.1 ", b"b" * 1000), (1, 27, 56, 63))

    def test_too_many_headers_get_no_advice_about_the_body(self):
        for line in (b"A: " + b"b" * 1000 + b"\r\n", b"A: b\r\n"):  # too large, too many
            server = self.server(Endless(b"HTTP/1.1 200 OK\r\n", line))
            said = self.run_program("--retry", 0, server.url(), status=63).stderr.decode()
            self.assertRegex(said, r"^httpretry: \(63\) GET \S+: the response (headers are larger|has more) than \d+ "
                                   r"(bytes|headers)\n$")

    def test_interim_responses_without_an_end(self):
        self.ends(Endless(b"", b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n"), (63,))

    def test_trailers_without_an_end(self):
        self.ends(Endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
                          b"A: " + b"b" * 1000 + b"\r\n"), (27, 56, 63))

    def test_chunks_without_an_end(self):
        self.ends(Endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                          b"400\r\n" + b"c" * 1024 + b"\r\n"), (63,), "--max-filesize", "1M")
        self.ends(Endless(b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n",
                          b"400\r\n" + b"c" * 1024 + b"\r\n"), (63, 56, 18), "--max-filesize", "1M")

    def test_redirects_without_an_end(self):
        server = self.server(Response(302, b"", [("Location", "/")]))
        self.run_program("-L", server.url(), status=47)
        self.assertEqual(len(server.seen), 11)


class Tls(ProgramTest):
    def tls_server(self, name, configure=lambda context: None):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=test",
                        "-addext", f"subjectAltName={name}"],
                       cwd=self.folder, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        configure(context)
        context.load_cert_chain(self.folder / "cert.pem", self.folder / "key.pem")
        server = self.server(200)
        plain = server.serve

        def serve(connection):
            try:
                plain(context.wrap_socket(connection, server_side=True))
            except OSError:
                connection.close()
        server.serve = serve
        return server, f"https://127.0.0.1:{server.port}/"

    def refused(self, server, url, *flags, statuses=(60,)):
        done = subprocess.run([PROGRAM, "--retry", "0", *flags, url],
                              capture_output=True, timeout=LIMIT, check=False, cwd=self.folder,
                              env=clean_environment())
        self.assertIn(done.returncode, statuses, done.stderr)
        self.assertEqual(server.seen, [])

    def test_certificates_that_are_not_good(self):
        server, url = self.tls_server("IP:127.0.0.1")
        self.refused(server, url)  # signed by itself
        self.run_program("--cacert", "cert.pem", url)
        server, url = self.tls_server("DNS:elsewhere.test")
        self.refused(server, url, "--cacert", "cert.pem")

    def test_a_pin_that_is_no_longer_good(self):
        server, url = self.tls_server("IP:127.0.0.1")
        old = "sha256//" + "A" * 43 + "="
        self.refused(server, url, "--cacert", "cert.pem", "--pinnedpubkey", old, statuses=(90,))
        self.refused(server, url, "-k", "--pinnedpubkey", old, statuses=(90,))

    def test_a_tls_that_is_too_old(self):
        def ancient(context):
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        server, url = self.tls_server("IP:127.0.0.1", ancient)
        # It does speak, with those who are content with that.
        (self.folder / "ssl.cnf").write_text(
            "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n"
            "[c]\nMinProtocol = TLSv1\nCipherString = ALL:@SECLEVEL=0\n")
        old = os.environ | {"OPENSSL_CONF": str(self.folder / "ssl.cnf")}
        spoken = subprocess.run(["openssl", "s_client", "-tls1_1", "-connect",
                                 f"127.0.0.1:{server.port}"], input=b"", capture_output=True,
                                timeout=LIMIT, check=False, env=old)
        self.assertIn(b"Protocol  : TLSv1.1", spoken.stdout)
        done = subprocess.run([PROGRAM, "--retry", "0", "-k", url], check=False,
                              capture_output=True, timeout=LIMIT, cwd=self.folder,
                              env=clean_environment() | {"OPENSSL_CONF": old["OPENSSL_CONF"]})
        self.assertEqual(done.returncode, 35, done.stderr)
        self.assertEqual(server.seen, [])


class Secrets(ProgramTest):
    def test_they_show_nowhere(self):
        """Neither in messages nor in the trace nor in the report, whatever goes wrong."""
        holder, closed = closed_port()
        self.addCleanup(holder.close)
        (self.folder / "netrc").write_text(f"default login me password {SECRET}")
        kinds = (("-u", f"me:{SECRET}"), ("--oauth2-bearer", SECRET), ("-b", f"a={SECRET}"),
                 ("-H", f"X-Api-Key: {SECRET}"), ("-H", f"Authorization: Basic {SECRET}"),
                 ("-x", f"http://me:{SECRET}@127.0.0.1:{closed}"), ("--netrc-file", "netrc"),
                 ("-H", f"X-Auth-Token: {SECRET}"))
        for response in (Response(500, b"no", [("Set-Cookie", f"sid={SECRET}")]),
                       Response(200, reset=True)):
            for flags in kinds:
                server = self.server(response)
                port = server.port
                for url in (f"http://127.0.0.1:{port}/", f"http://me:{SECRET}@127.0.0.1:{port}/",
                            f"http://me:{SECRET}@127.0.0.1:{closed}/"):
                    with self.subTest(flags=flags, url=url):
                        self.shows_nothing(*flags, url)

    def shows_nothing(self, *args):
        done = subprocess.run([PROGRAM, "-v", "--trace", "--report", "report.json",
                               "--retry", "1", "--retry-delay", "0", "--set",
                               "backoff.initial=1ms", *args],
                              capture_output=True, timeout=LIMIT, check=False, cwd=self.folder,
                              env=clean_environment())
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn(SECRET, done.stderr.decode())
        self.assertNotIn(SECRET, (self.folder / "report.json").read_text())

    def test_a_query_is_in_no_message(self):
        server = self.server(500)
        done = self.run_program("--trace", "--retry", 0, server.url(f"/?key={SECRET}"), status=22)
        self.assertNotIn(SECRET, done.stderr.decode())
        holder, closed = closed_port()
        self.addCleanup(holder.close)
        done = self.run_program("--trace", "--retry", 0, f"http://127.0.0.1:{closed}/?k={SECRET}",
                                status=7)
        self.assertNotIn(SECRET, done.stderr.decode())


class Surroundings(ProgramTest):
    def test_a_jar_is_its_owners_alone(self):
        server = self.server(Response(200, b"", [("Set-Cookie", "a=b")]))
        jar = self.folder / "jar"
        for before in (None, 0o644):
            if before:
                jar.chmod(before)
            old = os.umask(0)
            try:
                self.run_program("-c", jar, server.url())
            finally:
                os.umask(old)
            self.assertEqual(stat.S_IMODE(jar.stat().st_mode), 0o600)

    def test_the_environment_is_read_as_curls_users_expect(self):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-14")
        if compiler is None:
            self.skipTest("no C compiler")
        (self.folder / "spy.c").write_text("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void note(const char* name) {
  int fd = open("names", O_WRONLY | O_CREAT | O_APPEND, 0600);
  char line[300];
  size_t size = strlen(name);
  if (fd < 0 || size > 250) return;
  memcpy(line, name, size);
  line[size] = '\\n';
  if (write(fd, line, size + 1) < 0) {}
  close(fd);
}
char* getenv(const char* name) {
  char* (*next)(const char*) = (char* (*)(const char*))dlsym(RTLD_NEXT, "getenv");
  note(name);
  return next(name);
}
""")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", "spy.so", "spy.c", "-ldl"],
                       cwd=self.folder, check=True)
        server = self.server(200)
        self.run_program("-L", "--netrc", "-c", "jar", server.url(),
                         env={"LD_PRELOAD": str(self.folder / "spy.so")})
        names = set((self.folder / "names").read_text().split())
        # Less what sanitizers and the libraries behind libcurl read.
        ours = {name for name in names if not name.startswith(("ASAN_", "UBSAN_", "LSAN_", "TSAN_",
                                                               "LLVM_", "OPENSSL", "SPDLOG",
                                                               "P11_KIT_", "NETTLE_", "GNUTLS_"))}
        self.assertIn("http_proxy", ours)
        self.assertLessEqual(ours, ALLOWED_ENVIRONMENT)

    def test_variables_that_curl_ignores_change_nothing(self):
        """HTTP_PROXY is what a server's CGI makes of a request header "Proxy"."""
        server = self.server(200)
        holder, closed = closed_port()
        self.addCleanup(holder.close)
        self.run_program("--retry", 0, server.url(),
                         env={"HTTP_PROXY": f"http://127.0.0.1:{closed}"})
        self.assertEqual(len(server.seen), 1)


if __name__ == "__main__":
    main()
