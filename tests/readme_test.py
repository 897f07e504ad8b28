#!/usr/bin/env python3
"""Every C++ block of a page, and on pages that have one the code in tables that assigns or calls, is part of a
program in apps/examples, word for word: so the build compiles it. Every test that SECURITY.md names exists.
Every library that ./dev installs to build is in the pages' own lists of packages. The figures of README.md are those of
RESULTS.md. The recordings are those of record.py.
Usage: readme_test.py SOURCE_DIR"""
import pathlib
import re
import sys
import textwrap
import xml.etree.ElementTree

from pages import README, ROOT, blocks, pages

sys.path.insert(0, str(ROOT / "apps/httpretry"))
import record  # noqa: E402

# A figure of README.md, and its table, row and column in RESULTS.md, which has microseconds.
FIGURES = [
    (r"([\d.]+) (µs) for libcurl by hand", "Beside other clients, 1 in flight", "libcurl by hand, tuned", "CPU µs"),
    (r"([\d.]+) (µs) with redirects and retries", "Beside other clients, 1 in flight",
     "httpretry, redirect + retry + timeout", "CPU µs"),
    (r"Boost.Beast ([\d.]+) (µs)", "Beside other clients, 1 in flight", "Boost.Beast", "CPU µs"),
    (r"([\d.]+) (ms) for libcurl as it comes", "A new TLS connection, verified against the system's certificates",
     "libcurl by hand, as it comes", "CPU µs"),
    (r"([\d.]+) (ms) if it reads the certificates once",
     "A new TLS connection, verified against the system's certificates",
     "libcurl by hand, its certificates read once", "CPU µs"),
    (r"(?<=\| )([\d.]+) (ms) \|", "A new TLS connection, verified against the system's certificates", "httpretry",
     "CPU µs"),
]


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


def result(results, heading, row, column):
    table = results.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return float(next(cells for cells in rows if cells[0] == row)[rows[0].index(column)])


def wrong_figures(readme, results):
    """Returns the CPU times of README.md that differ from the results, or that no pattern checks."""
    rows = "\n".join(line for line in readme.splitlines() if line.startswith("| CPU time"))
    problems = []
    for pattern, *place in FIGURES:
        shown = re.search(pattern, rows)
        if not shown:
            problems.append(f"no figure matches {pattern}")
            continue
        rows = rows.replace(shown[0], "", 1)
        figure, unit = shown.groups()
        measured = f"{result(results, *place) / (1000 if unit == 'ms' else 1):.1f}"
        if figure != measured:
            problems.append(f"{shown[0]} is {measured} {unit} in RESULTS.md")
    return problems + re.findall(r"[\d.]+ (?:µs|ms)", rows)


def wrong_recordings(root):
    """Returns the problems of the recordings. Each must be small, load nothing, and show the commands of record.py."""
    problems = []
    for file, commands, _ in record.RECORDINGS:
        text = (root / file).read_text()
        picture = xml.etree.ElementTree.fromstring(text)
        if picture.findtext("{*}title") != record.title_of(commands):
            problems.append(f"{file} shows other commands than apps/httpretry/record.py")
        if len(text) > 100_000 or re.search(r"<script|<image|href=|url\(|@import", text):
            problems.append(f"{file} is larger than 100 KB, or loads something")
    return problems


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
    results = (root / "tests/bench/RESULTS.md").read_text()
    wrong = [f"README.md: {problem}" for problem in wrong_figures(README.read_text(), results)]
    wrong += wrong_recordings(root)
    for problem in wrong:
        print(problem)
    if len(wrong_figures(README.read_text().replace("µs", "ms"), results)) < 3:
        sys.exit("a wrong figure in README.md is not found: this test checks nothing")
    sys.exit(1 if missing or gone or lacking or wrong or not named else 0)


main(pathlib.Path(sys.argv[1]).resolve())
