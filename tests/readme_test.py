#!/usr/bin/env python3
"""Every C++ block of README.md stands, to the letter, in a program under apps/examples, which the
build compiles and the tests run. Usage: readme_test.py SOURCE_DIR"""
import pathlib
import re
import sys
import textwrap


def main(root):
    programs = {p.name: p.read_text() for p in sorted((root / "apps/examples").glob("*.cpp"))}
    blocks = re.findall(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.S)
    if not blocks:
        sys.exit("README.md has no C++ block: this test checks nothing")
    missing = [b for b in blocks if not any(b in text for text in programs.values())]
    for block in missing:
        print("README.md shows code that no program under apps/examples contains:\n")
        print(textwrap.indent(block, "    "))
    print(f"{len(blocks) - len(missing)} of {len(blocks)} blocks found")
    sys.exit(1 if missing else 0)


main(pathlib.Path(sys.argv[1]))
