#!/usr/bin/env python3
"""Compares the size of the code with what is stated here: lines without blank lines and comments. A change that needs
more raises the number, in the same commit; one that needs less lowers it.

`core` is what is in the library httpretry::httpretry, with its headers."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXTRAS = {path.name for path in (ROOT / "lib/extras").iterdir()}
MOST = {"core": 26959, "lib and include": 47091, "apps/httpretry": 10774}

TEXT_OR_COMMENT = re.compile(
    r'R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)


def code_lines(text):
    def without_comment(match):
        found = match[0]
        return "\n" * found.count("\n") if found.startswith(("//", "/*")) else found
    return sum(bool(line.strip()) for line in TEXT_OR_COMMENT.sub(without_comment, text).splitlines())


def self_test():
    cases = {"": 0, "int a;\n\n// why\nint b;": 2, "a(); /* x\ny */ b();": 2, 'f("// no comment");\n': 1,
             'auto x = R"(\n// text\n)";': 3, "char c = '\"'; // \"": 1}
    wrong = [text for text, lines in cases.items() if code_lines(text) != lines]
    if wrong:
        sys.exit(f"counts these wrong: {wrong}")


def sizes():
    found = dict.fromkeys(MOST, 0)
    for folder in ("lib", "include/httpretry", "apps/httpretry"):
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            lines = code_lines(path.read_text())
            if folder == "apps/httpretry":
                found[folder] += lines
                continue
            found["lib and include"] += lines
            module = path.parent.name if path.parent.name != "detail" else path.parent.parent.name
            if module not in EXTRAS:
                found["core"] += lines
    return found


self_test()
grown = False
for what, lines in sizes().items():
    print(f"{what}: {lines} lines, at most {MOST[what]}")
    grown = grown or lines > MOST[what]
if grown:
    sys.exit("the code has grown: make it smaller, or raise the number in tests/size_test.py")
