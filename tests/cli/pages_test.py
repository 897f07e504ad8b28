"""The reference pages are what the program prints, and the pages about policy files, reports and results name every key
and field.

HTTPRETRY_UPDATE=1 writes the generated pages again."""

import html
import json
import os
import pathlib
import re
import shlex
import threading

from program import QUICK, ProgramTest, Response, closed_port, main

ROOT = pathlib.Path(__file__).parents[2]
SHOWN_WAITS = 5


class Pages(ProgramTest):
    def said(self, *args):
        return self.run_program(*args).stdout.decode()

    def compare(self, page, text, made_by):
        text += (f"\n---\nThe program writes this page (`{made_by}`). Do not edit it by hand. After a change:"
                 " `HTTPRETRY_UPDATE=1 ./dev test -R cli_pages`.\n")
        if os.environ.get("HTTPRETRY_UPDATE"):
            (ROOT / page).write_text(text)
        self.assertEqual((ROOT / page).read_text(), text, f"{page} is not up to date")

    def test_the_manual(self):
        self.compare("apps/httpretry/manual.md", self.said("manual", "--markdown"),
                     "httpretry manual --markdown")

    def test_the_page_of_an_outage_is_what_its_own_command_writes(self):
        page = (ROOT / "lib/extras/simulate/outage.html").read_text()
        program, *command = shlex.split(html.unescape(re.search("<pre>(.*)</pre>", page)[1]))
        self.assertEqual(program, "httpretry")
        self.assertEqual(self.said(*command), page)

    def test_every_outcome_that_the_manual_names_is_played(self):
        table = (ROOT / "apps/httpretry/manual.md").read_text().split("## Outcomes")[1].split("##")[0]
        words = re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)
        source = (ROOT / "lib/extras/testing/scenario.cpp").read_text()
        known = re.search(r"kWords\{(.*?)\};", source, re.S)[1]
        self.assertEqual(set(words) | {"none"}, set(re.findall(r'"([a-z_]+)"', known)))
        for word in words:
            self.said("plan", "--outcomes", f"{word},200")
        scenario = self.folder / "scenario.json"
        scenario.write_text(re.search(r"`(\{\"steps.*)` \|", table).group(1))
        self.said("plan", "--scenario", scenario)

    def test_the_presets(self):
        names = re.findall(r"^(\S+)  +(.*)$", self.said("policy", "presets"), re.MULTILINE)
        rows, sections = "", ""
        for name, about in names:
            waits, end = self.plan(name)
            rows += f"| [`{name}`](#{name.replace('.', '')}) | {waits} | {end} |\n"
            sections += (f"\n## {name}\n\n{about}.\n\n```json\n"
                         f"{self.said('policy', 'presets', name)}```\n")
        self.assertGreater(len(names), 20)
        text = ("# Presets\n\nBuilt-in policies, named after the systems whose retries they copy. Keys that a"
                " preset does not set have the value of `standard`. Use a preset with `\"preset\": NAME`"
                " in a [policy file](policy-file.md) or with `--preset NAME`, or copy it and change it."
                " `httpretry plan --preset NAME` shows all of its waits.\n\n"
                "A preset that \"repeats POSTs\" sends a POST again even if the server may have executed it, as"
                " the clients of its system do. `\"repeat\": \"safe\"` beside it prevents that.\n\n"
                "| preset | shortest and longest wait before each retry, if the server always responds 503"
                " | how the call ends, with waits of medium length |\n"
                f"|---|---|---|\n{rows}{sections}")
        self.compare("lib/core/policy/presets.md", text, "httpretry policy presets")

    def plan(self, name):
        table = self.said("plan", "--preset", name)
        time = r"\d[\d.]* \S+"
        row = rf"^ +\d+ +\S+ +({time}) +{time} +({time}) +{time}$"
        waits = []
        for least, most in re.findall(row, table, re.MULTILINE):
            waits.append(most if least == most else f"{least} – {most}")
        if len(waits) > SHOWN_WAITS:
            waits[SHOWN_WAITS:] = ["…"]
        end = re.search(r"^(?:ends|stopped) after (?:attempt )?(\d+).*?: (\w+)", table, re.MULTILINE)
        words = f"{end[2]}, attempt {end[1]}" if end else "never"
        return ", ".join(waits) or "none", words


def names_of(schema):
    """The keys of all objects of the schema, and the words that may stand as their values."""
    keys, words = set(), set()

    def walk(part):
        if isinstance(part, list):
            for one in part:
                walk(one)
        elif isinstance(part, dict):
            keys.update(part.get("properties", {}))
            words.update(w for w in part.get("enum", []) if isinstance(w, str))
            for name, one in part.items():
                if name not in ("if", "propertyNames"):
                    walk(one)

    walk(schema)
    return keys, words - keys


class PolicyFile(ProgramTest):
    def test_the_page_names_every_key_and_word_of_the_loader_and_no_other(self):
        keys, words = names_of(json.loads(self.run_program("policy", "schema").stdout))
        page = (ROOT / "lib/core/policy/policy-file.md").read_text()
        prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
        code = " ".join(re.findall(r"`([^`]+)`", prose))
        told = set(re.findall(r"[$a-z][a-z0-9_*-]*", code))
        self.assertEqual(sorted((keys | words) - told), [])
        first_cells = re.findall(r"^\| (`[^|]*) \|", prose, re.MULTILINE)
        rows = set(re.findall(r"`([^`]+)`", " ".join(first_cells)))
        self.assertEqual(sorted(rows - keys - words), [])


def fields_of(value, prefix=""):
    """The names of all members of an object and of the objects in it. A list is not looked into."""
    names = set()
    for name, member in value.items():
        names.add(prefix + name)
        if isinstance(member, dict):
            names |= fields_of(member, f"{prefix}{name}.")
    return names


def documented(page, heading, number=0):
    """The names in the first cells of a table under a heading."""
    section = (ROOT / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    tables = re.findall(r"^\| field \| type \| meaning \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", section, re.MULTILINE)
    return re.findall(r"^\| `([a-z_.0-9]+)` \| (?:string|number|boolean|object|array|date|any) \| \S", tables[number],
                      re.MULTILINE)


class Fields(ProgramTest):
    def check(self, written, names):
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(sorted(written), sorted(names))

    def test_the_page_names_every_field_of_a_report_and_no_other(self):
        holder, port = closed_port()
        self.addCleanup(holder.close)
        guards = ("--set", 'breaker={"kind": "consecutive", "failures": 9}', "--set", 'concurrency={"max": 2}')
        polled = ("--set", 'retry_on.pending={"statuses": [202], "url_from": ["location"], "backoff": {"kind": "none"}}')
        held = threading.Event()
        reports = []
        runs = [(self.server(503, 200), guards, ()), (self.server(Response(202, b"", [("Location", "/b")]), 200), polled, ()),
                (self.server(503, 404), (), ("-X", "DELETE")),
                (self.server(Response(200, hold=held), 200), ("--set", 'hedge={"after": "20ms", "budget": "none"}'), ())]
        self.addCleanup(held.set)  # before the servers are closed
        for server, options, args in runs:
            self.run_program(*QUICK, *options, *args, "--no-fail", "--report", "report.json", server.url())
            reports.append(self.report())
        self.run_program("--retry", 0, "--report", "report.json", f"http://127.0.0.1:{port}/", status=7)
        reports.append(self.report())
        reports.append(json.loads(self.run_program("plan", "--format", "json", "--outcomes", "200", "http://h/").stdout))
        page = "apps/httpretry/README.md"
        self.check(set.union(*map(fields_of, reports)), documented(page, "The report"))
        attempts = set.union(*(fields_of(each) for report in reports for each in report["attempts"]))
        errors = {name for name in attempts if name.startswith("error.")}
        self.assertEqual({name for name in documented(page, "The report") if name.startswith("error.")}, errors)
        self.check(attempts - errors, documented(page, "The report", 1))

    def test_the_page_names_every_field_of_a_result_and_no_other(self):
        server = self.server(Response(200, b"text"), Response(200, b"\xff"), Response(200, b"x" * 70000), Response(404))
        lines = [{"url": server.url(), "tag": 1}] + [{"url": server.url()}] * 3
        (self.folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.run_program("batch", "--response-headers", "--parallel", 1, "in.jsonl", status=22)
        (self.folder / "files.jsonl").write_text(json.dumps({"url": self.server(Response(200, b"text")).url()}) + "\n")
        self.run_program("batch", "--bodies", "bodies", "files.jsonl")
        written = set()
        for name in ("in", "files"):
            for line in (self.folder / f"{name}.jsonl.results.jsonl").read_text().splitlines():
                written |= set(json.loads(line))
        of_report = {name for name in documented("apps/httpretry/README.md", "The report") if "." not in name}
        self.check(written - of_report, documented("lib/extras/batch/README.md", "Results"))


if __name__ == "__main__":
    main()
