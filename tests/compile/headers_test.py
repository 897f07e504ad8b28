#!/usr/bin/env python3
"""Compiles each public header alone, and all of them together in C++20 and C++23. They need nothing but
the standard library (a bridge also needs the library that it is for), and cause no warnings.

    headers_test.py COMPILER INCLUDE_DIR WORK_DIR

clang compiles only all of them together: what a header needs is the same for both compilers. In WORK_DIR,
ccache serves what has been compiled before, if it is installed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

CPP20, CPP23 = "c++20", "c++2b"
FIRST_LINE = re.compile(r"^#(?!pragma once|include <httpretry/export.hpp>)(.*)$", re.M)
# The headers that are there to include another library, and a header of it. Without that library, they are not
# compiled.
BRIDGES = {"httpretry/asio.hpp": "boost/asio/post.hpp", "httpretry/json/nlohmann.hpp": "nlohmann/json.hpp"}
OTHERS = re.compile(r"/(?:boost|curl|nlohmann|spdlog|fmt|openssl|hiredis)/|/(?:zlib|idn2|sqlite3)\.h$")


class Compiler:
    def __init__(self, command, include, work):
        self.include, self.work = pathlib.Path(include).resolve(), pathlib.Path(work)
        self.command = [*filter(None, [shutil.which("ccache")]), command]
        # Relative paths, which are the same in every clone.
        self.environment = dict(os.environ, CCACHE_BASEDIR=str(self.include.parent), CCACHE_NOHASHDIR="1")

    def problem_of(self, header, standard):
        """What is wrong with it; empty if nothing is."""
        name = header.replace("/", "_").removesuffix(".hpp")
        condition = f"__has_include(<{BRIDGES[header]}>)" if header in BRIDGES else "1"
        (self.work / f"{name}.cpp").write_text(f"#if {condition}\n#include <{header}>\n#endif\n")
        ran = subprocess.run(
            [*self.command, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-I", str(self.include),
             "-MD", "-MF", f"{name}.d", "-c", f"{name}.cpp", "-o", f"{name}.o"],
            cwd=self.work, env=self.environment, capture_output=True, text=True)
        if ran.returncode != 0:
            return ran.stderr
        used = (self.work / f"{name}.d").read_text().replace("\\\n", " ").split()[1:]
        if header in BRIDGES:
            return ""
        others = [path for path in used if OTHERS.search(path) and not self.is_ours(path)]
        return f"needs more than the standard library: {' '.join(others[:3])}\n" if others else ""

    def is_ours(self, path):
        return (self.work / path).resolve().is_relative_to(self.include)


def headers_to_compile(include):
    """All headers but those that another one includes before everything else: compiling that one also shows
    whether they compile alone."""
    texts = {str(path.relative_to(include)): path.read_text() for path in pathlib.Path(include).rglob("*.hpp")}
    begins = {found[1] for text in texts.values() if (found := FIRST_LINE.search(text))}
    return sorted(header for header in texts if f"include <{header}>" not in begins)


def without_export(include):
    """The headers that do not begin with the header that checks the language."""
    begin = re.compile(r"^#pragma once\n\n#include <httpretry/export\.hpp>$", re.M)
    return [path.relative_to(include) for path in sorted(pathlib.Path(include).rglob("*.hpp"))
            if path.name != "export.hpp" and not begin.search(path.read_text())]


def main():
    command, include, work = sys.argv[1:]
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    headers = headers_to_compile(include)
    every = "httpretry/httpretry.hpp"
    pairs = [(every, CPP20), (every, CPP23)]
    if "clang" not in version:
        pairs += [(header, CPP20) for header in headers if header != every]
    os.makedirs(work, exist_ok=True)
    compiler = Compiler(command, include, work)
    bad = 0
    for header in without_export(include):
        print(f"{header} does not include <httpretry/export.hpp> first")
        bad += 1
    for header, standard in pairs:
        if problem := compiler.problem_of(header, standard):
            print(f"{header} in {standard}:\n{problem}")
            bad += 1
    print(f"{len(pairs) - bad} passed, {bad} failed")
    return 0 if bad == 0 and len(headers) > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
