"""httpretry simulate: its output, and its errors."""

import json
import os
import pathlib
import re
import subprocess

from program import LIMIT, PROGRAM, ProgramTest, clean_environment, main

PAGE = pathlib.Path(__file__).parents[2] / "lib/extras/simulate/README.md"

OUTAGE = ("simulate", "--preset", "standard", "--preset", "curl", "--model", "queue:servers=10",
          "--rate", "100", "--trigger", "at=10s,for=5s,capacity=0.1", "--duration", "30s")


class Simulate(ProgramTest):
    def said(self, *args):
        done = self.run_program(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, *args, status=2):
        done = self.run_program(*args, status=status)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()

    def test_json_has_every_run_with_its_numbers(self):
        report = json.loads(self.said(*OUTAGE, "--format", "json", "--seed", "7"))
        self.assertEqual((report["seed"], report["model"], report["clients"], report["duration_s"]),
                         (7, "queue", 100, 30.0))
        self.assertEqual([run["policy"] for run in report["runs"]], ["standard", "curl"])
        standard, curl = report["runs"]
        self.assertEqual(standard["calls"], curl["calls"])
        for run in report["runs"]:
            self.assertAlmostEqual(run["sends_per_call"], run["sends"] / run["calls"], places=3)
            self.assertEqual(sum(run["per_second"]["sent"]), run["sends"])
            self.assertEqual(sum(run["per_second"]["succeeded"]), run["succeeded"])
            self.assertLessEqual(run["p50_ms"], run["p99_ms"])
        self.assertEqual((curl["w_l"], curl["stable_below"]), (4, 0.25))

    def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(self):
        for kind in ("table", "json", "html"):
            self.assertEqual(self.said(*OUTAGE, "--format", kind), self.said(*OUTAGE, "--format", kind))
        self.assertNotEqual(self.said(*OUTAGE), self.said(*OUTAGE, "--seed", "2"))

    def test_the_page_needs_no_network_and_no_script(self):
        page = self.said(*OUTAGE, "--format", "html", "--name", "a <b>").decode()
        for word in ("<script", "http:", "https:", "url(", "src=", "@import", "a <b>"):
            self.assertNotIn(word, page.replace("http://www.w3.org/2000/svg", ""))
        self.assertIn("a &lt;b&gt;", page)
        self.assertIn("prefers-color-scheme: dark", page)
        self.assertIn("@media print", page)
        self.assertIn("httpretry simulate --preset standard --preset curl --model queue:servers=10", page)

    def test_the_commands_of_its_page_run_as_they_are_written(self):
        (self.folder / "policy.json").write_text('{"version": 1, "default": {"preset": "curl"}}')
        (self.folder / "model.json").write_text('{"kind": "capacity", "rate": 500}')
        commands = re.search(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
        if os.environ.get("HTTPRETRY_SANITIZE"):  # a twentieth of the calls
            commands = commands.replace("httpretry simulate", "httpretry simulate --rate 50")
        path = os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]
        done = subprocess.run(["sh", "-ec", commands], cwd=self.folder, capture_output=True, timeout=LIMIT,
                              env=clean_environment() | {"PATH": path}, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"google-http-client", done.stdout)
        self.assertIn("</html>", (self.folder / "page.html").read_text())

    def test_settings_are_for_the_policy_before_them(self):
        report = json.loads(self.said(
            "simulate", "--set", "budget=none", "--preset", "standard", "--preset", "standard", "--set",
            "max_attempts=2", "--model", "fail:probability=1", "--clients", "10", "--rate", "10",
            "--duration", "5s", "--format", "json"))
        self.assertEqual([run["sends_per_call"] for run in report["runs"]], [5, 2])
        self.assertEqual(report["runs"][1]["policy"], "standard max_attempts=2")

    def test_calls_wait_for_what_they_cost(self):
        rates = 'rate=[{"limit": "100/s", "burst": 100}, {"limit": "600/m", "counts": "cost"}]'
        sends = {}
        for cost in ("1", "10"):
            report = json.loads(self.said("simulate", "--set", rates, "--cost", cost, "--clients", "1", "--rate", "10",
                                          "--duration", "30s", "--model", "capacity:rate=1000", "--format", "json"))
            sends[cost] = report["runs"][0]["per_second"]["sent"]
        self.assertGreater(sum(sends["1"]), 250)
        # 600 at once, and 10 a second: 60 sends, and one a second.
        self.assertLessEqual(sum(sends["10"][:25]), 60 + 25)

    def test_a_concurrent_budget_counts_what_is_under_way(self):
        def run(budget):
            report = json.loads(self.said(
                "simulate", "--preset", "standard", "--set", "max_attempts=4", "--set", f"budget={budget}",
                "--model", "fail:probability=1", "--clients", "1", "--rate", "100", "--duration", "20s",
                "--format", "json"))
            return report["runs"][0]
        some = run('{"kind": "concurrent", "ratio": 0.2, "min": 0}')
        self.assertEqual((some["w_l"], some["stable_below"], some["budget_burst"], some["budget_always"]),
                         (1.25, 0.8, None, 0))
        self.assertGreater(some["sends_per_call"], 1)
        self.assertLessEqual(some["sends_per_call"], 1.25)
        self.assertGreater(some["budget_refusals"], 0)
        self.assertEqual(run('{"kind": "concurrent", "ratio": 0, "min": 0}')["sends_per_call"], 1)
        self.assertEqual(run("none")["sends_per_call"], 4)
        self.assertIn("; 3 retries at once are always allowed",
                      self.said("simulate", "--set", "budget.kind=concurrent", "--duration", "20s").decode())
        self.assertIn("; 2.5 retries a second are always allowed\n",
                      self.said("simulate", "--set", 'budget={"kind": "ratio", "min_per_second": 2.5}',
                                "--duration", "20s").decode())

    def test_a_trace_plays_recorded_reports(self):
        reports = self.folder / "reports.json"
        attempt = {"duration_ms": 10, "status": 503}
        reports.write_text("".join(json.dumps({"attempts": [attempt, {"duration_ms": 20, "status": 200}]})
                                   + "\n" for _ in range(2)))
        report = json.loads(self.said("simulate", "--model", f"trace:file={reports}", "--clients", "1",
                                      "--load", "closed", "--duration", "20s", "--format", "json"))
        self.assertEqual(report["runs"][0]["sends_per_call"], 2)

    def test_the_policy_of_a_file_is_the_one_of_the_url_and_is_named(self):
        file = self.folder / "p.json"
        def write(**more):
            file.write_text(json.dumps({"version": 1, **more}))
        def named(*args):
            report = json.loads(self.said("simulate", "--policy", "p.json", "--rate", "10", "--duration", "20s",
                                          "--format", "json", *args))
            return [run["policy"] for run in report["runs"]]
        write()
        self.assertEqual(named(), ["p.json (default)"])
        write(default="careful", policies={"careful": {"max_attempts": 2}})
        self.assertEqual(named("http://a.b/"), ["p.json (policy careful)"])
        write(endpoints=[
            {"name": "write", "match": {"host": "a.b", "methods": ["POST"]}, "policy": "standard"},
            {"match": {"host": "a.b", "path": "/y/**"}, "policy": "standard"}])
        self.assertEqual(named("POST", "http://a.b/x"), ["p.json (endpoint write)"])
        self.assertEqual(named("--set", "max_attempts=2", "http://a.b/y"),
                         ["p.json (endpoint /endpoints/1) max_attempts=2"])
        self.assertEqual(named("--name", "ours", "http://a.b/y"), ["ours"])
        self.assertIn("simulate needs a URL, because p.json has 2 endpoints",
                      self.refused("simulate", "--policy", "p.json"))
        said = self.refused("simulate", "--policy", "p.json", "http://u:secret@a.b/x?k=1")
        self.assertIn("no endpoint of p.json matches GET http://a.b/x", said)
        self.assertIn("near: write (p.json:1:30): method POST does not match GET\n"
                      "near: /endpoints/1 (p.json:1:118): path /y/** does not match /x", said)
        self.assertNotIn("secret", said)
        self.assertIn("no endpoint of p.json matches GET http://c.d/",
                      self.refused("simulate", "--policy", "p.json", "http://c.d/"))
        done = self.run_program("simulate", "--duration", "20s", status=2, env={"HTTPRETRY_POLICY": "p.json"})
        self.assertIn(b"simulate needs a URL", done.stderr)

    def test_bad_models_loads_and_triggers_are_named_with_their_positions(self):
        self.assertIn('--model:1:1: /kind: "bogus" is not one of', self.refused("simulate", "--model", "bogus"))
        said = self.refused("simulate", "--model", "fail:probabilty=2,probability=3")
        self.assertIn('--model:1:6: /probabilty: unknown key; did you mean "probability"?', said)
        self.assertIn("--model:1:31: /probability: 3 is out of range: 0 to 1", said)
        self.assertIn('--model:1:6: /rate: "rate" does not belong to kind "fail"',
                      self.refused("simulate", "--model", "fail:rate=3"))
        self.assertIn('--trigger:1:1: missing key "for"', self.refused("simulate", "--trigger", "at=5s,fail=1"))
        self.assertIn("--load:1:14: /think", self.refused("simulate", "--load", "closed:think=soon"))
        file = self.folder / "model.json"
        file.write_text('{"kind": "queue",\n "servers": 0}\n')
        self.assertIn(f"{file}:2:13: /servers: 0 is out of range", self.refused("simulate", "--model", str(file)))
        self.assertIn("has none", self.refused("simulate", "--trigger", "at=5s,for=5s,capacity=0"))
        self.assertIn("at least 10s after the trigger",
                      self.refused("simulate", "--trigger", "at=55s,for=1s,fail=1"))

    def test_options_that_do_not_fit_together_are_errors(self):
        self.assertIn("--name must come after the policy that it names", self.refused("simulate", "--name", "it"))
        self.assertIn("--rate needs an open load without a curve",
                      self.refused("simulate", "--load", "once", "--rate", "5"))
        self.assertIn("option --rate", self.refused("simulate", "--rate", "fast"))
        self.assertIn("option --clients must be from 1 to 1000000", self.refused("simulate", "--clients", "0"))
        self.assertIn("simulate takes at most a METHOD and a URL",
                      self.refused("simulate", "GET", "http://a/", "http://b/"))
        self.assertIn("cannot read", self.refused("simulate", "--model", "./no-such-file.json"))


if __name__ == "__main__":
    main()
