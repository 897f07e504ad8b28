#!/usr/bin/env python3
"""Every C++ block of a page, and on pages that have one the code in tables that assigns or calls, is part of a
program in apps/examples, word for word: so the build compiles it. Every test that SECURITY.md names exists.
Every library that ./dev installs to build is in the pages' own lists of packages.
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


def missing_packages(root):
    """(page, package) where an `apt-get install` of a page that builds lacks a library of ./dev."""
    needed = re.search(r"packages_to_build=\((.*?)\)", (root / "dev").read_text(), re.S)[1].split()
    libraries = [package for package in needed if package.endswith("-dev")]
    lines = [(page.relative_to(root), line.split()) for page in pages()
             for line in page.read_text().replace("\\\n", " ").splitlines()
             if line.startswith("apt-get install g++")]
    if not lines or not libraries:
        sys.exit("no page lists packages: this test checks nothing")
    return [(page, package) for page, words in lines for package in libraries
            if package not in words]


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
    lacking = missing_packages(root)
    for page, package in lacking:
        print(f"{page} does not install {package}, which the build needs")
    sys.exit(1 if missing or gone or lacking or not named else 0)


main(pathlib.Path(sys.argv[1]).resolve())
