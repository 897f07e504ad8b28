#!/usr/bin/env python3
"""Groups the sources of a target for a unity build: prints "NUMBER FILE" for each file that shares a
translation unit with others. A name that a file declares for itself (in an unnamed namespace, or with
static or #define) must not be declared by the other files of its group or by the headers of ours that
they include. Functions may share a name with one in such a header, because functions overload, unless
another file calls that name. An alias may be the same in several files. Sources are formatted, so such
declarations begin in the first column.

  unity_groups.py FILE...
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDED_FROM = (ROOT / "include", ROOT, ROOT / "apps" / "httpretry")
MOST_FILES = 25
MOST_BYTES = 250_000

MACRO = re.compile(r"^#\s*define (\w+)")
FUNCTION = re.compile(r"^[^=({]*?(?<![\w:~<])(\w+)\(")
DECLARED = (
    re.compile(r"^(?:template <.*> *)?(?:struct|class|union|enum(?: class)?)\s+(?:[A-Z_]+ )?(\w+)"),
    re.compile(r"^(?:template <.*> *)?using (\w+) ="),
    FUNCTION,
    re.compile(r"^[\w:<>,&* ]*?(\w+)(?:\[[^\]]*\])*\s*(?:=|\{|;)"))
SKIPPED = re.compile(r"^(?:\s|$|[{})/#]|namespace|using namespace|using [\w:]+;|extern|static_assert|TEST_CASE|"
                     r"template <.*>$|public:|private:)")
ALIAS = re.compile(r"^using (\w+) = (.*;)$", re.MULTILINE)
CALLED = re.compile(r"(?<!\.)(?<!->)(?<!::)\b(\w+)\(")
INCLUDE = re.compile(r'^#\s*include\s+(?:"([^"]+)"|<(httpretry/[^>]+)>)', re.MULTILINE)


def declared(text):
    """The names that a text declares outside of functions, in three sets: its own functions, its other
    own names, and the names that other files can use."""
    own_functions, own, names, unnamed = set(), set(), set(), False
    for line in re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.DOTALL).splitlines():
        if line.startswith("namespace {"):
            unnamed = True
        elif line.startswith("}  // namespace"):
            unnamed = False
        if found := MACRO.match(line):
            own.add(found[1])
        elif not SKIPPED.match(line):
            form = next((form for form in DECLARED if form.match(line)), None)
            if form:
                found = form.match(line)
                is_own = unnamed or line.startswith("static ")
                (names if not is_own else own_functions if form is FUNCTION else own).add(found[1])
    return own_functions, own, names


@functools.lru_cache(None)
def known_by_header(path):
    text = path.read_text(encoding="utf-8")
    _, own, names = declared(text)
    return names.union(own, *map(known_by_header, headers_of(path, text)))


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
        self.own_functions, self.own, names = declared(text)
        self.declared = self.own_functions | self.own | names
        self.called = set(CALLED.findall(text))
        self.known = self.declared.union(*map(known_by_header, headers_of(path, text)))
        self.aliases = set(ALIAS.findall(text))

    def disturbs(self, other):
        """The names of this file that would change the meaning of the other one."""
        shared = {name for name, _ in self.aliases & other.aliases}
        return (self.own - shared) & other.known | self.own_functions & (other.declared | other.called)

    def goes_with(self, other):
        return not self.disturbs(other) and not other.disturbs(self)


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
