"""Runs with many URLs: what tells them apart, what is summed up, and what an interrupted run says."""

import json
import re
import signal
import threading

from program import LIMIT, ProgramTest, QUICK, Response, closed_port, main

BUSY = Response(503, b"", [("Retry-After", "50")])


class ManyUrls(ProgramTest):
    def test_each_line_has_number_and_url(self):
        server = self.server(503, 200)
        urls = [server.url("/a?key=secret"), server.url("/b")]
        for flags in ((), ("-Z",)):
            server.seen.clear()
            said = self.run_program(*QUICK, "--trace", *flags, *urls).stderr.decode()
            lines = [line for line in said.splitlines() if not line.startswith("httpretry: ")]
            for line in lines:
                self.assertRegex(line, rf"^(\[1\] {server.url('/a')}\?…|\[2\] {server.url('/b')}): ")
            self.assertEqual(len(lines), 8)
            self.assertNotIn("secret", said)
        server = self.server(404)
        said = self.run_program(*urls[:1], server.url("/x?key=secret"), status=22).stderr.decode()
        self.assertIn(f"httpretry: [2] (22) GET {server.url('/x')}?…: failed after 1 attempt", said)

    def test_the_totals_are_those_of_a_group(self):
        server = self.server(Response(200, b"123"))
        said = self.run_program("-o", "a", server.url(), "--next", "-Z", "-o", "b", server.url(), "-o", "c",
                                server.url(), "--next", "-Z", "-o", "d", server.url()).stderr.decode()
        self.assertEqual([line.partition(" in ")[0] for line in said.splitlines()],
                         ["httpretry: 2 succeeded, 0 failed, 2 attempts, 6 bytes",
                          "httpretry: 1 succeeded, 0 failed, 1 attempts, 3 bytes"])

    def test_failures_of_a_dead_host_are_summed_up(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        urls = [f"http://127.0.0.1:{port}/{i}" for i in range(300)]
        for flags in ((), ("-Z",)):
            ran = self.run_program("--retry", 0, *flags, *urls, status=7)
            lines = ran.stderr.decode().splitlines()
            self.assertLess(len(lines), 10, lines)
            self.assertIn("httpretry: 297 URLs more failed in the same way: http://127.0.0.1:"
                          f"{port}: connect (7); --report FILE lists each of them", lines)

    def test_a_failure_that_is_about_the_url_is_told_of_each(self):
        server = self.server(404)
        ran = self.run_program(*[server.url(f"/{i}") for i in range(6)], status=22)
        self.assertEqual(len(ran.stderr.decode().splitlines()), 6)

    def test_an_interrupted_run_says_what_was_never_started(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for flags, started in (((), 2), (("-Z", "--parallel-max", "3"), 4)):
                with self.subTest(signal=number, flags=flags):
                    release = threading.Event()
                    self.addCleanup(release.set)
                    server = self.server(200, Response(200, hold=release))
                    urls = [server.url(f"/{i}") for i in range(9)]
                    process = self.start(*flags, "--report", "report.json", *urls[:7], "--next",
                                         *urls[7:])
                    for _ in range(started):
                        server.arrived.get(timeout=LIMIT)
                    process.send_signal(number)
                    _, said = process.communicate(timeout=LIMIT)
                    self.assertEqual(process.returncode, status)
                    message = re.search(r"httpretry: interrupted: (\d) of 9 URLs were never started\n",
                                        said.decode())
                    self.assertTrue(message, said)
                    left = int(message[1])
                    # On a busy machine, a URL that is slow to begin makes room for another one.
                    self.assertTrue(1 <= left <= 9 - started, said)
                    reports = self.report()
                    self.assertEqual([each["url"] for each in reports], urls)
                    unsent = [each for each in reports if not each["attempts"]]
                    self.assertEqual(len(unsent), left)
                    for each in unsent:
                        self.assertEqual((each["error"]["kind"], each["stop_reason"]),
                                         ("canceled", "canceled"))

    def test_a_host_that_asks_for_a_wait_is_left_alone_and_others_are_not(self):
        busy, good = self.server(Response(503, b"", [("Retry-After", "1")]), 200), self.server(200)
        urls = [server.url(f"/{i}") for i in range(10) for server in (busy, good)]
        self.run_program("-Z", "--parallel-max", "2", *urls)
        self.assertEqual((len(busy.seen), len(good.seen)), (11, 10))
        # Of the one that waits, at most those that were on their way at that moment came before.
        self.assertLessEqual(len({seen.target for seen in busy.seen[:2]}), 2)
        self.assertIn(busy.seen[0].target, [seen.target for seen in busy.seen[1:]])

    def test_urls_wait_for_descriptors_that_others_have(self):
        server = self.server(Response(200, b"ok"))
        urls = [server.url(f"/{i}") for i in range(200)]
        said = self.run_out_of_descriptors(server, "-Z", "--parallel-max", "150", *urls, files=48)
        self.assertIn("200 succeeded, 0 failed", said)
        self.assertEqual(len(server.seen), 200)

    def test_idle_connections_to_some_hosts_leave_descriptors_for_others(self):
        program = self.start("serve", "--outcomes", "200", "--listen", "0.0.0.0:0")
        port = program.stdout.readline().decode().strip().rpartition(":")[2]
        urls = [f"http://127.0.0.{i}:{port}/" for i in range(1, 101)]
        for parallel in (1, 50):
            with self.subTest(parallel=parallel):
                ran = self.run_program("-Z", "--parallel-max", parallel, *urls, files=40)
                self.assertIn("100 succeeded, 0 failed", ran.stderr.decode())

    def test_a_run_without_a_descriptor_for_one_url_ends_with_the_reason(self):
        server = self.server(200)
        urls = [server.url(f"/{i}") for i in range(5)]
        ended = 0
        for files in range(6, 40):
            with self.subTest(files=files):
                ran = self.run_program("-Z", *urls, files=files, status=(0, 2, 70, 75))
                if ran.returncode != 75:
                    continue
                said = ran.stderr.decode()
                self.assertIn(f"this process may have {files} files open", said)
                self.assertIn("ended because no further request could be sent: 5 of 5 URLs were never started",
                              said)
                ended += 1
        self.assertGreater(ended, 0)

    def test_the_report_of_one_url_is_an_object_after_a_signal(self):
        server = self.server(BUSY)
        process = self.start("--report", "-", "-o", "out", "--trace", server.url())
        while b"retry in" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LIMIT)
        report = json.loads(out)
        self.assertEqual((report["stop_reason"], len(report["attempts"])), ("canceled", 1))


if __name__ == "__main__":
    main()
