#!/usr/bin/env python3
"""Every C++ block of README.md, and every piece of code in its tables that assigns or calls, stands to
the letter in a program under apps/examples, which the build compiles; and every test that SECURITY.md names
is there. Usage: readme_test.py SOURCE_DIR"""
import pathlib
import re
import sys
import textwrap


def main(root):
    programs = {p.name: p.read_text() for p in sorted((root / "apps/examples").glob("*.cpp"))}
    readme = (root / "README.md").read_text()
    blocks = re.findall(r"```cpp\n(.*?)```", readme, re.S)
    rows = "\n".join(line for line in readme.splitlines() if line.startswith("|"))
    blocks += [code for code in re.findall(r"`([^`]+)`", rows) if re.search(r"[=(.]\w* ?", code)
               and not code.startswith(".")]
    if not blocks:
        sys.exit("README.md has no C++ block: this test checks nothing")
    missing = [b for b in blocks if not any(b in text for text in programs.values())]
    for block in missing:
        print("README.md shows code that no program under apps/examples contains:\n")
        print(textwrap.indent(block, "    "))
    print(f"{len(blocks) - len(missing)} of {len(blocks)} blocks found")
    named = re.findall(r"`(tests/[^`]+)`", (root / "SECURITY.md").read_text())
    gone = [name for name in named if not (root / name).exists()]
    for name in gone:
        print(f"SECURITY.md names {name}, which is not there")
    print(f"{len(named) - len(gone)} of {len(named)} tests found")
    sys.exit(1 if missing or gone or not named else 0)


main(pathlib.Path(sys.argv[1]))
