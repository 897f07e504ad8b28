#!/usr/bin/env python3
"""Finds coroutine code that compilers get wrong, with cmake/coroutines.query (see query.py).

  check.py --build DIR                 every source and header of ours that contains co_await
  check.py --build DIR FILE...         these files, as the sources in DIR are compiled; a header
                                       through one that includes it
  check.py FILE... -- FLAG...          these files, with these compiler flags
  check.py --self-test                 the fixtures beside this script

Exit status: 0 nothing found, 1 something found, 2 it could not be checked, 77 no clang-query."""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = pathlib.Path(__file__).resolve().parent
QUERY = FIXTURES / "query.py"
CCACHE = {"CCACHE_COMPILERTYPE": "clang", "CCACHE_COMPILERCHECK": "%compiler% --version",
          "CCACHE_DEPEND": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
UNITY = "httpretry-unity"  # the folder of the files that cmake/unity.cmake makes
FOLDERS = ("include", "lib", "apps", "tests")
INCLUDE = re.compile(r'^#include ["<](.+)[">]', re.M)
SOURCE_OF_SEVERAL = re.compile(r'^#include "(.+)"', re.M)
COROUTINE = re.compile(r"co_await|await_suspend")


class CannotCheck(Exception):
    pass


@functools.cache
def database_of(build):
    path = pathlib.Path(build, "compile_commands.json")
    if not path.exists():
        raise CannotCheck(f"{path} is missing: build the preset first (./dev build)")
    return json.loads(path.read_text())


def compiled_sources(build):
    """Each source, and the file by which it is compiled: itself, or one that cmake/unity.cmake made of several."""
    compiled = {}
    for entry in database_of(build):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        several = file.parent.name == UNITY
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


def sources_to_see(files, compiled):
    """What to look at. A header is seen by way of a source that is looked at anyway, if there is one."""
    sources = {file for file in files if file.suffix != ".hpp"}
    for file in sorted(sources):
        if file not in compiled:
            raise CannotCheck(f"{file}: it is not compiled, so its flags are unknown")
    in_turn = sorted(compiled, key=lambda source: source not in sources)
    return sources | {one_that_includes(file, in_turn) for file in files if file.suffix == ".hpp"}


def compiled_by(files, compiled, build):
    """Pairs of a file to look at, and the file with whose flags it is compiled. They differ where several sources
    are compiled as one: those without coroutines are left out, which halves the time."""
    sources = sources_to_see(files, compiled)
    folder = pathlib.Path(build, "coroutines").resolve()
    pairs = []
    for file in sorted({compiled[source] for source in sources}):
        if file.parent.name != UNITY:
            pairs.append((file, file))
            continue
        some = folder / file.name
        folder.mkdir(exist_ok=True)
        some.write_text("".join(f'#include "{source}"\n' for source in SOURCE_OF_SEVERAL.findall(file.read_text())
                                if pathlib.Path(ROOT, source).resolve() in sources))
        pairs.append((some, file))
    return pairs


def our_sources(compiled):
    """Headers are looked at too: a source that includes one need not say co_await."""
    files = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            known = path.suffix == ".hpp" or path in compiled
            if known and FIXTURES not in path.parents and COROUTINE.search(path.read_text()):
                files.append(path)
    return files


def as_compiled(file, build):
    """Returns the folder and the flags with which `file` is compiled, without those for its output."""
    entry = next(each for each in database_of(build)
                 if pathlib.Path(each["directory"], each["file"]).resolve() == file)
    flags = (entry.get("arguments") or shlex.split(entry["command"]))[1:]
    for name in ("-o", "-c"):
        if name in flags:
            place = flags.index(name)
            del flags[place:place + 2]
    return entry["directory"], flags


def matches(file, compiled_as, build, flags):
    """The set of (file, line) that the query finds in `file` and what it includes."""
    folder, flags = as_compiled(compiled_as, build) if flags is None else (os.getcwd(), flags)
    with tempfile.TemporaryDirectory() as output:
        found = pathlib.Path(output, "found")
        # ccache keeps what was found in a source until the source or one of its headers changes.
        ccache = shutil.which("ccache")
        command = [ccache] if ccache else []
        command += [str(QUERY), *flags, "-MD", "-MF", f"{found}.d", "-o", str(found), "-c", str(file)]
        done = subprocess.run(command, cwd=folder, env=os.environ | CCACHE, capture_output=True, text=True)
        if done.returncode:
            raise CannotCheck(done.stderr.strip())
        lines = [line.rpartition(":") for line in found.read_text().splitlines()[1:]]
    return {(os.path.realpath(ROOT / path), int(line)) for path, _, line in lines}


def find_all(pairs, build, flags):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda pair: matches(*pair, build, flags), pairs)
        return sorted(set().union(*found))


def report(found):
    for file, line in found:
        text = pathlib.Path(file).read_text().splitlines()[line - 1].strip()
        print(f"{os.path.relpath(file)}:{line}: compilers may get this wrong: {text}")
    if found:
        print(f"{len(found)} found. cmake/coroutines.query says what is wrong and how to write it instead.")


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
        looked_at = compiled_by([header], compiled_sources(build), build)
        return any(file == str(header) for file, _ in find_all(looked_at, build, None))


def among_several():
    """True if a source is found at fault that is compiled together with another one."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder).resolve()
        (build / UNITY).mkdir()
        source = build / "awaiting.cpp"
        source.write_text((FIXTURES / "bad_forms.cpp").read_text())
        several = build / UNITY / "target_0.cpp"
        several.write_text(f'#include "{build}/other.cpp"\n#include "{source}"\n')
        (build / "other.cpp").write_text("")
        (build / "compile_commands.json").write_text(json.dumps(
            [{"directory": folder, "file": str(several),
              "arguments": ["c++", "-std=c++20", f"-I{FIXTURES}", "-c", str(several)]}]))
        looked_at = compiled_by([source], compiled_sources(build), build)
        return any(file == str(source) for file, _ in find_all(looked_at, build, None))


def self_test():
    flags = ["-std=c++20"]
    bad, good = FIXTURES / "bad_forms.cpp", FIXTURES / "good_forms.cpp"
    wanted = [(str(bad), number) for number, line in enumerate(bad.read_text().splitlines(), 1)
              if line.endswith("// found")]
    found = find_all([(bad, bad), (good, good)], None, flags)
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
        find_all([(broken, broken)], None, flags)
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

    if not shutil.which("clang-query"):
        print("clang-query is not installed: apt-get install clang-tools", file=sys.stderr)
        return 77
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
    looked_at = [(file, file) for file in files]
    if flags is None:
        compiled = compiled_sources(options.build)
        files = files or our_sources(compiled)
        looked_at = compiled_by(files, compiled, options.build)
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
