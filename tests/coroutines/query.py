#!/usr/bin/env python3
"""Runs clang-query with cmake/coroutines.query over one source. It is called like a compiler:

  query.py FLAG... [-MD -MF FILE] -o FOUND -c SOURCE
      writes to FOUND the line "found:", and a line "PATH:LINE" for each match
  query.py --version
      prints the version of clang-query, and a checksum of the query

So ccache can run it, and keeps the matches until the source, one of its headers, the flags or the version change.
PATH is relative to the project if the file is in it, so that another clone can use the result.

Exit status: 0 the source was checked, 1 it could not be checked."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUERY = ROOT / "cmake" / "coroutines.query"
QUERIES = len(re.findall(r"^match ", QUERY.read_text(), re.M))
MATCH = re.compile(r'^(.+?):(\d+):(\d+): note: "found" binds here$', re.M)


def taken_from(flags, name, count):
    """Removes a flag with its value from `flags`: `count` words. Returns them, or an empty list."""
    if name not in flags:
        return []
    place = flags.index(name)
    taken, flags[place:place + count] = flags[place:place + count], []
    return taken


def shown(path):
    path = pathlib.Path(os.path.realpath(path))
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def main():
    flags = sys.argv[1:]
    if flags == ["--version"]:
        version = subprocess.run(["clang-query", "--version"], capture_output=True, text=True, check=True).stdout
        texts = QUERY.read_bytes() + pathlib.Path(__file__).read_bytes()
        print(version, hashlib.sha256(texts).hexdigest())
        return 0
    dependencies = taken_from(flags, "-MD", 1) + taken_from(flags, "-MF", 2)
    found, source = taken_from(flags, "-o", 2)[1], taken_from(flags, "-c", 2)[1]
    done = subprocess.run(["clang-query", "-f", str(QUERY), source, "--extra-arg=-w", "--", *flags],
                          capture_output=True, text=True)
    said = done.stdout + done.stderr
    errors = [line for line in said.splitlines() if re.search(r"\berror: ", line)]
    # A count for each query: one that was not understood would otherwise pass everything.
    if errors or done.returncode or len(re.findall(r"^\d+ match(?:es)?\.$", said, re.M)) != QUERIES:
        print(f"{source}: clang-query could not look at it", *errors[:5] or [said.strip()[-2000:]], sep="\n",
              file=sys.stderr)
        return 1
    if dependencies:
        subprocess.run(["clang++", *flags, *dependencies, "-w", "-E", "-o", os.devnull, source], check=True)
    lines = {f"{shown(path)}:{line}\n" for path, line, _ in MATCH.findall(done.stdout)}
    pathlib.Path(found).write_text("".join(["found:\n", *sorted(lines)]))  # ccache keeps no empty file
    return 0


if __name__ == "__main__":
    sys.exit(main())
