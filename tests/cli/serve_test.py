"""serve: an address, a log, faults."""

import email.utils
import json
import re
import signal
import subprocess
import time

from program import LIMIT, ProgramTest, main


class Serve(ProgramTest):
    def serve(self, *args):
        process = self.start("serve", *args)
        return process, process.stdout.readline().decode().strip()

    def test_it_plays_outcomes_and_logs_requests(self):
        process, address = self.serve("--outcomes", "503:retry-after=0,reset,200")
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+$")
        self.run_program("--report", "report.json", "-H", "X-A: b", "-T", "-",
                         address + "/p?q=1", stdin=b"four")
        self.assertEqual([a["status"] for a in self.report()["attempts"]], [503, None, 200])
        for _ in range(3):
            seen = json.loads(process.stdout.readline())
            self.assertEqual((seen["method"], seen["path"], seen["body_length"]), ("PUT", "/p", 4))
            self.assertEqual(seen["headers"]["X-A"], "b")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)

    def test_times_are_those_of_the_response(self):
        _, address = self.serve("--outcomes", "429:retry-after=now+60:x-a=now")
        before = int(time.time())
        headers = self.run_program("-s", "-i", "--retry", "0", "--no-fail", address).stdout.decode()
        value = re.search(r"(?im)^retry-after: (.*?)\r$", headers)[1]
        sent = email.utils.parsedate_to_datetime(value).timestamp() - 60
        self.assertTrue(before <= sent <= time.time() + 1, (before, sent))
        self.assertRegex(headers, r"(?m)^x-a: now\r$")

    def test_the_value_of_a_header_may_be_a_url_with_a_query(self):
        _, address = self.serve("--outcomes", "302:location=http://x.example:8080/a?b=c:x-a=d")
        headers = self.run_program("-s", "-i", address).stdout.decode()
        self.assertRegex(headers, r"(?im)^location: http://x\.example:8080/a\?b=c\r$")
        self.assertRegex(headers, r"(?im)^x-a: d\r$")

    def test_a_signal_ends_it_also_where_nobody_reads_the_log(self):
        process, address = self.serve("--outcomes", "200")
        process.stdout.flush()
        waiting = self.start("-Z", "-s", "-K", "-", stdin=subprocess.PIPE)
        waiting.stdin.write(b"".join(b'url = "%s/?%s"\n' % (address.encode(), b"x" * 1000)
                                     for _ in range(200)))
        waiting.stdin.close()
        self.assertRaises(subprocess.TimeoutExpired, waiting.wait, 0.5)  # the log is full
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT), 0)

    def test_the_log_is_written_before_the_response(self):
        _, address = self.serve("--log", "log.jsonl")
        self.run_program(address + "/1", address + "/2")
        paths = [json.loads(line)["path"] for line in
                 (self.folder / "log.jsonl").read_text().splitlines()]
        self.assertEqual(paths, ["/1", "/2"])

    def test_tls(self):
        process, address = self.serve("--tls", "--outcomes", "200")
        said = process.stderr.readline().decode()
        self.assertTrue(said.startswith("certificate authority: "), said)
        authority = said.split(": ")[1].strip()
        self.assertTrue(address.startswith("https://"))
        self.run_program("--cacert", authority, address)
        self.run_program("-k", address)
        self.run_program("--retry", 0, address, status=60)

    def test_what_keeps_it_from_serving(self):
        other = self.server(200)
        result = self.run_program("serve", "--listen", f"127.0.0.1:{other.port}", status=1)
        self.assertIn(f"cannot listen on 127.0.0.1:{other.port}: ", result.stderr.decode())
        result = self.run_program("serve", "--log", "no/where", status=23)
        self.assertIn("cannot write to no/where: No such file", result.stderr.decode())
        _, address = self.serve("--log", "/dev/full", "--outcomes", "200")
        self.run_program(address)  # a log that cannot be written keeps nobody from a response

    def test_what_it_refuses(self):
        for args, message in ((("x",), "serve takes options only"),
                              (("--listen", "1"), "is not ADDRESS:PORT"),
                              (("--listen", "127.0.0.1:70000"), "option --listen: the port must be at most 65535"),
                              (("--outcomes", "refused"), "a server cannot play")):
            self.assertIn(message, self.usage_error("serve", *args))


if __name__ == "__main__":
    main()
