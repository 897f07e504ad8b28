"""Prometheus reads our metrics, and the alerts and the dashboard of the examples know their names."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
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
        known = set(re.findall(r"`(\w+)`", (ROOT / "lib/extras/telemetry/README.md").read_text()))
        board = json.loads((MONITORING / "dashboard.json").read_text())
        texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        texts.append((MONITORING / "alerts.yml").read_text())
        used = set(re.findall(r"\b(?:httpretry|http_client)_\w+", " ".join(texts)))
        self.assertGreater(len(used), 4)
        self.assertLessEqual({re.sub(r"_(bucket|count|sum)$", "", name) for name in used}, known)

    def test_the_queries_of_the_dashboard(self):
        board = json.loads((MONITORING / "dashboard.json").read_text())
        rules = [{"record": f"q:{number}", "expr": expr} for number, expr in enumerate(
            target["expr"] for panel in board["panels"] for target in panel["targets"])]
        file = self.folder / "queries.yml"
        file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
        self.promtool("check", "rules", file)

    def ask(self, port, path, **query):
        url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    @staticmethod
    def is_ready(port):
        with contextlib.suppress(urllib.error.HTTPError):  # a 503 at first
            urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=10).close()
            return True
        return False

    def wait_for(self, look):
        until = time.monotonic() + 60
        while not (found := look()):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.2)
        return found

    def test_a_scrape_as_the_page_says(self):
        """The example of the page, and its prometheus.yml: only ports and the interval differ."""
        if not EXAMPLE.exists():
            self.skipTest(f"{EXAMPLE} is not built")
        service, port = free_port(), free_port()
        config = (MONITORING / "prometheus.yml").read_text()
        self.assertIn("127.0.0.1:8080", config)
        config = config.replace("127.0.0.1:8080", f"127.0.0.1:{service}").replace("15s", "200ms")
        (self.folder / "prometheus.yml").write_text(config)
        shutil.copy(MONITORING / "alerts.yml", self.folder)
        self.promtool("check", "config", self.folder / "prometheus.yml")
        self.daemon(EXAMPLE, service, port=service)
        self.daemon("prometheus", f"--config.file={self.folder}/prometheus.yml",
                    f"--storage.tsdb.path={self.folder}/data", "--enable-feature=exemplar-storage",
                    f"--web.listen-address=127.0.0.1:{port}", port=port)
        self.wait_for(lambda: self.is_ready(port))
        found = self.wait_for(lambda: self.ask(port, "query", query="httpretry_retries_total")["result"])
        self.assertEqual([each["value"][1] for each in found], ["1"])
        self.assertEqual(found[0]["metric"]["rule_kind"], "status")
        # In OpenMetrics, for which Prometheus asks: there are none in the other format.
        now = time.time()
        exemplars = self.wait_for(lambda: self.ask(
            port, "query_exemplars", query="http_client_request_duration_seconds_bucket",
            start=now - 600, end=now + 600))
        self.assertRegex(exemplars[0]["exemplars"][0]["labels"]["trace_id"], "^[0-9a-f]{32}$")
        rules = self.ask(port, "rules")["groups"][0]["rules"]
        self.assertEqual({rule["health"] for rule in rules} - {"ok", "unknown"}, set())


if __name__ == "__main__":
    main("prometheus", "prometheus")
