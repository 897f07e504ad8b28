#!/usr/bin/env python3
"""Checks which module uses which, from the #include lines of include/, lib/ and apps/, that each module defines
what its headers declare, and that private headers export names in namespaces `detail` only.

A module is a folder: lib/core/MODULE is part of the library httpretry::httpretry, lib/extras/MODULE is a component
of its own, and include/httpretry/MODULE has the public headers of either, with those that templates need in
`detail`. lib/README.md says what each module is for.
Exit status 0: no problem; 1: the problems are listed, one a line."""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Which other modules a module of the core may include; no two may include each other.
CORE = {
    "base": "",
    "log": "",
    "http": "base",
    "retry": "base http",
    "json": "base http retry",
    "flow": "base http log",
    "chain": "base http retry log flow",
    "body": "base http retry flow chain",
    "policy": "base http retry json log",
    "guard": "base http retry flow chain body policy",
    "middleware": "base http retry log flow chain body policy guard",
    # The transport knows no policy: what may be sent again is decided above it.
    "curl": "base http flow chain body",
    "client": "base http retry json flow chain body policy guard middleware curl",
}
# Which modules an extra may include. Of the core, an extra sees the public headers, base, and what FOR_EXTRAS lists.
EXTRAS = {
    "spdlog": "log",
    "telemetry": "base http retry chain policy middleware curl client",
    "testing": "base http retry flow chain body policy",
    "simulate": "base http json flow chain policy guard middleware",
    "paging": "base http json retry chain client",
    "oauth2": "base http json chain policy middleware client",
    "compression": "base http curl",
    "fleet": "base http retry log chain guard",
    "batch": "base http retry json flow chain body policy middleware client",
    "queue": "base http chain batch fleet",
}
# The private headers of the core that extras may include, and why.
FOR_EXTRAS = {
    "chain/detail/call_state.hpp": "simulate and batch begin calls, and watch how far their sends are",
    "chain/detail/attempt_headers.hpp": "the program shows the headers of a request as they are sent",
    "flow/detail/run_queue.hpp": "testing and simulate have schedulers of their own, in virtual time",
    "http/detail/link.hpp": "paging needs to know why a link cannot be followed",
    "json/detail/json.hpp": "batch and simulate read and write JSON, oauth2 and paging read it",
    "client/detail/report.hpp": "batch writes a report as part of each result",
    "policy/detail/keys.hpp": "testing, simulate and oauth2 read values as a policy file has them",
    "policy/detail/warnings.hpp": "the program shows the warnings about the policy of a request",
    "body/detail/delivery.hpp": "the scripted transport of testing gives bodies to sinks",
    "guard/detail/limits.hpp": "fleet decides by the same state machines",
    "guard/detail/shared_budget.hpp": "fleet falls back to a budget of its process",
}
# The public headers that include another library. They may use the whole core, and no header includes them.
BRIDGES = {"asio.hpp", "json/nlohmann.hpp"}
# What is declared in one module and defined in another: these parts need a library that only the other sees.
DEFINED_ELSEWHERE = {("http", "curl"): {"Url"}, ("http", "json"): {"Response"}}

MAY_INCLUDE = {module: set(others.split()) | {module} for module, others in (CORE | EXTRAS).items()}
MAY_INCLUDE["apps"] = set(CORE) | set(EXTRAS) | {"apps"}
# The headers outside of the modules: the macro that every module uses, and all public headers of the core.
OUTSIDE = {"export", "httpretry"}
MAY_INCLUDE["httpretry"] = set(CORE)
for modules in MAY_INCLUDE.values():
    modules.add("export")
MAY_INCLUDE["export"] = set()
MAY_INCLUDE["apps"].add("httpretry")

MAY_INCLUDE["bridge"] = set(CORE) | {"export"}
MAY_INCLUDE["apps"].add("bridge")

# The modules that see each library.
LIBRARIES = {
    "curl/": {"curl"},
    "nlohmann/": {"json", "bridge"},
    "spdlog/": {"spdlog"},
    "fmt/": {"spdlog"},
    "zlib.h": {"curl", "testing"},
    "idn2.h": {"policy", "curl"},
    "brotli/": {"compression"},
    "zstd.h": {"compression"},
    "openssl/": {"apps", "testing"},
    "hiredis/": {"fleet"},
    "sqlite3.h": {"batch"},
    "CLI/": {"apps"},
    "boost/": {"apps", "bridge"},
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

# The module `retry` is arithmetic: time and chance are handed to it.
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


def module_of(path, root):
    """The module of one of our files, or None where the tables do not say."""
    parts = list(path.relative_to(root).parts)
    if parts[0] == "apps":
        return "apps"
    if parts[0] == "include" and "/".join(parts[2:]) in BRIDGES:
        return "bridge"
    if len(parts) > 2 and parts[-2] == "detail":
        parts.pop(-2)
    if parts[0] == "include" and len(parts) == 3 and path.stem in OUTSIDE:
        return path.stem
    known = {("include", "httpretry"): CORE | EXTRAS, ("lib", "core"): CORE, ("lib", "extras"): EXTRAS}
    return parts[2] if len(parts) == 4 and parts[2] in known.get(tuple(parts[:2]), {}) else None


def find_ours(path, name, root):
    for folder in (path.parent, root / "include", root, root / "apps/httpretry"):
        found = (folder / name).resolve()
        if found.is_file() and root in found.parents:
            return found
    return None


def check_ours(module, target, name, root):
    used = module_of(target, root)
    if used is None:
        return f"{name} is in no module: add it to the tables in tests/layers_test.py"
    if used not in MAY_INCLUDE[module]:
        return f"{module} may not include {name}, which is {used}"
    private = target.relative_to(root).parts[:2] == ("lib", "core")
    if private and used != "base" and module not in CORE:
        if target.relative_to(root / "lib/core").as_posix() not in FOR_EXTRAS:
            return f"{module} sees no private header of {used} but those that FOR_EXTRAS lists"
    return None


def check_foreign(module, public, name):
    if module == "retry" and name in NOT_IN_RETRY:
        return f"retry may not include <{name}>: no threads, no clocks, no chance, no files"
    if name in STANDARD:
        return None
    if public and module != "bridge":
        return f"a public header includes the standard library and <httpretry/...> only, not <{name}>"
    for prefix, modules in LIBRARIES.items():
        if name == prefix or (prefix.endswith("/") and name.startswith(prefix)):
            where = " and ".join(sorted(modules))
            return None if module in modules else f"<{name}> is seen from {where} only, not from {module}"
    if SYSTEM.match(name):
        return f"retry may not include <{name}>" if module == "retry" else None
    return f"<{name}> is unknown: add it to the tables in tests/layers_test.py"


def check_line(path, line, module, root):
    """What is wrong with one line, or None."""
    if module == "retry" and READS_A_CLOCK.search(line):
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
        return check_ours(module, target, name, root)
    if not quoted and not name.startswith("lib/"):
        return check_foreign(module, public, name)
    if public:
        return f"a public header includes <httpretry/...> only, not {name}"
    target = find_ours(path, name, root)
    return check_ours(module, target, name, root) if target else f"{name} does not exist"


# What begins in the first column of a source and defines a function of a class: "Error Url::f(", "Url::Url(".
MEMBER = re.compile(r"^(?=\S)(?:[\w:<>,&*\[\] ]+[ &*])?(\w+)::(?:[\w:~]|operator\W{1,2})+\(")
CLASS = re.compile(r"^\s*(?:class|struct)\s+(?:\[\[\w+\]\]\s+)?(?:HTTPRETRY_API\s+)?([\w:]+)(?:\s+final)?\s*[:{]", re.M)


def check_definitions(root):
    """The functions that one module declares in a header and another one defines."""
    declared = {}
    for folder in ("include", "lib"):
        for path in (root / folder).rglob("*.hpp"):
            for name in CLASS.findall(without_comments(path.read_text())):
                declared.setdefault(name.split("::")[-1], set()).add(module_of(path, root))
    problems = []
    for path in sorted((root / "lib").rglob("*.cpp")):
        module = module_of(path, root)
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            match = MEMBER.match(line)
            owners = declared.get(match[1], {module}) if match else {module}
            if module in owners or any(match[1] in DEFINED_ELSEWHERE.get((owner, module), ()) for owner in owners):
                continue
            problems.append(f"{path.relative_to(root)}:{number}: {module} defines a function of {match[1]}, which "
                            f"{' and '.join(sorted(owners))} declares")
    return problems


# The braces of a header, the namespaces among them, and what it exports. Texts may contain braces.
BRACE = re.compile(r"""\bnamespace\s+([\w:]*)\s*\{|[{}]|\bHTTPRETRY_API\b|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""")


def check_exports(text):
    """The numbers of the lines that export a name outside of every namespace `detail`."""
    around, lines = [], []
    for match in BRACE.finditer(text):
        if match[0].endswith("{"):
            around.append(match[1] or "")
        elif match[0] == "}":
            del around[-1:]
        elif match[0] == "HTTPRETRY_API" and "detail" not in "::".join(around).split("::"):
            lines.append(text.count("\n", 0, match.start()) + 1)
    return lines


def check(root):
    """Every offence as "file:line: what", and the number of files looked at."""
    problems, count = [], 0
    for folder in ("include", "lib", "apps"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            count += 1
            where = path.relative_to(root)
            module = module_of(path, root)
            if module is None:
                problems.append(f"{where}:1: is in no module: add it to the tables in "
                                "tests/layers_test.py")
                continue
            text = without_comments(path.read_text())
            for number, line in enumerate(text.splitlines(), 1):
                if problem := check_line(path, line, module, root):
                    problems.append(f"{where}:{number}: {problem}")
            for number in check_exports(text) if folder == "lib" and path.suffix == ".hpp" else ():
                problems.append(f"{where}:{number}: only a public header or a namespace `detail` exports a name: "
                                "move it there, or remove HTTPRETRY_API")
    return problems + check_definitions(root), count


# One wrong line each, and a word of what must be said about it. The files that it may include exist.
WRONG = [
    ("include/httpretry/http/headers.hpp", "#include <httpretry/retry/decide.hpp>", "which is retry"),
    ("include/httpretry/http/headers.hpp", "#include <curl/curl.h>", "public header"),
    ("include/httpretry/http/headers.hpp", '#include "url_parts.hpp"', "public header"),
    ("include/httpretry/http/headers.hpp", "#include <httpretry/http/nothing.hpp>", "does not exist"),
    ("include/httpretry/surprise.hpp", "", "add it to the table"),
    ("include/httpretry/utils/a.hpp", "", "add it to the table"),
    ("lib/core/utils/a.cpp", "", "add it to the table"),
    ("lib/core/spdlog/a.cpp", "", "add it to the table"),
    ("lib/curl/a.cpp", "", "add it to the table"),
    ("include/httpretry/detail/a.hpp", "", "add it to the table"),
    ("include/httpretry/flow/other/a.hpp", "", "add it to the table"),
    ("include/httpretry/http/headers.hpp", "#include <httpretry/flow/detail/promise.hpp>",
     "which is flow"),
    ("include/httpretry/flow/detail/b.hpp", "#include <httpretry/middleware/builtin.hpp>",
     "which is middleware"),
    ("lib/core/retry/a.cpp", "#include <mutex>", "no threads"),
    ("lib/core/retry/a.cpp", "  # include  <random>", "no threads"),
    ("lib/core/retry/a.cpp", "auto t = std::chrono::steady_clock::now();", "reads no clock"),
    ("lib/core/retry/a.cpp", "#include <httpretry/flow/task.hpp>", "which is flow"),
    ("lib/core/retry/a.cpp", "#include <unistd.h>", "retry"),
    ("lib/core/curl/a.cpp", "#include <httpretry/retry/decide.hpp>", "which is retry"),
    ("lib/core/curl/a.cpp", '#include "lib/core/middleware/b.hpp"', "which is middleware"),
    ("lib/core/curl/a.cpp", "#include <lib/core/middleware/b.hpp>", "which is middleware"),
    ("lib/core/middleware/a.cpp", '#include "../curl/b.hpp"', "which is curl"),
    ("lib/core/middleware/a.cpp", "#include <nlohmann/json.hpp>", "from bridge and json only"),
    ("lib/core/middleware/a.cpp", "#include <spdlog/spdlog.h>", "from spdlog only"),
    ("lib/core/client/a.cpp", "#include <zlib.h>", "from curl and testing only"),
    ("lib/core/client/a.cpp", "#include <idn2.h>", "from curl and policy only"),
    ("lib/core/curl/a.cpp", "#include <openssl/ssl.h>", "from apps and testing only"),
    ("lib/core/client/a.cpp", "#include <httpretry/testing/testing.hpp>", "which is testing"),
    ("lib/core/flow/a.cpp", "#include <httpretry/middleware/builtin.hpp>", "which is middleware"),
    ("lib/core/client/a.cpp", "#include <httpretry/httpretry.hpp>", "which is httpretry"),
    ("include/httpretry/client/a.hpp", "#include <httpretry/json/nlohmann.hpp>", "which is bridge"),
    ("include/httpretry/json/nlohmann.hpp", "#include <curl/curl.h>", "from curl only"),
    ("lib/core/client/a.cpp", "#include <boost/asio/post.hpp>", "from apps and bridge only"),
    ("lib/core/client/a.cpp", "#include <uv.h>", "unknown"),
    ("lib/core/client/a.cpp", "#include <hiredis/async.h>", "from fleet only"),
    ("lib/core/curl/a.cpp", "#include <zstd.h>", "from compression only"),
    ("apps/a.cpp", "#include <nlohmann/json.hpp>", "from bridge and json only"),
    ("lib/extras/fleet/a.cpp", '#include "lib/core/curl/b.hpp"', "which is curl"),
    ("lib/extras/batch/a.cpp", '#include "lib/core/middleware/b.hpp"', "FOR_EXTRAS"),
    ("lib/core/curl/a.cpp", "Headers::Headers() = default;", "which http declares"),
    ("lib/core/curl/a.cpp", "std::optional<int> Headers::get(int i) const {", "which http declares"),
    ("lib/core/flow/a.hpp", "namespace httpretry {\nclass HTTPRETRY_API A {};\n}", "a.hpp:2: only a public header"),
    ("lib/core/flow/a.hpp", "namespace httpretry {\nnamespace detail {\n}\nHTTPRETRY_API void f();\n}",
     "a.hpp:4: only a public header"),
    ("lib/extras/fleet/a.hpp", "namespace httpretry::details {\nstruct detail {\n  HTTPRETRY_API void f();\n};\n}",
     "a.hpp:3: only a public header"),
]
RIGHT = [
    ("lib/core/retry/a.cpp", "#include <chrono>\n#include <atomic>\n// ::now( and #include <mutex>\n"
                             "/*\n#include <random>\n*/\n#include <httpretry/http/headers.hpp>"),
    ("lib/core/curl/a.cpp", '#include "b.hpp"\n#include <curl/curl.h>\n#include <sys/socket.h>'),
    ("lib/core/client/a.cpp", '#include "lib/core/curl/b.hpp"\n#include <thread>'),
    ("lib/extras/spdlog/a.cpp", "#include <spdlog/spdlog.h>"),
    ("lib/extras/fleet/a.cpp", '#include "lib/core/base/b.hpp"\n#include <httpretry/http/headers.hpp>'),
    ("lib/extras/simulate/a.cpp", '#include "lib/core/flow/detail/run_queue.hpp"'),
    ("lib/core/http/a.cpp", "Headers::Headers() = default;"),
    ("lib/core/curl/a.cpp", "int Url::port() const {"),
    ("lib/core/flow/a.hpp", "namespace httpretry {  // HTTPRETRY_API {\nconst auto a = \"}\";\nconst char b = '}';\n"
                            "namespace detail::json {\nclass HTTPRETRY_API A {\n  HTTPRETRY_API void f() {}\n};\n}\n}"),
    ("lib/extras/batch/a.hpp", "namespace httpretry::batch::detail {\nstruct A {\n};\nextern HTTPRETRY_API int a;\n}"),
    ("include/httpretry/flow/a.hpp", "namespace httpretry {\nclass HTTPRETRY_API A {};\n}"),
    ("lib/core/curl/a.cpp", "  Headers::get(url);\nint Other::f() {\nHeaders made = f();"),
    ("apps/a.cpp", "#include <httpretry/testing/testing.hpp>\n#include <httpretry/httpretry.hpp>"),
    ("include/httpretry/flow/task.hpp", "#include <httpretry/flow/detail/promise.hpp>"),
    ("include/httpretry/flow/detail/b.hpp", "#include <httpretry/http/headers.hpp>"),
    ("include/httpretry/json/nlohmann.hpp", "#include <nlohmann/json.hpp>\n#include <httpretry/http/headers.hpp>"),
    ("include/httpretry/asio.hpp", "#include <boost/asio/post.hpp>\n#include <httpretry/http/headers.hpp>"),
    ("include/httpretry/testing/testing.hpp", "#include <httpretry/flow/detail/promise.hpp>"),
    ("lib/core/curl/a.cpp", "#include <httpretry/flow/detail/promise.hpp>"),
]


def problems_of(file, text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        existing = ["include/httpretry/" + name + ".hpp" for name in
                    ("http/headers", "retry/decide", "flow/task", "flow/detail/promise", "middleware/builtin",
                     "testing/testing", "json/nlohmann", "httpretry")]
        for name in existing + ["lib/core/base/b.hpp", "lib/core/curl/b.hpp", "lib/core/middleware/b.hpp",
                                "lib/core/flow/detail/run_queue.hpp", file]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        (root / "include/httpretry/http/headers.hpp").write_text("class Headers {\n};\nclass HTTPRETRY_API Url {\n};\n")
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
