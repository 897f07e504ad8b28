#!/usr/bin/env python3
"""Groups the sources of a target for a unity build: prints "NUMBER FILE" for each file that shares a
translation unit with others. What a file declares for itself (in a namespace without a name, or by
static, #define or a using-declaration) must be no name that another one of its group knows, from its
own text or from our headers; and all of them use the same namespaces. Sources are formatted, so that
such declarations begin in the first column.

  unity_groups.py FILE...
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDED_FROM = (ROOT / "include", ROOT, ROOT / "apps" / "httpretry")
MOST_FILES = 12
MOST_BYTES = 120_000

MACRO = re.compile(r"^#\s*define (\w+)")
USED = re.compile(r"^using [\w:]*::(\w+);")
DECLARED = (
    re.compile(r"^(?:template <.*> *)?(?:struct|class|union|enum(?: class)?)\s+(?:[A-Z_]+ )?(\w+)"),
    re.compile(r"^(?:template <.*> *)?using (\w+) ="),
    re.compile(r"^[^=({]*?(?<![\w:~])(\w+)\("),
    re.compile(r"^[\w:<>,&* ]*?(\w+)(?:\[[^\]]*\])*\s*(?:=|\{|;)"))
SKIPPED = re.compile(r"^(?:\s|$|[{})/#]|namespace|using namespace|extern|static_assert|TEST_CASE|template <.*>$|"
                     r"public:|private:)")
INCLUDE = re.compile(r'^#\s*include\s+(?:"([^"]+)"|<(httpretry/[^>]+)>)', re.MULTILINE)


def declared(text):
    """The names that it declares for itself, and all that it declares, outside of functions."""
    own, names, unnamed = set(), set(), False
    for line in re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.DOTALL).splitlines():
        if line.startswith("namespace {"):
            unnamed = True
        elif line.startswith("}  // namespace"):
            unnamed = False
        found = MACRO.match(line) or USED.match(line)
        if found:
            own.add(found[1])
        elif not SKIPPED.match(line):
            found = next(filter(None, (form.match(line) for form in DECLARED)), None)
            if found:
                (own if unnamed or line.startswith("static ") else names).add(found[1])
    return own, names | own


@functools.lru_cache(None)
def known_by_header(path):
    text = path.read_text(encoding="utf-8")
    return declared(text)[1].union(*map(known_by_header, headers_of(path, text)))


def headers_of(path, text):
    for near, ours in INCLUDE.findall(text):
        for folder in (path.parent, *INCLUDED_FROM):
            header = folder / (near or ours)
            if header.is_file():
                yield header
                break


class Source:
    def __init__(self, name):
        path = pathlib.Path(name)
        text = path.read_text(encoding="utf-8")
        self.name, self.size = name, len(text)
        self.own, names = declared(text)
        self.known = names.union(*map(known_by_header, headers_of(path, text)))
        self.spaces = set(re.findall(r"^using namespace ([\w:]+);", text, flags=re.MULTILINE))

    def goes_with(self, other):
        return (self.spaces == other.spaces and not self.own & other.known and
                not other.own & self.known)


def grouped(sources):
    groups = []
    for source in sources:
        for group in groups:
            if (len(group) < MOST_FILES and all(source.goes_with(other) for other in group) and
                    source.size + sum(other.size for other in group) <= MOST_BYTES):
                group.append(source)
                break
        else:
            groups.append([source])
    return groups


def main():
    for number, group in enumerate(grouped(map(Source, sys.argv[1:]))):
        if len(group) > 1:
            for source in group:
                print(number, source.name)


if __name__ == "__main__":
    main()
