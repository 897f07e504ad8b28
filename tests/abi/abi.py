#!/usr/bin/env python3
"""Compares what programs were built against with tests/abi/baseline.txt.

    abi.py --prefix DIR [--cxx COMPILER] [--update]

DIR has an installed shared build. The baseline lists each type that a public header defines, with the place of each
member and virtual function, and each function and variable that the libraries export. --update writes it anew.

Exit status: 0 nothing differs, or the baseline is not for this processor; 1 something differs; 2 it could not be
checked."""
import argparse
import difflib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

BASELINE = pathlib.Path(__file__).resolve().parent / "baseline.txt"
# They need libraries that a program may not have, and define no types of their own.
BRIDGES = ("httpretry/asio.hpp", "httpretry/json/nlohmann.hpp")
EXPORTED = re.compile(r"\bHTTPRETRY_API\b\s+(?:\[\[\w+\]\]\s+)?(?:(?:extern|static|const)\s+)*"
                      r"(?:(?:class|struct)\s+(\w+)|[^;{(=]*?(\w+)\s*[;({=])")


def run(*command, text=None):
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"abi: {' '.join(map(str, command))} failed\n{done.stderr}", file=sys.stderr)
        sys.exit(2)
    return done.stdout


def described(include, cxx):
    """The types of all public headers, as the compiler describes them to a debugger."""
    headers = sorted(str(path.relative_to(include)) for path in (include / "httpretry").rglob("*.hpp"))
    with tempfile.TemporaryDirectory() as folder:
        compiled = pathlib.Path(folder) / "headers.o"
        run(cxx, "-std=c++20", "-g", "-fno-eliminate-unused-debug-types", "-femit-class-debug-always", f"-I{include}",
            "-x", "c++", "-c", "-", "-o", compiled,
            text="".join(f"#include <{header}>\n" for header in headers if header not in BRIDGES))
        return xml.fromstring(run("abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path",
                                  "--load-all-types", compiled))


class Types:
    """The types of namespace httpretry, one text each."""

    def __init__(self, root):
        self.named = {}    # by abidw's number
        self.found = []    # (qualified name, element)
        self.others = {}
        self.private = set()  # declared in a class, and defined in no public header
        for child in root.iter("abi-instr"):
            self.collect(child, "")

    def collect(self, parent, scope):
        for element in parent:
            kind, name = element.tag, element.get("name", "")
            if kind == "namespace-decl":
                self.collect(element, f"{scope}{name}::")
            elif kind == "member-type":
                self.collect(element, scope)
            elif kind in ("class-decl", "union-decl", "enum-decl", "typedef-decl", "type-decl"):
                self.named[element.get("id")] = scope + name
                if scope.startswith("httpretry::") and kind != "typedef-decl":
                    self.found.append((scope + name, element))
                    if parent.tag == "member-type" and element.get("is-declaration-only") == "yes":
                        self.private.add(f"{scope}{name}::")
                self.collect(element, f"{scope}{name}::")
            elif element.get("id"):
                self.others[element.get("id")] = element

    def name(self, number):
        if number in self.named:
            return re.sub(r"^(std::[\w:]+)<.*$", r"\1", self.named[number])
        element = self.others.get(number)
        if element is None:
            return "?"
        if element.tag == "array-type-def":
            return f"{self.name(element.get('type-id'))}[{element.find('subrange').get('length')}]"
        inner = self.name(element.get("type-id")) if element.get("type-id") else "function"
        if element.tag == "qualified-type-def":
            return f"{inner} const" if element.get("const") == "yes" else inner
        return inner + {"pointer-type-def": "*", "reference-type-def": "&"}.get(element.tag, "")

    def lines_of(self, element):
        for base in element.findall("base-class"):
            yield f"  {bits(base, 'layout-offset-in-bits')}: base {self.name(base.get('type-id'))}"
        for member in element.findall("data-member"):
            variable = member.find("var-decl")
            if member.get("static") != "yes":
                yield (f"  {bits(member, 'layout-offset-in-bits')}: {variable.get('name')}, "
                       f"{self.name(variable.get('type-id'))}")
        virtual = {}
        for member in element.findall("member-function"):
            place = int(member.get("vtable-offset", "-1"))
            # Both destructors are at the same place for abidw; -1 is one of them.
            if member.get("vtable-offset") is not None:
                function = member.find("function-decl")
                virtual[place] = "destructor" if member.get("destructor") else function.get("mangled-name")
        for place, name in sorted(virtual.items()):
            yield f"  virtual {place}: {name}"

    def items(self):
        for name, element in self.found:
            # Only types that every compiler lists: instances of templates depend on who uses them.
            if "<" in name or "__anonymous" in name or element.get("is-declaration-only") == "yes":
                continue
            if element.tag == "enum-decl":
                for value in element.findall("enumerator"):
                    yield f"enum {name}::{value.get('name')} = {value.get('value')}", ""
            elif element.tag in ("class-decl", "union-decl"):
                yield (f"type {name}", "\n".join((f"{bits(element, 'size-in-bits')} bytes", *self.lines_of(element))))


def bits(element, attribute):
    whole, rest = divmod(int(element.get(attribute, 0)), 8)
    return f"{whole}.{rest}" if rest else str(whole)


def exported_by_headers(include):
    """The names behind HTTPRETRY_API in the public headers, also in namespace detail: functions in headers, which are
    compiled into programs, call those."""
    names = set()
    for header in include.rglob("*.hpp"):
        for match in EXPORTED.finditer(header.read_text()):
            names.add(match[1] or match[2])
    return names


def exported(libraries, include, private):
    public = exported_by_headers(include)
    for library in libraries:
        symbols = {}
        for line in run("nm", "-D", "--defined-only", "--format=posix", library).splitlines():
            symbol, kind = line.split()[:2]
            if kind in "TDBR" and symbol.startswith("_Z"):
                symbols[symbol] = kind
        shown = run("c++filt", text="\n".join(symbols)).splitlines()
        for text in shown:
            inside = re.search(r"\bdetail::(\w+)", text.split("(")[0])
            if inside and inside[1] not in public or any(name in text for name in private):
                continue  # only our own libraries use it, and they all have the same version
            yield f"{library.name.removesuffix('.so')} {text.replace('std::__cxx11::', 'std::')}", ""


def read(text):
    items, name = {}, None
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if line.startswith(" "):
            items[name] += f"\n{line}"
        else:
            name, _, text = line.partition(": ")
            items[name] = text
    return items


def written(items):
    head = ("# What programs are built against, and what stays so until 2.0 (lib/stability.md). Made by abi.py --update.\n"
            "# Types of public headers with the places of their members, in bytes; values of enums; exported functions.\n")
    return head + "".join(f"{name}: {text}\n" if text else f"{name}\n" for name, text in sorted(items.items()))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--prefix", type=pathlib.Path, required=True)
    arguments.add_argument("--cxx", default="g++")
    arguments.add_argument("--update", action="store_true")
    options = arguments.parse_args()
    if shutil.which("abidw") is None:
        print("abi: abidw is not installed: apt-get install abigail-tools", file=sys.stderr)
        return 2
    if platform.machine() != "x86_64":
        print(f"abi: not compared: the baseline is for x86_64, this is {platform.machine()}")
        return 0
    include = options.prefix / "include"
    libraries = sorted(options.prefix.glob("lib/**/libhttpretry*.so"))
    if not libraries:
        print(f"abi: there are no shared libraries in {options.prefix}/lib", file=sys.stderr)
        return 2
    types = Types(described(include, options.cxx))
    items = read(run("c++filt", text=written(dict(types.items()))))
    items.update(exported(libraries, include, types.private))
    if options.update:
        BASELINE.write_text(written(items))
        return 0
    before = read(BASELINE.read_text())
    gone = [name for name in before if name not in items]
    changed = [name for name in before if name in items and items[name] != before[name]]
    added = [name for name in items if name not in before]
    for name in gone + changed:
        print(f"abi: {'is gone' if name in gone else 'has changed'}: {name}")
        for line in difflib.ndiff(before[name].splitlines(), items.get(name, "").splitlines()):
            if line[0] in "+-":
                print(f"       {line}")
    if gone or changed:
        print("Programs that were built with an earlier 1.x would break: lib/stability.md says what may change when.")
    for name in added:
        print(f"abi: is new: {name}")
    if added and not gone and not changed:
        print(f"A minor version may add this. {pathlib.Path(__file__).name} --update writes it into the baseline.")
    return 1 if gone or changed or added else 0


if __name__ == "__main__":
    sys.exit(main())
