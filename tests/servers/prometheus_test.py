"""Prometheus reads our metrics, and the alerts and the dashboard of the examples know their names."""

import http.server
import json
import pathlib
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from daemon import ServerTest, free_port, main
from program import PROGRAM

ROOT = pathlib.Path(__file__).parents[2]
MONITORING = ROOT / "apps/examples/monitoring"
EXAMPLE = pathlib.Path(PROGRAM).parent / "examples/example_metrics_endpoint"


class Prometheus(ServerTest):
    def page(self):
        if not EXAMPLE.exists():
            self.skipTest(f"{EXAMPLE} is not built")
        return subprocess.run([EXAMPLE], check=True, capture_output=True, timeout=60).stdout

    def promtool(self, *args, data=None):
        done = subprocess.run(["promtool", *args], input=data, capture_output=True, check=False,
                              cwd=MONITORING, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_promtool_finds_nothing_to_say_about_the_metrics(self):
        done = self.promtool("check", "metrics", data=self.page())
        self.assertEqual(done.stdout + done.stderr, b"")

    def test_the_alerts(self):
        self.promtool("check", "rules", "alerts.yml")
        self.promtool("test", "rules", "alerts_test.yml")

    def test_the_names_are_those_of_the_page(self):
        known = set(re.findall(r"`(\w+)`", (ROOT / "lib/telemetry/README.md").read_text()))
        board = json.loads((MONITORING / "dashboard.json").read_text())
        texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        texts.append((MONITORING / "alerts.yml").read_text())
        used = set(re.findall(r"\b(?:httpretry|http_client)_\w+", " ".join(texts)))
        self.assertGreater(len(used), 4)
        self.assertLessEqual({re.sub(r"_(bucket|count|sum)$", "", name) for name in used}, known)

    def test_a_scrape(self):
        text = self.page()

        class Endpoint(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args):
                pass

        endpoint = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        threading.Thread(target=endpoint.serve_forever, daemon=True).start()
        self.addCleanup(endpoint.server_close)
        self.addCleanup(endpoint.shutdown)
        port = free_port()
        (self.folder / "prometheus.yml").write_text(
            "scrape_configs:\n  - job_name: service\n    scrape_interval: 200ms\n"
            "    scrape_timeout: 200ms\n    static_configs:\n"
            f"      - targets: ['127.0.0.1:{endpoint.server_address[1]}']\n")
        self.daemon("prometheus", f"--config.file={self.folder}/prometheus.yml",
                    f"--storage.tsdb.path={self.folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}", port=port)
        query = urllib.parse.quote("sum(httpretry_retries_total)")
        found, until = [], time.monotonic() + 60
        while not found and time.monotonic() < until:
            time.sleep(0.2)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={query}",
                                        timeout=10) as answer:
                found = json.load(answer)["data"]["result"]
        self.assertEqual([each["value"][1] for each in found], ["1"])


if __name__ == "__main__":
    main("prometheus", "prometheus")
