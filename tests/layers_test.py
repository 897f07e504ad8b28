#!/usr/bin/env python3
"""Checks who includes whom, from the #include lines of include/, lib/ and apps/.

  http <- retry <- flow <- (policy | middleware | guard <- fleet | curl | spdlog | testing) <- client <- apps
              ^---- json <- (policy | client | testing | simulate); (middleware | guard) <- simulate
              client <- batch <- apps; (batch | fleet) <- queue <- apps; fleet <- apps

A room is a folder, with the same name under include/httpretry and lib; `detail` under
include/httpretry/ROOM belongs to ROOM. lib/README.md says what each is for.
Exit status 0: no problem; 1: the problems are listed, one a line."""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Which rooms a file of a room may include.
MAY_INCLUDE = {
    "http": {"http"},
    "retry": {"http", "retry"},
    "json": {"http", "retry", "json"},
    "flow": {"http", "retry", "flow"},
    "policy": {"http", "retry", "json", "flow", "policy"},
    "middleware": {"http", "retry", "flow", "policy", "middleware"},
    "guard": {"http", "retry", "flow", "policy", "guard"},
    # The transport knows no policy: what may be sent again is decided above it.
    "curl": {"http", "flow", "curl"},
    "spdlog": {"http", "flow", "spdlog"},
    "fleet": {"http", "retry", "flow", "guard", "fleet"},
    "simulate": {"http", "retry", "json", "flow", "policy", "middleware", "guard", "simulate"},
    "batch": {"http", "retry", "json", "flow", "policy", "middleware", "client", "batch"},
    "queue": {"http", "retry", "json", "flow", "policy", "middleware", "client", "batch", "fleet",
              "queue"},
    "testing": {"http", "retry", "json", "flow", "policy", "testing"},
    "client": {"http", "retry", "json", "flow", "policy", "middleware", "guard", "curl", "client"},
    # A component: observers and a middleware; its exporter is a client.
    "telemetry": {"http", "retry", "flow", "policy", "middleware", "curl", "client", "telemetry"},
    "apps": {"http", "retry", "json", "flow", "policy", "middleware", "guard", "curl", "client",
             "simulate", "telemetry", "batch", "fleet", "queue", "testing", "apps"},
}
# The headers outside of the rooms: the macro that every room uses, and all the rooms at once.
OUTSIDE = {"export", "httpretry"}
MAY_INCLUDE["httpretry"] = MAY_INCLUDE["client"]
for rooms in MAY_INCLUDE.values():
    rooms.add("export")
MAY_INCLUDE["export"] = set()
MAY_INCLUDE["apps"].add("httpretry")

# The room of each library that we are made of: nothing else sees it.
ROOMS = {
    "curl/": {"curl"},
    "nlohmann/": {"json"},
    "spdlog/": {"spdlog"},
    "fmt/": {"spdlog"},
    "zlib.h": {"curl", "testing"},
    "idn2.h": {"policy"},
    "openssl/": {"testing"},
    "hiredis/": {"fleet"},
    "sqlite3.h": {"batch"},
    "CLI/": {"apps"},
    "boost/": {"apps"},
}

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv
chrono cinttypes ciso646 climits clocale cmath codecvt compare complex concepts condition_variable
coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype
deque exception execution filesystem forward_list fstream functional future initializer_list iomanip
ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new
numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set
shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set
utility valarray variant vector version cxxabi.h
""".split())
SYSTEM = re.compile(r"^(sys|netinet|arpa|net|linux)/[\w/]+\.h$|^(unistd|fcntl|locale|netdb|poll|signal|"
                    r"pthread|errno|string|strings|stdlib|stdio|time|termios|dirent|spawn|pwd|"
                    r"malloc|dlfcn|ifaddrs|resolv|sched|getopt)\.h$")

# The room `retry` is arithmetic: time and chance are handed to it.
NOT_IN_RETRY = {"thread", "mutex", "shared_mutex", "condition_variable", "coroutine", "random",
                 "future", "semaphore", "latch", "barrier", "stop_token", "ctime", "iostream",
                 "fstream", "filesystem"}
READS_A_CLOCK = re.compile(r"::now\s*\(|\b(clock_gettime|gettimeofday|time\s*\(\s*(nullptr|NULL|0))")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def without_comments(text):
    """Comments emptied, with their line breaks kept; texts stay, since includes are texts."""
    def keep(match):
        found = match.group()
        return found if found.startswith('"') else "\n" * found.count("\n")
    return COMMENT.sub(keep, text)


def room_of(path, root):
    """The room of one of our files, or None where the tables do not say."""
    parts = path.relative_to(root).parts
    if parts[0] == "apps":
        return "apps"
    inside = parts[2:] if parts[:2] == ("include", "httpretry") else parts[1:]
    if parts[0] == "include" and inside == (path.name,) and path.stem in OUTSIDE:
        return path.stem
    if parts[0] == "include" and len(inside) == 3 and inside[1] == "detail":
        inside = (inside[0], inside[2])
    known = len(inside) == 2 and inside[0] in MAY_INCLUDE and inside[0] not in OUTSIDE | {"apps"}
    return inside[0] if known else None


def find_ours(path, name, root):
    for folder in (path.parent, root / "include", root, root / "lib", root / "apps/httpretry"):
        found = (folder / name).resolve()
        if found.is_file() and root in found.parents:
            return found
    return None


def check_ours(room, target, name, root):
    target_room = room_of(target, root)
    if target_room is None:
        return f"{name} is in no room: add it to the tables in tests/layers_test.py"
    if target_room not in MAY_INCLUDE[room]:
        return f"{room} may not include {name}, which is {target_room}"
    return None


def check_foreign(room, public, name):
    if room == "retry" and name in NOT_IN_RETRY:
        return f"retry may not include <{name}>: no threads, no clocks, no chance, no files"
    if name in STANDARD:
        return None
    if public:
        return f"a public header includes the standard library and <httpretry/...> only, not <{name}>"
    for prefix, rooms in ROOMS.items():
        if name == prefix or (prefix.endswith("/") and name.startswith(prefix)):
            where = " and ".join(sorted(rooms))
            return None if room in rooms else f"<{name}> is seen from {where} only, not from {room}"
    if SYSTEM.match(name):
        return f"retry may not include <{name}>" if room == "retry" else None
    return f"<{name}> is unknown: add it to the tables in tests/layers_test.py"


def check_line(path, line, room, root):
    """What is wrong with one line, or None."""
    if room == "retry" and READS_A_CLOCK.search(line):
        return "retry reads no clock: take the time as an argument"
    match = INCLUDE.match(line)
    if not match:
        return None
    quoted, name = match[1] == '"', match[2]
    public = path.is_relative_to(root / "include")
    if name.startswith("httpretry/"):
        target = root / "include" / name
        if not target.is_file():
            return f"{name} does not exist"
        return check_ours(room, target, name, root)
    if not quoted and not name.startswith("lib/"):
        return check_foreign(room, public, name)
    if public:
        return f"a public header includes <httpretry/...> only, not {name}"
    target = find_ours(path, name, root)
    return check_ours(room, target, name, root) if target else f"{name} does not exist"


def check(root):
    """Every offence as "file:line: what", and the number of files looked at."""
    problems, count = [], 0
    for folder in ("include", "lib", "apps"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            count += 1
            where = path.relative_to(root)
            room = room_of(path, root)
            if room is None:
                problems.append(f"{where}:1: is in no room: add it to the tables in "
                                "tests/layers_test.py")
                continue
            lines = without_comments(path.read_text()).splitlines()
            for number, line in enumerate(lines, 1):
                if problem := check_line(path, line, room, root):
                    problems.append(f"{where}:{number}: {problem}")
    return problems, count


# One wrong line each, and a word of what must be said about it. The files that it may include exist.
WRONG = [
    ("include/httpretry/http/headers.hpp", "#include <httpretry/retry/decide.hpp>", "which is retry"),
    ("include/httpretry/http/headers.hpp", "#include <curl/curl.h>", "public header"),
    ("include/httpretry/http/headers.hpp", '#include "url_parts.hpp"', "public header"),
    ("include/httpretry/http/headers.hpp", "#include <httpretry/http/nothing.hpp>", "does not exist"),
    ("include/httpretry/surprise.hpp", "", "add it to the table"),
    ("include/httpretry/utils/a.hpp", "", "add it to the table"),
    ("lib/utils/a.cpp", "", "add it to the table"),
    ("lib/httpretry/a.cpp", "", "add it to the table"),
    ("lib/flow/detail/a.cpp", "", "add it to the table"),
    ("include/httpretry/detail/a.hpp", "", "add it to the table"),
    ("include/httpretry/flow/other/a.hpp", "", "add it to the table"),
    ("include/httpretry/http/headers.hpp", "#include <httpretry/flow/detail/promise.hpp>",
     "which is flow"),
    ("include/httpretry/flow/detail/b.hpp", "#include <httpretry/middleware/builtin.hpp>",
     "which is middleware"),
    ("lib/retry/a.cpp", "#include <mutex>", "no threads"),
    ("lib/retry/a.cpp", "  # include  <random>", "no threads"),
    ("lib/retry/a.cpp", "auto t = std::chrono::steady_clock::now();", "reads no clock"),
    ("lib/retry/a.cpp", "#include <httpretry/flow/task.hpp>", "which is flow"),
    ("lib/retry/a.cpp", "#include <unistd.h>", "retry"),
    ("lib/curl/a.cpp", "#include <httpretry/retry/decide.hpp>", "which is retry"),
    ("lib/curl/a.cpp", '#include "lib/middleware/b.hpp"', "which is middleware"),
    ("lib/curl/a.cpp", "#include <lib/middleware/b.hpp>", "which is middleware"),
    ("lib/middleware/a.cpp", '#include "../curl/b.hpp"', "which is curl"),
    ("lib/middleware/a.cpp", "#include <nlohmann/json.hpp>", "from json only"),
    ("lib/middleware/a.cpp", "#include <spdlog/spdlog.h>", "from spdlog only"),
    ("lib/client/a.cpp", "#include <zlib.h>", "from curl and testing only"),
    ("lib/curl/a.cpp", "#include <idn2.h>", "from policy only"),
    ("lib/curl/a.cpp", "#include <openssl/ssl.h>", "from testing only"),
    ("lib/client/a.cpp", "#include <httpretry/testing/testing.hpp>", "which is testing"),
    ("lib/flow/a.cpp", "#include <httpretry/middleware/builtin.hpp>", "which is middleware"),
    ("lib/client/a.cpp", "#include <httpretry/httpretry.hpp>", "which is httpretry"),
    ("lib/client/a.cpp", "#include <uv.h>", "unknown"),
    ("lib/client/a.cpp", "#include <hiredis/async.h>", "from fleet only"),
    ("apps/a.cpp", "#include <nlohmann/json.hpp>", "from json only"),
]
RIGHT = [
    ("lib/retry/a.cpp", "#include <chrono>\n#include <atomic>\n// ::now( and #include <mutex>\n"
                        "/*\n#include <random>\n*/\n#include <httpretry/http/headers.hpp>"),
    ("lib/curl/a.cpp", '#include "b.hpp"\n#include <curl/curl.h>\n#include <sys/socket.h>'),
    ("lib/client/a.cpp", '#include "lib/curl/b.hpp"\n#include "middleware/b.hpp"\n#include <thread>'),
    ("lib/spdlog/a.cpp", "#include <httpretry/flow/task.hpp>\n#include <spdlog/spdlog.h>"),
    ("apps/a.cpp", "#include <httpretry/testing/testing.hpp>\n#include <httpretry/httpretry.hpp>"),
    ("include/httpretry/flow/task.hpp", "#include <httpretry/flow/detail/promise.hpp>"),
    ("include/httpretry/flow/detail/b.hpp", "#include <httpretry/http/headers.hpp>"),
    ("include/httpretry/testing/testing.hpp", "#include <httpretry/flow/detail/promise.hpp>"),
    ("lib/curl/a.cpp", "#include <httpretry/flow/detail/promise.hpp>"),
]


def problems_of(file, text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        existing = ["include/httpretry/" + name + ".hpp" for name in
                    ("http/headers", "retry/decide", "flow/task", "flow/detail/promise", "middleware/builtin",
                     "testing/testing", "httpretry")]
        for name in existing + ["lib/curl/b.hpp", "lib/middleware/b.hpp", file]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        (root / file).write_text(text + "\n")
        return check(root)[0]


def self_test():
    failures = []
    for file, text, word in WRONG:
        found = problems_of(file, text)
        if len(found) != 1 or word not in found[0]:
            failures.append(f"{file}: {text!r}: wanted one line with {word!r}, got {found}")
    for file, text in RIGHT:
        if found := problems_of(file, text):
            failures.append(f"{file}: {text!r}: nothing is wrong, got {found}")
    print("\n".join(failures) or f"{len(WRONG)} wrong lines found, {len(RIGHT)} files left alone")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:]:
        print(f"usage: {sys.argv[0]} [--self-test]", file=sys.stderr)
        return 2
    problems, count = check(ROOT)
    if count == 0:
        problems = [f"no sources under {ROOT}"]
    print("\n".join(problems) or f"{count} files: every include is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
