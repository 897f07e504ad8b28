"""The reference pages are what the program prints, and the page about policy files names every key.

HTTPRETRY_UPDATE=1 writes the generated pages again."""

import json
import os
import pathlib
import re

from program import ProgramTest, main

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


if __name__ == "__main__":
    main()
