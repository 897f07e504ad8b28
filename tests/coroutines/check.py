#!/usr/bin/env python3
"""Runs clang-query with cmake/coroutines.query over sources that use coroutines.

  check.py --build DIR                 every source and header of ours that contains co_await
  check.py --build DIR FILE...         these files, as the sources in DIR are compiled; a header
                                       through one that includes it
  check.py FILE... -- FLAG...          these files, with these compiler flags
  check.py --self-test                 the fixtures beside this script

Exit status: 0 nothing found, 1 something found, 2 it could not be checked, 77 no clang-query."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUERY = ROOT / "cmake" / "coroutines.query"
QUERIES = len(re.findall(r"^match ", QUERY.read_text(), re.M))
FIXTURES = pathlib.Path(__file__).resolve().parent
FOLDERS = ("include", "lib", "apps", "tests")
INCLUDE = re.compile(r'^#include ["<](.+)[">]', re.M)
SOURCE_OF_SEVERAL = re.compile(r'^#include "(.+)"', re.M)
COROUTINE = re.compile(r"co_await|await_suspend")
MATCH = re.compile(r'^(.+?):(\d+):(\d+): note: "root" binds here$')


class CannotCheck(Exception):
    pass


def clang_query():
    if program := shutil.which("clang-query"):
        return program
    print("clang-query is not installed: apt-get install clang-tools", file=sys.stderr)
    sys.exit(77)


def compiled_sources(build):
    """Each source, and the file by which it is compiled: itself, or one that cmake/unity.cmake made of several."""
    database = pathlib.Path(build) / "compile_commands.json"
    if not database.exists():
        raise CannotCheck(f"{database} is missing: build the preset first (./dev build)")
    compiled = {}
    for entry in json.loads(database.read_text()):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        several = file.parent.name == "Unity"
        for source in SOURCE_OF_SEVERAL.findall(file.read_text()) if several else [file]:
            compiled[pathlib.Path(ROOT, source).resolve()] = file
    return dict(sorted(compiled.items()))


def includes(path, header):
    return any(header.as_posix().endswith(f"/{named}") for named in INCLUDE.findall(path.read_text()))


def one_that_includes(header, sources):
    """A header has no flags of its own, and those that clang guesses by its name may be those of a
    program that never sees it. So it is looked at through a source that includes it, if need be
    by way of another header."""
    asked, seen = [header], {header}
    headers = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.hpp"))]
    for wanted in asked:
        for source in sources:
            if includes(source, wanted):
                return source
        further = [path for path in headers if path not in seen and includes(path, wanted)]
        asked += further
        seen.update(further)
    raise CannotCheck(f"{header}: no source that is compiled includes it, so its flags are unknown")


def compiled_by(files, compiled):
    """What to look at. A header is seen by way of a source that is looked at anyway, if there is one."""
    sources = [file for file in files if file.suffix != ".hpp"]
    for file in sources:
        if file not in compiled:
            raise CannotCheck(f"{file}: it is not compiled, so its flags are unknown")
    looked_at = {compiled[file] for file in sources}
    in_turn = sorted(compiled, key=lambda source: compiled[source] not in looked_at)
    return looked_at | {compiled[one_that_includes(file, in_turn)]
                        for file in files if file.suffix == ".hpp"}


def our_sources(compiled):
    """Headers are looked at too: a source that includes one need not say co_await."""
    files = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            known = path.suffix == ".hpp" or path in compiled
            if known and FIXTURES not in path.parents and COROUTINE.search(path.read_text()):
                files.append(path)
    return files


def matches(program, file, build, flags):
    """The set of (file, line) that the query finds in `file` and what it includes."""
    command = [program, "-f", str(QUERY), str(file)]
    if flags is None:
        command += ["-p", str(build), "--extra-arg=-w"]
    else:
        command += ["--", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout + done.stderr
    errors = [line for line in said.splitlines() if re.search(r"\berror: ", line)]
    # A count for each query: one that was not understood would otherwise pass everything.
    if errors or done.returncode or len(re.findall(r"^\d+ match(?:es)?\.$", said, re.M)) != QUERIES:
        shown = "\n".join(errors[:5]) or said.strip()[-2000:]
        raise CannotCheck(f"{file}: clang-query could not look at it\n{shown}")
    found = (MATCH.match(line) for line in done.stdout.splitlines())
    return {(os.path.realpath(hit[1]), int(hit[2])) for hit in found if hit}


def find_all(files, build, flags):
    program = clang_query()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda file: matches(program, file, build, flags), files)
        return sorted(set().union(*found))


def report(found):
    for file, line in found:
        text = pathlib.Path(file).read_text().splitlines()[line - 1].strip()
        print(f"{os.path.relpath(file)}:{line}: compilers may get this wrong: {text}")
    if found:
        print(f"{len(found)} found. {QUERY.name} says what is wrong and how to write it instead.")


def in_a_header():
    """True if a header is found at fault when the source that is nearest by name never sees it."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder).resolve()
        (build / "include").mkdir()
        header = build / "include" / "awaiting.hpp"
        header.write_text((FIXTURES / "bad_forms.cpp").read_text())
        (build / "awaiting.cpp").write_text("")
        (build / "user.cpp").write_text("#include <awaiting.hpp>\n")
        (build / "compile_commands.json").write_text(json.dumps(
            [{"directory": folder, "file": source,
              "arguments": ["c++", "-std=c++20", *flags, "-c", source]}
             for source, flags in (("awaiting.cpp", []),
                                   ("user.cpp", [f"-I{folder}/include", f"-I{FIXTURES}"]))]))
        looked_at = compiled_by([header], compiled_sources(build))
        return any(file == str(header) for file, _ in find_all(looked_at, build, None))


def among_several():
    """True if a source is found at fault that is compiled together with another one."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder).resolve()
        (build / "Unity").mkdir()
        source = build / "awaiting.cpp"
        source.write_text((FIXTURES / "bad_forms.cpp").read_text())
        several = build / "Unity" / "target_0.cpp"
        several.write_text(f'#include "{build}/other.cpp"\n#include "{source}"\n')
        (build / "other.cpp").write_text("")
        (build / "compile_commands.json").write_text(json.dumps(
            [{"directory": folder, "file": str(several),
              "arguments": ["c++", "-std=c++20", f"-I{FIXTURES}", "-c", str(several)]}]))
        looked_at = compiled_by([source], compiled_sources(build))
        return any(file == str(source) for file, _ in find_all(looked_at, build, None))


def self_test():
    flags = ["-std=c++20"]
    bad, good = FIXTURES / "bad_forms.cpp", FIXTURES / "good_forms.cpp"
    wanted = [(str(bad), number) for number, line in enumerate(bad.read_text().splitlines(), 1)
              if line.endswith("// found")]
    found = find_all([bad, good], None, flags)
    for file, line in sorted(set(wanted) ^ set(found)):
        what = "not found" if (file, line) in wanted else "found by mistake"
        print(f"{file}:{line}: {what}")
    if found != wanted or not wanted:
        return 1
    if not in_a_header():
        print("a header that is at fault passed the check")
        return 1
    if not among_several():
        print("a source that is at fault passed the check where several are compiled as one")
        return 1
    broken = FIXTURES / "no_such_file.cpp"
    try:
        find_all([broken], None, flags)
    except CannotCheck:
        print(f"{len(wanted)} bad forms found, good forms left alone")
        return 0
    print("a file that cannot be read passed the check")
    return 1


def main():
    arguments, flags = sys.argv[1:], None
    if "--" in arguments:
        split = arguments.index("--")
        arguments, flags = arguments[:split], arguments[split + 1:]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build directory with a compile_commands.json")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args(arguments)

    if options.self_test:
        return self_test()
    if flags is None and not options.build:
        parser.error("say --build DIR, or the compiler's flags after --")
    if flags is not None and not options.files:
        parser.error("flags without a FILE")
    files = [pathlib.Path(file).resolve() for file in options.files]
    for file in files:
        if not file.is_file():
            raise CannotCheck(f"{file}: no such file")
    looked_at = files
    if flags is None:
        compiled = compiled_sources(options.build)
        files = files or our_sources(compiled)
        looked_at = compiled_by(files, compiled)
    found = find_all(looked_at, options.build, flags)
    report(found)
    if not found:
        print(f"{len(files)} files with coroutines: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotCheck as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
