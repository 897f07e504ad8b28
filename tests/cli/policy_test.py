"""policy check, explain, presets, schema."""

import json
import os
import pathlib
import pty
import re
import subprocess

from program import LIMIT, PROGRAM, ProgramTest, clean_environment, main, read_terminal

GOOD = {"version": 1, "default": "careful",
        "policies": {"careful": {"preset": "constant", "max_attempts": 2,
                                 "backoff": {"kind": "constant", "interval": "1ms"}}},
        "endpoints": [{"name": "api", "match": {"path": "/api/**"}, "policy": {"max_attempts": 3}},
                      {"name": "all", "match": {"path": "/**"}, "policy": "careful"}]}


class Policy(ProgramTest):
    def write(self, name, content):
        (self.folder / name).write_text(content if isinstance(content, str)
                                        else json.dumps(content, indent=1))

    def test_check_is_silent_when_all_is_well(self):
        self.write("good.json", GOOD)
        result = self.run_program("policy", "check", "good.json")
        self.assertEqual((result.stdout, result.stderr), (b"", b""))

    def test_check_names_each_problem(self):
        self.write("bad.json", '{"version": 1,\n "default": {"max_attemps": 3}}')
        result = self.run_program("policy", "check", "bad.json", "missing.json", status=1)
        lines = result.stdout.decode().splitlines()
        self.assertEqual(lines[0], 'bad.json:2:14: /default/max_attemps: unknown key; '
                                   'did you mean "max_attempts"?')
        self.assertEqual(lines[1], "missing.json: No such file or directory")

    def test_a_bad_file_is_3_where_it_is_used(self):
        self.write("bad.json", "{}")
        for args in (("--policy", "bad.json", "http://h/"),
                     ("plan", "--policy", "bad.json"),
                     ("policy", "explain", "bad.json", "GET", "http://h/"),
                     ("--policy", "missing.json", "http://h/")):
            self.assertIn(b".json:", self.run_program(*args, status=3).stderr)
        self.run_program("plan", status=3, env={"HTTPRETRY_POLICY": "bad.json"})

    def test_the_endpoints_policy_is_used_and_reported(self):
        self.write("good.json", GOOD)
        server = self.server(503)
        self.run_program("--policy", "good.json", "--report", "r.json", server.url("/x"), status=22)
        self.assertEqual(len(server.seen), 2)
        policy = self.report("r.json")["policy"]
        self.assertEqual((policy["endpoint"], policy["name"], policy["preset"]),
                         ("all", "careful", "constant"))
        self.assertRegex(policy["source"], r"^good\.json:\d+:\d+$")

    def test_explain(self):
        self.write("good.json", GOOD)
        args = ("policy", "explain", "good.json", "GET", "http://h/api/x")
        explained = json.loads(self.run_program(*args, "--format", "json").stdout)
        self.assertEqual(list(explained), ["endpoint", "policy", "values"])
        self.assertEqual(explained["endpoint"], "api")
        value = next(v for v in explained["values"] if v["key"] == "max_attempts")
        self.assertEqual(value["value"], 3)
        self.assertRegex(value["source"], r"^good\.json:\d+:\d+$")
        words = self.run_program(*args, "--all").stdout.decode()
        self.assertRegex(words, r"^endpoint api \(good\.json:\d+:\d+\) wins: ")
        self.assertRegex(words, r"\nendpoint all \(good\.json:\d+:\d+\) loses: segment 1 of its path is "
                                r"any rest, not literal\n")
        self.assertRegex(words, r"\n  max_attempts +3 +good\.json:")
        self.assertRegex(words, r"\n  connect_timeout +\"10s\" +built in\n")
        self.assertRegex(words, r"\nif every response is 503:\nattempt +outcome .*\n +1 +503 +150 ms")
        self.assertRegex(words, r"\nends after attempt 3, at .*: attempts_exhausted.*\n$")
        self.write("always.json", {"version": 1, "default": {"preset": "azure"}})
        words = self.run_program("policy", "explain", "always.json", "POST", "http://h/x").stdout
        self.assertIn(b"\na POST that the server may have executed is sent again (repeat: always)\n",
                      words)
        words = self.run_program("policy", "explain", "always.json", "PUT", "http://h/x").stdout
        self.assertNotIn(b"is sent again", words)
        words = self.run_program("policy", "explain", "good.json", "POST", "http://h/x", "--all")
        self.assertIn(b"ends after attempt 1, at 0 s: unsafe_to_repeat", words.stdout)
        self.write("endless.json", {"version": 1, "default": {
            "preset": "google-http-client", "backoff": {"kind": "none"}}})
        words = self.run_program("policy", "explain", "endless.json", "GET", "http://h/x", "--all")
        self.assertIn(b"\nstopped after 1000 attempts\n", words.stdout)

    def test_explain_shows_each_rate_of_a_list(self):
        self.write("rates.json", {"version": 1, "default": {"rate": [
            {"limit": "60/m", "burst": 10}, {"limit": "10000/m", "counts": "cost"}]}})
        said = self.run_program("policy", "explain", "rates.json", "GET", "http://h/").stdout.decode()
        self.assertIn("\nrate: 60 in 1.00 min, burst 10: 100 calls at once take 1.50 min (shared by http://h)\n"
                      "rate: a cost of 10000 in 1.00 min, burst 10000; a request that costs more fails (shared by "
                      "http://h)\n", said)
        self.assertRegex(said, r'\n  rate +\[\{"limit":"60/m","burst":10\},\{.*"counts":"cost"\}\] +rates\.json:')

    def test_explain_names_the_policy_standard_as_the_file_does(self):
        self.write("named.json", {"version": 1, "default": "standard"})
        args = ("policy", "explain", "named.json", "GET", "http://h/")
        explained = json.loads(self.run_program(*args, "--format", "json").stdout)
        self.assertEqual((explained["endpoint"], explained["policy"]), (None, "standard"))
        self.assertRegex(self.run_program(*args).stdout.decode(),
                         r"^no endpoint matches; the default is used: policy standard \(built in\)\n")

    def test_presets(self):
        names = [line.split()[0] for line in
                 self.run_program("policy", "presets").stdout.decode().splitlines()]
        self.assertEqual(names[0], "standard")
        self.assertIn("google-drive", names)
        listed = self.run_program("policy", "presets").stdout.decode()
        repeats = re.findall(r"^(\S+) .*; repeats POSTs$", listed, re.MULTILINE)
        self.assertEqual(repeats, [
            "aws-standard", "aws-standard-2026", "aws-adaptive", "azure", "openai", "anthropic",
            "gemini", "otlp", "aws-general", "aws-simpledb", "google-http-client", "google-http-client-1.15",
            "google-drive", "google-drive-1"])
        for name in names:
            preset = json.loads(self.run_program("policy", "presets", name).stdout)
            self.write("one.json", {"version": 1, "default": preset})
            self.run_program("policy", "check", "one.json")
        self.assertIn('there is no preset "google-drve"; did you mean "google-drive"?',
                      self.usage_error("policy", "presets", "google-drve"))

    def test_schema_is_the_file_that_is_installed(self):
        printed = self.run_program("policy", "schema").stdout
        self.assertIn("draft-07", json.loads(printed)["$schema"])
        installed = pathlib.Path(__file__).parents[2] / "cmake" / "policy.schema.json"
        self.assertEqual(printed, installed.read_bytes())

    def test_check_takes_what_it_is_given(self):
        self.assertIn("needs at least one FILE", self.usage_error("policy", "check"))
        self.assertIn("takes no operands", self.usage_error("policy", "schema", "x"))
        self.assertIn("takes at most one NAME", self.usage_error("policy", "presets", "none", "curl"))
        self.assertIn("needs FILE METHOD URL", self.usage_error("policy", "explain", "x.json"))
        self.assertIn('did you mean "check"?', self.usage_error("policy", "chekc"))
        self.assertIn("policy needs a command", self.usage_error("policy"))

    def test_warnings_alone_are_no_failure(self):
        self.write("odd.json", '{"version": 1, "default": {"max_elapsed_time": "5s", '
                               '"server_delay": {"max": "9s"}}}')
        self.assertEqual(self.run_program("policy", "check", "odd.json").stdout.decode(),
                         "odd.json:1:78: warning: /default/server_delay/max: server_delay.max (9s) "
                         'is greater than max_elapsed_time (5s); "allow": ["no_effect"] silences this\n')

    def test_explain_shows_the_warnings_about_the_policy_of_the_request(self):
        self.write("risky.json", {"version": 1, "policies": {
            "base": {"budget": "none"}, "better": {"extends": "base", "budget": {"kind": "tokens"}}},
            "default": "base", "endpoints": [{"match": {"host": "a.b"}, "policy": "better"}]})
        args = ("policy", "explain", "risky.json", "GET")
        said = self.run_program(*args, "http://c.d/").stdout.decode()
        self.assertRegex(said, r'\nrisky\.json:\d+:\d+: warning: /policies/base/budget: while a server '
                               r'fails, .*"allow": \["no_budget"\] silences this\n')
        self.assertNotIn("warning", self.run_program(*args, "http://a.b/").stdout.decode())

    def test_check_survives_hostile_files(self):
        self.write("deep.json", "[" * 1_000_000)
        self.write("empty.json", "")
        (self.folder / "bytes.json").write_bytes(bytes(range(256)) * 1000)
        result = self.run_program("policy", "check", "deep.json", "empty.json", "bytes.json",
                                  status=1)
        said = result.stdout.decode()
        self.assertIn("deep.json:1:65: ", said)
        self.assertIn("nested deeper than 64", said)
        self.assertIn("empty.json:1:1: expected a value, found the end of the text", said)
        self.assertIn("bytes.json:1:1: expected a value", said)

    def test_explain_without_a_match_names_the_default(self):
        self.write("good.json", {"version": 1, "endpoints": [
            {"match": {"host": "*.b"}, "policy": {"preset": "gcs"}},
            {"match": {"host": "a.b", "methods": ["PUT"]}, "policy": "standard"}]})
        args = ("policy", "explain", "good.json")
        explained = json.loads(self.run_program(*args, "GET", "http://c/", "--format", "json").stdout)
        self.assertEqual((explained["endpoint"], explained["policy"]), (None, None))
        explained = json.loads(self.run_program(*args, "GET", "http://u:p@A.B.:80/x/../y?q",
                                             "--format", "json").stdout)
        self.assertEqual(explained["endpoint"], "/endpoints/0")
        sources = {value["key"]: value["source"] for value in explained["values"]}
        self.assertEqual(sources["backoff.initial"], "preset gcs")
        self.assertEqual(sources["connect_timeout"], "built in")
        words = self.run_program(*args, "PUT", "a.b").stdout.decode()
        self.assertRegex(words, r"^endpoint /endpoints/1 \(good\.json:\d+:\d+\) wins: ")
        self.assertRegex(words, r'endpoint /endpoints/0 \(good\.json:\d+:\d+\) loses: its host is one with "\*", not exact', words)

    def test_explain_names_the_entries_that_miss_by_one_condition(self):
        def entry(name, **match):
            return {"name": name, "match": {"host": "a.b", **match}, "policy": "standard"}
        lines = ['{"version": 1, "endpoints": [', ",\n".join(map(json.dumps, [
            entry("other", path="/y/**"), entry("write", path="/x", methods=["POST", "PUT"]),
            entry("secure", path="/x", scheme="https", port=8443),
            {"name": "away", "match": {"host": "c.d"}, "policy": "standard"}])), "]}"]
        self.write("near.json", "\n".join(lines))
        args = ("policy", "explain", "near.json")
        near = ["near: write (near.json:3:1): methods POST PUT do not match GET",
                "near: other (near.json:2:1): path /y/** does not match /x"]
        said = self.run_program(*args, "GET", "http://a.b/x").stdout.decode().splitlines()
        self.assertEqual(said[:3], [
            "no endpoint matches; the default is used: preset standard (built in)", *near])
        said = self.run_program(*args, "PUT", "http://a.b/x").stdout.decode().splitlines()
        self.assertEqual(said[:2], ["endpoint write (near.json:3:1) is the only one that matches: "
                                    "policy standard (built in)", near[1]])

    def test_explain_names_the_entries_whose_host_is_nearly_that_of_the_request(self):
        hosts = ["*.b.example", "api.example.com", ["www.example.org", "www.example.net"], "*.shop.test", "10.0.0.1"]
        self.write("hosts.json", {"version": 1, "endpoints": [
            {"name": f"e{n}", "match": {"host": host, "path": "/x"}, "policy": "standard"} for n, host in enumerate(hosts)]})
        for host, path, why in (
                ("b.example", "x", "host *.b.example does not match b.example, only names below it"),
                ("b.example", "y", "path /x does not match /y; host *.b.example does not match b.example, "
                                   "only names below it"),
                ("api.exmaple.com", "x", "host api.example.com does not match api.exmaple.com"),
                ("wwww.example.nett", "x", "host www.example.net does not match wwww.example.nett"),
                ("a.b.shap.test", "x", ""), ("a.shap.test", "x", "host *.shop.test does not match a.shap.test"),
                ("appi.exmmaple.comm", "x", ""), ("c.example", "x", ""), ("api.example.com", "x", ""),
                ("10.0.0.2", "x", "host 10.0.0.1 does not match 10.0.0.2")):
            with self.subTest(host=host, path=path):
                said = self.run_program("policy", "explain", "hosts.json", "GET", f"http://{host}/{path}").stdout.decode()
                self.assertEqual(re.findall(r"^near: .*?\): (.*)$", said, re.MULTILINE), [why] if why else [])

    def test_explain_shows_no_pattern_that_nobody_wrote(self):
        self.write("few.json", {"version": 1, "endpoints": [
            {"name": "host", "match": {"host": "a.b"}, "policy": "standard"},
            {"name": "path", "match": {"path": "/x"}, "policy": "standard"},
            {"name": "method", "match": {"methods": ["PUT"]}, "policy": "standard"}]})
        for method, url in (("GET", "http://a.b/x"), ("GET", "http://c.d/y"), ("PUT", "http://c.d/y")):
            said = self.run_program("policy", "explain", "few.json", method, url, "--all").stdout
            patterns, _, _ = said.partition(b"max_attempts")  # names of headers follow
            self.assertNotIn(b"*", patterns)
        self.assertIn(b"near: path (", said)

    def test_header_entries_can_be_explained_planned_and_simulated(self):
        self.write("jobs.json", {"version": 1, "policies": {"long": {"max_attempts": 9}}, "endpoints": [
            {"name": "nightly", "match": {"headers": {"X-Job": "nightly"}}, "policy": "long"}]})
        target = ("-H", "X-Job: nightly", "GET", "http://h/")
        said = self.run_program("policy", "explain", "jobs.json", *target).stdout.decode()
        self.assertIn("endpoint nightly (jobs.json:9:3) is the only one that matches: policy long", said)
        said = self.run_program("plan", "--policy", "jobs.json", *target).stdout.decode()
        self.assertIn("GET http://h/, policy long, endpoint nightly", said)
        command = ("simulate", "--policy", "jobs.json", "--clients", "1", "--rate", "1", "--duration", "5s")
        said = self.run_program(*command, *target).stdout.decode()
        self.assertIn("jobs.json (endpoint nightly)", said)
        self.assertIn("-H needs a URL", self.usage_error(*command, "-H", "X-Job: nightly"))
        for line, message in (("X-Job", 'option -H: expected "Name: value"'), ("a b: c", "header")):
            self.assertIn(message, self.usage_error("plan", "-H", line, "http://h/"))

    def test_explain_is_short_unless_all_is_asked_for(self):
        self.write("own.json", {"version": 1, "default": {
            "preset": "google-drive", "max_attempts": 3, "connect_timeout": "2s"}})
        args = ("policy", "explain", "own.json", "GET", "http://h/")
        said = self.run_program(*args).stdout.decode().splitlines()
        self.assertEqual(len(said), 4, said)
        self.assertRegex(said[1], r"^  max_attempts +3 +own\.json:\d+:\d+$")
        self.assertRegex(said[2], r'^  connect_timeout  "2s"  own\.json:\d+:\d+$')
        self.assertEqual(said[3], "  all other values are those of the preset google-drive; "
                                  "--all shows them")
        everything = self.run_program(*args, "--all").stdout.decode()
        self.assertRegex(everything, r"\n  backoff\.add +\"1s\" +preset google-drive\n")
        self.assertNotIn("--all shows", everything)
        self.write("own.json", {"version": 1})
        said = self.run_program(*args).stdout.decode().splitlines()
        self.assertEqual(said[1:], ["  all values are those of the preset standard; --all shows them"])

    def test_explain_names_five_near_misses_and_counts_the_others(self):
        self.write("many.json", {"version": 1, "endpoints": [
            {"match": {"host": "a.b", "path": f"/{n}"}, "policy": "standard"} for n in range(13)]})
        args = ("policy", "explain", "many.json", "GET")
        lines = self.run_program(*args, "http://a.b/x").stdout.decode().splitlines()
        self.assertRegex(lines[5], r"^near: /endpoints/4 \(many\.json:\d+:\d+\): "
                                   r"path /4 does not match /x$")
        self.assertEqual(lines[6], "near: 8 more; --all shows them")
        said = self.run_program(*args, "http://a.b/3", "--all").stdout.decode()
        self.assertEqual(said.count("\nnear: "), 12)

    def test_check_says_ok_on_a_terminal(self):
        self.write("good.json", GOOD)
        self.write("empty.json", '{"version": 1}')
        self.write("bad.json", "{}")
        self.write("tests.json", {"version": 1, "tests": [
            {"request": {"url": "http://h/"}, "expect": {"endpoint": None}}]})
        self.assertEqual(self.checked("tests.json"), "ok: 0 policies, 0 endpoints, 1 test\r\n")
        self.assertEqual(self.checked("good.json"), "ok: 1 policy, 2 endpoints\r\n")
        self.assertEqual(self.checked("empty.json", "good.json"),
                         "empty.json: ok: 0 policies, 0 endpoints\r\n"
                         "good.json: ok: 1 policy, 2 endpoints\r\n")
        self.assertNotIn("ok", self.checked("bad.json", status=1))

    def checked(self, *files, status=0):
        """What `policy check` writes to a terminal."""
        own, its = pty.openpty()
        process = subprocess.Popen([PROGRAM, "policy", "check", *files], stdout=its,
                                   cwd=self.folder, env=clean_environment())
        os.close(its)
        said = read_terminal(own)
        os.close(own)
        self.assertEqual(process.wait(LIMIT), status)
        return said.decode()

    def test_settings(self):
        server = self.server(503)
        self.run_program("--set", "max_attempts=2", "--set", "backoff.initial=1ms", server.url(),
                         status=22)
        self.assertEqual(len(server.seen), 2)
        self.assertIn("max_attemps", self.usage_error("--set", "max_attemps=2", "http://h/"))
        self.assertIn("is not KEY=VALUE", self.usage_error("--set", "max", "http://h/"))
        self.assertIn("cannot be combined",
                      self.usage_error("--preset", "none", "--policy", "x", "http://h/"))
        self.usage_error("--preset", "nope", "http://h/")

    def test_curls_retry_flags(self):
        server = self.server(503)
        self.run_program("--retry", 1, "--retry-delay", "0.001", server.url(), status=22)
        self.assertEqual(len(server.seen), 2)
        server = self.server(404)
        self.run_program("--retry", 2, "--retry-delay", "0.001", "--retry-all-errors", "-d", "x",
                         server.url(), status=22)
        self.assertEqual(len(server.seen), 3)


if __name__ == "__main__":
    main()
