#!/usr/bin/env python3
"""Changes one line of the library at a time, and looks whether the tests notice.

    tests/mutate.py SECONDS [--changed BASE] [--module MODULE]

Works on copies of the last commit in build/mutate, two for each processor because tests wait for half of
their time. So the tree itself is not touched. The order of the changes is drawn by the commit: a run that is started again goes on where
the last one stopped.
Prints each change that no test noticed, and in the end the share that was noticed. A change that
makes no difference that can be seen stands in tests/mutate_equivalent.txt with the reason.

Ends with 1 if a change was not noticed and is not in that file.
"""
import argparse
import concurrent.futures
import io
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutate"
RESULTS = WORK / "results.jsonl"
EQUIVALENT = ROOT / "tests" / "mutate_equivalent.txt"

# The test programs that are asked first about a change in a module. A change in the core is then shown to
# all programs of CORE_TESTS, the quick ones first; a change in an extra only to those that use it.
OWN_TESTS = {"base": ["http"], "http": ["http"], "retry": ["retry"], "json": ["json"], "log": ["spdlog"],
             "flow": ["flow"], "chain": ["flow"], "body": ["flow"], "policy": ["policy"], "guard": ["guard"],
             "middleware": ["client"], "curl": ["curl", "wire"], "client": ["client"],
             "testing": ["testing", "client", "wire"], "spdlog": ["spdlog"], "telemetry": ["telemetry"],
             "simulate": ["simulate"], "batch": ["batch"], "fleet": ["fleet", "queue"], "queue": ["queue"],
             "paging": ["paging"], "oauth2": ["oauth2"], "compression": ["compression"]}
CORE_TESTS = ["http", "retry", "json", "flow", "spdlog", "curl", "client", "testing", "guard", "policy", "wire",
              "simulate"]
PROGRAMS = sorted({*CORE_TESTS, *(name for names in OWN_TESTS.values() for name in names)})
# What ctest runs where no test program noticed the change.
COMMAND_TESTS = {"batch": "cli_batch|crash|failing_store", "queue": "cli_queue|kill_workers",
                 "fleet": "cli_shared|servers_redis", "simulate": "cli_simulate|cli_plan|cli_policy_tests",
                 "telemetry": "cli_telemetry|servers_prometheus",
                 "testing": "cli_serve|cli_examples|cli_scripts|ledger|identities",
                 "policy": "cli_policy|cli_pages|cli_plan|policy_schema",
                 "curl": "cli_transfer|cli_curl_options|cli_proxy|cli_security|cli_hostile|cli_stream|servers_|torture",
                 "guard": "cli_guards|cli_hedge|cli_outage", "paging": "cli_paginate",
                 "oauth2": "cli_oauth2", "compression": "cli_compression"}
OTHER_COMMAND_TESTS = "cli_send|cli_outage|cli_transfer|cli_report|cli_stream|torture|ledger"

# What is replaced, and by what. Each match in a line of code is one possible change.
CHANGES = [
    (r"(?<![<>=!\-+*/&|^%])<=(?!>)", "<"), (r"(?<![<>=!\-])>=(?!>)", ">"),
    (r" < ", " <= "), (r" > ", " >= "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "),
    (r"\bif \((?!const|auto|!)", "if (!"), (r"\bif \(!", "if ("),
    (r"\breturn true;", "return false;"), (r"\breturn false;", "return true;"),
    (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
    (r"(?<![\w.'\"])0(?![\w.'x])", "1"), (r"(?<![\w.'\"])1(?![\w.'])", "2"),
    (r"(?<![\w.'\"])([2-9]|[1-9]\d+)(?![\w.'])", lambda match: str(int(match[0]) + 1)),
    (r"= true;", "= false;"), (r"= false;", "= true;"), (r"\+\+(?=\w)", "--"),
]
NOT_CODE = re.compile(r"^\s*(//|#|static_assert|assert|template|using|namespace|case .*: return \")")


def run(command, timeout, **options):
    """The exit status, or None where it took too long. Ends the whole process group."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, **options)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True,
                          text=True).stdout


def changes_of(name, text, lines):
    """(file, line, old, new) of all possible changes; `lines`: only these, if not None."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if NOT_CODE.match(line) or (lines is not None and number not in lines):
            continue
        code = line.split("//")[0]
        strings = [match.span() for match in re.finditer(r'"(?:[^"\\]|\\.)*"', code)]
        for pattern, new in CHANGES:
            for match in re.finditer(pattern, code):
                if any(begin <= match.start() < end for begin, end in strings):
                    continue
                put = new(match) if callable(new) else new
                changed = line[:match.start()] + put + line[match.end():]
                found.append((name, number, line, changed))
    return found


def changed_lines(base):
    """{file: numbers of the lines that were added since `base`}"""
    files, name = {}, None
    for line in git("diff", "--unified=0", f"{base}..HEAD", "--", "lib").splitlines():
        if line.startswith("+++ b/"):
            name = line[6:]
        elif match := re.match(r"@@ .* \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            files.setdefault(name, set()).update(range(first, first + count))
    return files


def module_of(name):
    """The folder of one of our files: lib/core/MODULE/..., lib/extras/MODULE/..."""
    return name.split("/")[2]


def all_changes(commit, base, module):
    only = changed_lines(base) if base else None
    found = []
    for name in git("ls-files", "lib").split():
        if not name.endswith((".cpp", ".hpp")) or (only is not None and name not in only):
            continue
        if module and module_of(name) != module:
            continue
        text = git("show", f"{commit}:{name}")
        found += changes_of(name, text, None if only is None else only[name])
    random.Random(commit).shuffle(found)
    return found


class Copy:
    """A copy of the commit with a build of its own."""

    # One copy is built after the other, so that the second one finds its objects in the compiler's cache.
    building = threading.Lock()

    def __init__(self, folder, commit):
        self.tree, self.build = folder / "tree", folder / "build"
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(self.tree), "CCACHE_NOHASHDIR": "1"}
        self.export(commit)
        flags = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0", "-DHTTPRETRY_PACKAGE_TESTS=OFF",
                 "-DHTTPRETRY_UNITY=OFF", "-DHTTPRETRY_BUILD_EXAMPLES=OFF"]
        subprocess.run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", *flags], check=True,
                       stdout=subprocess.DEVNULL)
        with self.building:
            if not self.make("all", jobs=os.cpu_count()):
                sys.exit("mutate: the tests cannot be built")
        self.limits = {}
        for name in PROGRAMS:
            start = time.monotonic()
            if self.run(name, 900) != 0:
                sys.exit(f"mutate: {name}_test fails without any change")
            self.limits[name] = 20 + 5 * (time.monotonic() - start)

    def export(self, commit):
        """Files that are as they were keep their time, so that little is built."""
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True,
                                 capture_output=True).stdout
        wanted = set()
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in filter(tarfile.TarInfo.isfile, tar.getmembers()):
                path, content = self.tree / member.name, tar.extractfile(member).read()
                wanted.add(path)
                if not path.exists() or path.read_bytes() != content:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                    path.chmod(member.mode)
        for path in self.tree.rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()

    def make(self, target, jobs=1):
        command = ["cmake", "--build", self.build, "--target", target, "-j", str(jobs)]
        return run(command, 3600, env=self.environment) == 0

    def run(self, name, limit):
        tests = self.build / "tests"
        # Without optimizing, the cases with large numbers would take minutes.
        options = ["--abort-after=1", "--test-suite-exclude=large"]
        return run([tests / f"{name}_test", *options], limit, cwd=tests)

    def notice(self, file):
        """The test that notices the change in the tree; "" if none does; None: it does not compile."""
        module = module_of(file)
        names = OWN_TESTS[module]
        if file.startswith("lib/core/"):
            names = names + [name for name in CORE_TESTS if name not in names]
        for name in names:
            if not self.make(f"{name}_test"):
                return None
            if self.run(name, self.limits[name]) != 0:
                return name
        if not self.make("all"):
            return None
        command = ["ctest", "--test-dir", self.build, "--stop-on-failure", "-j2", "-R",
                   f"^({COMMAND_TESTS.get(module, OTHER_COMMAND_TESTS)})"]
        return "" if run(command, 1800) == 0 else "ctest"

    def try_change(self, change):
        name, number, _, new = change
        path = self.tree / name
        original = path.read_text()
        lines = original.splitlines(keepends=True)
        lines[number - 1] = new + "\n"
        try:
            path.write_text("".join(lines))
            return self.notice(name)
        finally:
            path.write_text(original)


def known_equivalent():
    """Lines `FILE: OLD => NEW # REASON`."""
    known = set()
    for line in EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []:
        if line and not line.startswith("#"):
            known.add(line.split(" # ")[0])
    return known


def told(change):
    name, _, old, new = change
    return f"{name}: {old.strip()} => {new.strip()}"


def summary(results, equivalent):
    counted = [one for one in results if one["by"] is not None]
    noticed = sum(1 for one in counted if one["by"])
    same = sum(1 for one in counted if not one["by"] and one["change"] in equivalent)
    print(f"\n{len(counted)} changes, {noticed} noticed ({100 * noticed / max(1, len(counted)):.1f} %), "
          f"{same} that make no difference, {len(counted) - noticed - same} not noticed")
    for module in sorted({one["module"] for one in counted}):
        there = [one for one in counted if one["module"] == module]
        print(f"  {module:12} {sum(1 for one in there if one['by'])} of {len(there)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=int)
    parser.add_argument("--changed", metavar="BASE", help="only lines that came since that commit")
    parser.add_argument("--module", help="only this folder of lib")
    options = parser.parse_args()

    commit = git("rev-parse", "HEAD").strip()
    end = time.monotonic() + options.seconds
    results = []
    if RESULTS.exists():
        stored = [json.loads(line) for line in RESULTS.read_text().splitlines()]
        results = [one for one in stored if one["commit"] == commit]
    done = {(one["change"], one["line"]) for one in results}
    equivalent = known_equivalent()
    todo = iter([change for change in all_changes(commit, options.changed, options.module)
                 if (told(change), change[1]) not in done])
    lock = threading.Lock()

    def work(number):
        copy = Copy(WORK / str(number), commit)
        while time.monotonic() < end:
            with lock:
                change = next(todo, None)
            if change is None:
                return
            result = {"commit": commit, "change": told(change), "line": change[1],
                      "module": module_of(change[0]), "by": copy.try_change(change)}
            with lock:
                results.append(result)
                with RESULTS.open("a") as log:
                    log.write(json.dumps(result) + "\n")
            if result["by"] == "" and result["change"] not in equivalent:
                print(f"not noticed: {change[0]}:{change[1]}\n  {change[2].strip()}\n"
                      f"  {change[3].strip()}", flush=True)

    WORK.mkdir(parents=True, exist_ok=True)
    copies = 2 * os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(copies) as workers:
        for finished in [workers.submit(work, number) for number in range(copies)]:
            finished.result()
    summary(results, equivalent)
    missed = [one for one in results if one["by"] == "" and one["change"] not in equivalent]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
