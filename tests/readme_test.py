#!/usr/bin/env python3
"""Every C++ block of a page, and on pages that have one the code in tables that assigns or calls, is part of a
program in apps/examples, word for word: so the build compiles it. Every test that SECURITY.md names exists.
Usage: readme_test.py SOURCE_DIR"""
import pathlib
import re
import sys
import textwrap

from pages import README, blocks, pages


def snippets(text):
    found = blocks(text, "cpp")
    if found:
        rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
        found += [code for code in re.findall(r"`([^`]+)`", rows)
                  if re.search(r"[=(.]\w* ?", code) and not code.startswith(".")]
    return found


def main(root):
    programs = [p.read_text() for p in sorted((root / "apps/examples").glob("*.cpp"))]
    count = missing = 0
    for page in pages():
        for code in snippets(page.read_text()):
            count += 1
            if not any(code in program for program in programs):
                missing += 1
                print(f"{page.relative_to(root)} shows code that no program in apps/examples contains:\n")
                print(textwrap.indent(code, "    "))
    print(f"{count - missing} of {count} pieces of code found")
    if not blocks(README.read_text(), "cpp"):
        sys.exit("README.md has no C++ block: this test checks nothing")
    named = re.findall(r"`(tests/[^`]+)`", (root / "SECURITY.md").read_text())
    gone = [name for name in named if not (root / name).exists()]
    for name in gone:
        print(f"SECURITY.md names {name}, which does not exist")
    print(f"{len(named) - len(gone)} of {len(named)} tests found")
    sys.exit(1 if missing or gone or not named else 0)


main(pathlib.Path(sys.argv[1]).resolve())
