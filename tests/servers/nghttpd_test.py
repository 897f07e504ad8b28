"""nghttpd: HTTP/2 with one connection for all, stopped and started under load."""

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


if __name__ == "__main__":
    main("nghttpd", "nghttp2-server")
