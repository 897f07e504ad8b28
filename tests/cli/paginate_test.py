"""--paginate: all pages of a list, by each of the ways in which APIs name the next page."""
import json

from program import QUICK, ProgramTest, Response, main


def page(body, link=None, status=200):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, text, [("Link", f'<{link}>; rel="next"')] if link else [])


class Paginate(ProgramTest):
    def targets(self, server):
        return [seen.target for seen in server.seen]

    def test_link_headers_and_a_retry(self):
        server = self.server(page(b"one", "/items?page=2"), 503, page(b"two\n", "/items?page=3"), page(b"three"))
        result = self.run_program(*QUICK, "--paginate", server.url("/items"))
        self.assertEqual(result.stdout, b"one\ntwo\nthree\n")
        self.assertEqual(self.targets(server), ["/items", "/items?page=2", "/items?page=2", "/items?page=3"])

    def test_ways_in_the_body(self):
        cases = (
            ("json:/next", [{"next": "/b?c=d"}, {"next": None}], ["/a?x=y", "/b?c=d"]),
            ("cursor:after=/meta/next", [{"meta": {"next": "a&b"}}, {"meta": {}}], ["/a?x=y", "/a?x=y&after=a%26b"]),
            ("cursor:after=/data/-/id,/more", [{"data": [{"id": 1}, {"id": 2}], "more": True}, {"data": [], "more": False}],
             ["/a?x=y", "/a?x=y&after=2"]),
            ("number:p=/items", [{"items": [1]}, {"items": [2]}, {"items": []}],
             ["/a?x=y&p=1", "/a?x=y&p=2", "/a?x=y&p=3"]),
            ("number:p", [[1], [2], []], ["/a?x=y&p=1", "/a?x=y&p=2", "/a?x=y&p=3"]),
        )
        for way, bodies, targets in cases:
            with self.subTest(way):
                server = self.server(*map(page, bodies))
                result = self.run_program("--page-by", way, server.url("/a?x=y"))
                self.assertEqual(self.targets(server), targets)
                pages = [json.loads(line) for line in result.stdout.splitlines()]
                self.assertEqual(pages, bodies if not way.startswith("number") else bodies[:-1])

    def test_arrays_are_joined(self):
        server = self.server(page(b'[1.0, {"a": "\\u00e9"}]', "/2"), page(b"[]", "/3"), page(b"[1e3]"))
        result = self.run_program("--join-pages", "-w", "%{num_redirects}", server.url())
        self.assertEqual(result.stdout, '[\n1.0,\n{"a":"é"},\n1e3\n]\n0'.encode())
        server = self.server(page({"items": [1, 2], "next": "/2"}), page({"items": [3]}))
        result = self.run_program("--page-by", "json:/next", "--join-pages=/items", server.url())
        self.assertEqual(json.loads(result.stdout), [1, 2, 3])
        server = self.server(page([]))
        result = self.run_program("--page-by", "number:p", "--join-pages", server.url())
        self.assertEqual(result.stdout, b"[]\n")

    def test_a_page_that_fails(self):
        server = self.server(page(b"one", "/2"), page(b"two", "/3?key=secret"), page(b"", status=404))
        result = self.run_program("--paginate", "-o", "out", server.url(), status=22)
        message = result.stderr.decode()
        self.assertIn(f"page 3: {server.url('/3')}: ", message)
        self.assertIn("404", message)
        self.assertNotIn("secret", message)
        self.assertFalse((self.folder / "out").exists())

    def test_the_first_page_fails_like_any_other_response(self):
        server = self.server(page(b"gone", status=404))
        result = self.run_program("--paginate", "--fail-with-body", server.url(), status=22)
        self.assertEqual(result.stdout, b"gone")
        self.assertNotIn(b"page 1", result.stderr)

    def test_a_redirect_or_304_is_no_page(self):
        for status in (302, 304):
            with self.subTest(status):
                server = self.server(page(b"one", "/2"), Response(status, b"", [("Location", "/3")]))
                result = self.run_program("--paginate", server.url(), status=22)
                message = result.stderr.decode()
                self.assertIn(f"page 2: {server.url('/2')}: ", message)
                self.assertIn(str(status), message)
                self.assertEqual(result.stdout, b"")
        # As the only response, it is written as without --paginate, but it is no array.
        redirect = Response(302, b'{"items": []}', [("Location", "/2")])
        self.assertEqual(self.run_program("--paginate", self.server(redirect).url()).stdout, b'{"items": []}')
        server = self.server(redirect)
        result = self.run_program("--join-pages=/items", server.url(), status=22)
        self.assertIn(f"page 1: {server.url()}: ", result.stderr.decode())
        self.assertEqual(result.stdout, b"")

    def test_a_connection_that_breaks(self):
        server = self.server(page(b"one", "/2"), Response(200, reset=True))
        result = self.run_program(*QUICK, "--retry", 1, "--paginate", server.url(), status=52)
        self.assertIn("page 2: GET " + server.url("/2"), result.stderr.decode())
        self.assertEqual(result.stdout, b"")

    def test_what_cannot_be_continued(self):
        other = self.server(200)
        cases = (
            ([page(b"one", other.url())], ("--paginate",), "another origin than the first page"),
            ([page(b"one", "ftp://127.0.0.1/2")], ("--paginate",), 'must be http or https, not "ftp"'),
            ([page(b"one", "/2"), page(b"two", "/2")], ("--paginate",), "page 3: the server named a page that was"),
            ([page(b"one", "/2"), page(b"two", "/3")], ("--max-pages", 2), "page 3: there are more than 2 pages"),
            ([page(b"<html>")], ("--page-by", "json:/next"), "page 1: the response:1:1: "),
            ([page({"items": 7})], ("--join-pages=/items",), 'page 1: --join-pages expects an array at "/items"'),
        )
        for responses, options, message in cases:
            with self.subTest(message):
                server = self.server(*responses)
                result = self.run_program(*options, server.url(), status=tuple(range(1, 100)))
                self.assertIn(message, result.stderr.decode())
                self.assertEqual(result.stdout, b"")
        self.assertEqual(other.seen, [])

    def test_as_many_pages_as_allowed(self):
        bodies = [{"items": [1]}, {"items": [2]}]
        server = self.server(*map(page, bodies + [{"items": []}]))
        way = ("--page-by", "number:p=/items", "--max-pages", 2, "--join-pages=/items")
        self.assertEqual(json.loads(self.run_program(*way, server.url()).stdout), [1, 2])
        server = self.server(*map(page, bodies + [{"items": [3]}]))
        result = self.run_program(*way, server.url(), status=tuple(range(1, 100)))
        self.assertIn("page 3: there are more than 2 pages", result.stderr.decode())

    def test_all_pages_get_the_headers_and_credentials(self):
        server = self.server(page(b"one", "/2"), page(b"two"))
        self.run_program("--paginate", "-u", "ann:pw", "-H", "X-Key: k", server.url())
        self.assertEqual(self.targets(server), ["/", "/2"])
        for seen in server.seen:
            self.assertEqual(seen.headers["x-key"], "k")
            self.assertTrue(seen.headers["authorization"].startswith("Basic "))

    def test_the_report_and_the_trace_have_the_attempts_of_all_pages(self):
        server = self.server(page(b"one", "/2"), 503, page(b"two"))
        result = self.run_program(*QUICK, "--paginate", "--trace", "--report", "report.json", server.url())
        report = self.report()
        self.assertEqual([each["status"] for each in report["attempts"]], [200, 503, 200])
        self.assertEqual(report["bytes"], len("one\ntwo\n"))
        self.assertIn("attempt 3: GET " + server.url("/2"), result.stderr.decode())

    def test_several_lists_at_once(self):
        servers = [self.server(page(b"a", "/2"), page(b"b")) for _ in range(2)]
        self.run_program("-Z", "--paginate", "-o", "0", servers[0].url(), "-o", "1", servers[1].url())
        for name in "01":
            self.assertEqual((self.folder / name).read_bytes(), b"a\nb\n")

    def test_mistakes(self):
        cases = ((("--paginate", "-i"), "--paginate cannot be combined"), (("--paginate", "-d", "x"), "cannot be"),
                 (("--paginate", "-z", "2024-01-01"), "cannot be combined"),
                 (("--paginate", "--etag-save", "etag"), "cannot be combined"),
                 (("--paginate", "--etag-compare", "etag"), "cannot be combined"),
                 (("--page-by", "page"), "json:/POINTER"), (("--page-by", "json:next"), "json:/POINTER"),
                 (("--page-by", "cursor:=/a"), "cursor:PARAMETER"),
                 (("--page-by", "cursor:a=/b,/c~"), "cursor:PARAMETER=/POINTER,/MORE"),
                 (("--join-pages=items",), '"items" is not a JSON pointer, such as /items'),
                 (("--max-pages", "x"), "--max-pages"),
                 (("--max-pages", "0"), "--max-pages must be at least 1"))
        for options, message in cases:
            with self.subTest(options):
                result = self.run_program(*options, "http://127.0.0.1:1/", status=2)
                self.assertIn(message, result.stderr.decode())


if __name__ == "__main__":
    main()
