"""nghttpd: HTTP/2 with one connection for all, stopped and started under load."""

import re
import signal
import time

from daemon import ServerTest, free_port, main
from program import LIMIT


class Nghttpd(ServerTest):
    def seen(self):
        return (self.folder / "daemon.out").read_text().count(":path: /file")

    def wait_for_requests(self, least):
        deadline = time.monotonic() + LIMIT
        while self.seen() < least:
            self.assertLess(time.monotonic(), deadline, "requests are missing")
            time.sleep(0.005)

    def test_a_stop_and_a_start_under_load(self):
        self.make_certificate()
        (self.folder / "www").mkdir()
        (self.folder / "www/file").write_bytes(b"f" * 3000)
        port = free_port()

        def start():
            return self.daemon("nghttpd", "-v", "--address=127.0.0.1", "-d", self.folder / "www",
                               port, "key.pem", "cert.pem", port=port)
        process = start()
        self.policy(max_attempts="unlimited", backoff={"kind": "constant", "interval": "20ms"})
        load = self.load(f"https://127.0.0.1:{port}/file", 3000, "--cacert", "cert.pem", at_once=50)
        for i in range(3):
            self.wait_for_requests(50 * (i + 1))
            self.end(process, signal.SIGTERM)
            time.sleep(0.3)  # so that calls find nobody there, also on a busy machine
            process = start()
        reports = self.finish(load)
        self.assertEqual({each["status"] for each in reports}, {200})
        self.assertEqual({each["http_version"] for each in reports}, {"2"})
        self.end(process)
        seen = self.seen()
        attempts = [a for each in reports for a in each["attempts"]]
        self.assertGreater(len(attempts), len(reports))
        self.assertLessEqual(sum(a["sent"] == "answered" for a in attempts), seen)
        self.assertLessEqual(seen, sum(a["wire_sends"] for a in attempts))

    def test_posts_that_are_refused_are_sent_again_and_done_once(self):
        self.make_certificate()
        (self.folder / "www").mkdir()
        (self.folder / "www/file").write_bytes(b"f")
        port = free_port()
        process = self.daemon("nghttpd", "-v", "--max-concurrent-streams=2", "--address=127.0.0.1",
                              "-d", self.folder / "www", port, "key.pem", "cert.pem", port=port)
        self.policy(max_attempts=40, backoff={"kind": "none"})
        reports = self.finish(self.load(f"https://127.0.0.1:{port}/file", 300, "--cacert",
                                        "cert.pem", "-d", "once", at_once=64))
        self.assertEqual({each["status"] for each in reports}, {200})
        self.end(process)
        # It refuses what comes before the client has read the limit: none, or up to 62.
        targets = re.findall(r":path: (\S+)", (self.folder / "daemon.out").read_text())
        self.assertEqual((len(targets), len(set(targets))), (300, 300))


if __name__ == "__main__":
    main("nghttpd", "nghttp2-server")
