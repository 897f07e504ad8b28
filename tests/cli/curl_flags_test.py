"""Options of curl that are about files, ranges, protocols, passwords and several groups of URLs."""

import os
import signal

from program import LIMIT, ProgramTest, QUICK, Response, main

BODY = b"0123456789"


def named(name, body=b"x"):
    return Response(200, body, [("Content-Disposition", name)])


class Files(ProgramTest):
    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_the_name_of_the_server_is_a_last_segment(self):
        for text, name in (('attachment; filename="a.bin"', "a.bin"),
                           ("attachment; x=y; FileName=b.bin ; z", "b.bin"),
                           ("attachment; filename='c d'", "c d"),
                           ('attachment; x="y; filename=z"; filename=w', "w"),
                           ('attachment; filename="/etc/../../d"', "d"),
                           ('attachment; filename="C:\\\\e"', "e"),
                           ("attachment; filename=../..", "url-name"),
                           ("attachment; filename=f/", "url-name"),
                           ('attachment; filename=""', "url-name"),
                           ("attachment; filename=.", "url-name"),
                           ('attachment; filename="\tg"', "url-name"),
                           ("inline", "url-name")):
            with self.subTest(text=text):
                server = self.server(named(text))
                ran = self.run_program("-OJ", "-w", "%{filename_effective}", server.url("/url-name"))
                self.assertEqual(ran.stdout.decode(), name)
                self.assertEqual(self.names(), [name])
                (self.folder / name).unlink()

    def test_no_file_is_replaced_by_the_name_of_the_server(self):
        (self.folder / "old").write_bytes(b"old")
        (self.folder / "link").symlink_to("nowhere")
        for name in ("old", "link"):
            for response in (named(f"a; filename={name}"),
                             Response(404, b"n", [("Content-Disposition", f"a; filename={name}")])):
                server = self.server(response)
                ran = self.run_program("-JO", server.url("/u"), status=23)
                self.assertIn(f"cannot create {name}: File exists; the server gave this name, and -J "
                              "does not replace a file", ran.stderr.decode())
        self.assertEqual((self.folder / "old").read_bytes(), b"old")
        self.assertEqual(self.names(), ["link", "old"])

    def test_a_named_download_that_fails_leaves_no_file(self):
        broken = Response(200, raw=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n"
                                   b"Content-Disposition: a; filename=new\r\n\r\nhalf")
        server = self.server(broken, named("a; filename=other", BODY))
        self.run_program(*QUICK, "-OJ", server.url("/u"))
        self.assertEqual(self.names(), ["new"])  # as the first response says
        (self.folder / "new").unlink()
        self.run_program("--retry", 0, "-OJ", self.server(broken).url("/u"), status=18)
        self.assertEqual(self.names(), [])
        server = self.server(Response(404, b"n", [("Content-Disposition", "a; filename=new")]))
        for flag in ("-f", "--remove-on-error"):
            self.run_program(flag, "-OJ", server.url("/u"), status=22)
            self.assertEqual(self.names(), [])

    def test_folders_are_made_only_if_wanted(self):
        server = self.server(Response(200, BODY))
        self.run_program("--output-dir", "a/b", "-O", server.url("/f"), status=23)
        self.run_program("--create-dirs", "--output-dir", "a/b", "-o", "c/f", "-D", "d/h",
                         "--remote-name-all", server.url("/f"), server.url("/g"))
        self.assertEqual((self.folder / "a/b/c/f").read_bytes(), BODY)
        self.assertEqual((self.folder / "a/b/g").read_bytes(), BODY)
        self.assertEqual((self.folder / "d/h").read_bytes().count(b"HTTP/1.1 200"), 2)
        (self.folder / "file").write_bytes(b"")
        ran = self.run_program("--create-dirs", "-o", "file/f", server.url(), status=23)
        self.assertIn("cannot create the folder file", ran.stderr.decode())

    def test_headers_of_every_response_are_written(self):
        server = self.server(503, Response(302, b"", [("Location", "/b")]),
                             Response(200, b"x", [("X-A", "1")]))
        self.run_program(*QUICK, "-L", "-D", "h", server.url())
        self.assertEqual([line.split()[1] for line in (self.folder / "h").read_text().splitlines()
                          if line.startswith("HTTP/")], ["503", "302", "200"])
        shown = self.run_program("-D", "-", self.server(Response(200, b"x")).url()).stdout
        self.assertEqual(shown, b"HTTP/1.1 200 Reason\r\nContent-Length: 1\r\n\r\nx")

    def test_a_file_of_headers_stays_until_the_end(self):
        (self.folder / "h").write_bytes(b"old")
        server = self.server(Response(503, b"", [("Retry-After", "50")]))
        process = self.start("--trace", "-D", "h", server.url())
        while b"retry in" not in process.stderr.readline():
            pass
        self.assertEqual((self.folder / "h").read_bytes(), b"old")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)
        self.assertTrue((self.folder / "h").read_bytes().startswith(b"HTTP/1.1 503"))


class Conditions(ProgramTest):
    def test_a_retry_asks_for_the_same_range(self):
        part = b"HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/10\r\nContent-Length: 4\r\n"
        part += b'ETag: "1"\r\n\r\n'
        for where in ([], ["-o", "out"], ["-N"]):
            server = self.server(503, Response(206, raw=part + b"2345"))
            ran = self.run_program(*QUICK, *where, "-r", "2-5", server.url())
            self.assertEqual(ran.stdout or (self.folder / "out").read_bytes(), b"2345")
            self.assertEqual([seen.headers["range"] for seen in server.seen], ["bytes=2-5"] * 2)

    def test_a_broken_part_is_asked_for_again_as_the_user_did(self):
        head = (b"HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/10\r\nContent-Length: 4\r\n"
                b'ETag: "1"\r\n\r\n')
        server = self.server(Response(206, raw=head + b"23"), Response(206, raw=head + b"2345"))
        for where in ([], ["-o", "out"]):
            server.seen.clear()
            ran = self.run_program(*QUICK, *where, "-r", "2-5", server.url())
            self.assertEqual(ran.stdout or (self.folder / "out").read_bytes(), b"2345")
            self.assertEqual([seen.headers["range"] for seen in server.seen], ["bytes=2-5"] * 2)
            self.assertNotIn("if-range", server.seen[1].headers)

    def test_a_number_alone_is_where_a_range_begins(self):
        server = self.server(Response(200, BODY))
        self.assertEqual(self.run_program("-r7", server.url()).stdout, BODY)  # all of it, as curl
        self.assertEqual(server.seen[0].headers["range"], "bytes=7-")

    def test_a_date_or_the_time_of_a_file(self):
        (self.folder / "f").write_bytes(b"")
        os.utime(self.folder / "f", (784111777, 784111777))
        date = "Sun, 06 Nov 1994 08:49:37 GMT"
        for value, name, sent in ((date, "if-modified-since", date),
                                  ("f", "if-modified-since", date),
                                  ("-f", "if-unmodified-since", date),
                                  ("1994-11-06 08:49:37", "if-modified-since", date),
                                  ("6 Nov 1994 09:49:37 +0100", "if-modified-since", date),
                                  ("19941106", "if-modified-since", "Sun, 06 Nov 1994 00:00:00 GMT")):
            with self.subTest(value=value):
                server = self.server(304)
                self.run_program("-z", value, server.url())
                self.assertEqual(server.seen[0].headers[name], sent)
        server = self.server(200)
        ran = self.run_program("-z", "none", server.url())
        self.assertNotIn("if-modified-since", server.seen[0].headers)
        self.assertIn('option -z: "none" is neither a date nor a file, so the response is requested',
                      ran.stderr.decode())


class Protocols(ProgramTest):
    def test_only_these_are_used(self):
        server = self.server(200)
        for value in ("=https", "-http", "-all,https", "=https,ftp"):
            ran = self.run_program("--proto", value, server.url(), status=1)
            self.assertIn("--proto does not allow http", ran.stderr.decode())
        self.assertEqual(server.seen, [])
        for value in ("=http,https", "-ftp", "-all,+http", "=all"):
            self.run_program("--proto", value, server.url())

    def test_redirects_have_protocols_of_their_own(self):
        server = self.server(Response(302, b"", [("Location", "/b")]), 200)
        ran = self.run_program("-L", "--proto-redir", "=https", server.url(), status=1)
        self.assertIn("--proto-redir does not allow http", ran.stderr.decode())
        self.assertEqual(len(server.seen), 1)
        server = self.server(503, Response(302, b"", [("Location", "/b")]), 503, 200)
        self.run_program(*QUICK, "-L", "--proto-redir", "=http", server.url())
        self.assertEqual(len(server.seen), 4)


class Passwords(ProgramTest):
    def test_a_password_is_asked_for_and_not_shown(self):
        server = self.server(200)
        said, status = self.type_at_terminal("-u", "me", server.url(), typed=b"secret\n",
                                             question=b"Enter host password for user 'me':")
        self.assertEqual((status, server.seen[0].headers["authorization"]),
                         (0, "Basic bWU6c2VjcmV0"))
        self.assertNotIn(b"secret", said)
        proxy = self.server(200)
        self.type_at_terminal("-U", "me", "-x", proxy.url(), "http://h.invalid/", typed=b"secret\n",
                              question=b"Enter proxy password for user 'me':")
        self.assertEqual(proxy.seen[0].headers["proxy-authorization"], "Basic bWU6c2VjcmV0")

    def test_a_signal_ends_the_question(self):
        said, status = self.type_at_terminal("-u", "me", "http://h.invalid/", typed=b"\x03",
                                             question=b"user 'me':")
        self.assertTrue(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, said)

    def test_digest_sends_no_password(self):
        asks = Response(401, b"", [("WWW-Authenticate", 'Digest realm="r", nonce="n", qop="auth"')])
        server = self.server(asks, 200)
        self.run_program("--basic", "--digest", "-u", "me:secret", server.url())
        self.assertNotIn("Basic", server.seen[0].headers.get("authorization", ""))
        self.assertTrue(server.seen[1].headers["authorization"].startswith('Digest username="me"'))

    def test_digest_sends_the_body_also_to_a_server_that_wants_none(self):
        server = self.server(200)
        self.run_program("--digest", "-u", "me:secret", "-X", "PUT", "-d", "data", server.url("/1"),
                         "--next", "-X", "PUT", "-d", "more", server.url("/2"))
        self.assertEqual([seen.body for seen in server.seen], [b"", b"data", b"more"])


class Messages(ProgramTest):
    def test_they_go_where_stderr_says(self):
        (self.folder / "log").write_bytes(b"old\n")
        server = self.server(404)
        ran = self.run_program("--stderr", "log", "-w", "%{stderr}err", server.url(), status=22)
        self.assertEqual((ran.stdout, ran.stderr), (b"", b""))
        self.assertTrue((self.folder / "log").read_text().startswith("errhttpretry: (22) GET "))
        ran = self.run_program("--stderr", "-", "--trace", server.url(), status=22)
        self.assertTrue(ran.stdout.startswith(b"attempt 1: GET"), ran.stdout)
        ran = self.run_program("--stderr", "none/log", server.url(), status=23)
        self.assertIn("cannot write to none/log", ran.stderr.decode())

    def test_options_that_change_nothing_are_accepted(self):
        server = self.server(200)
        self.run_program("-q", "-g", "--disable", "--globoff", server.url())


class Groups(ProgramTest):
    def test_each_group_has_its_own_options(self):
        server = self.server(Response(200, b"x", [("Set-Cookie", "a=1")]))
        (self.folder / "k").write_text(f"next\nurl={server.url('/2')}\nuser-agent=two\n--next\n"
                                       f"url={server.url('/3')}\n")
        ran = self.run_program("-A", "one", "--trace", "--report", "report.json", "-o", "1",
                               server.url("/1"), "-K", "k")
        self.assertEqual([seen.headers["user-agent"][:3] for seen in server.seen],
                         ["one", "two", "htt"])
        self.assertEqual(ran.stdout, b"xx")
        self.assertEqual([each["url"] for each in self.report()],
                         [server.url(f"/{i}") for i in (1, 2, 3)])
        self.assertIn(f"[3] {server.url('/3')}: done: succeeded after 1 attempt in ", ran.stderr.decode())

    def test_groups_share_cookies(self):
        server = self.server(Response(200, b"", [("Set-Cookie", "a=1")]), 200)
        self.run_program("-b", "", server.url(), "--next", "-c", "jar", server.url(), "--next",
                         server.url())
        self.assertEqual([seen.headers.get("cookie") for seen in server.seen], [None, "a=1", None])
        self.assertIn("a\t1", (self.folder / "jar").read_text())

    def test_the_urls_of_a_file_of_options_count_for_next(self):
        server = self.server(200)
        (self.folder / "k").write_text(f"url={server.url('/1')}\n")
        self.run_program("-K", "k", "--next", server.url("/2"))
        self.assertEqual([seen.target for seen in server.seen], ["/1", "/2"])

    def test_nothing_is_sent_if_a_later_group_is_wrong(self):
        server = self.server(200)
        self.usage_error(server.url(), "--next", "-H", "nonsense", server.url())
        self.assertEqual(server.seen, [])

    def test_the_first_failure_ends_the_run(self):
        server = self.server(200, 404, 500)
        for flags in ((), ("-Z", "--parallel-max", "1")):
            server.seen.clear()
            urls = [server.url(f"/{i}") for i in range(3)]
            ran = self.run_program("--fail-early", *flags, "--report", "report.json", *urls, "--next",
                                   server.url("/3"), status=22)
            self.assertEqual(len(server.seen), 2)
            self.assertEqual([each["status"] for each in self.report()], [200, 404, None, None])
            self.assertIn("httpretry: ended by --fail-early: 2 of 4 URLs were never started\n",
                          ran.stderr.decode())

    def test_fail_early_ends_what_runs_at_once(self):
        server = self.server(Response(503, b"", [("Retry-After", "50")]))
        bad = self.server(Response(404))
        process = self.start("-Z", "--fail-early", "--trace", server.url(), bad.url())
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 22)


if __name__ == "__main__":
    main()
