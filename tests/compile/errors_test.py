#!/usr/bin/env python3
"""Mistakes that must not compile, and the sentence that each gives.

    errors_test.py COMPILER INCLUDE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile

START = """
#include <httpretry/httpretry.hpp>
using namespace httpretry;
using namespace std::chrono_literals;
"""
BY_VALUE = ("this function may be a coroutine: take its parameters by value, and a string instead of "
            "a string_view, because what they refer to is gone after its first co_await; only Call& "
            "may be a reference")

NEEDS_CPP20 = '"httpretry needs C++20: compile with -std=c++20"'

# What is wrong, the code, and a part of the error. Without one, the code is right.
CASES = [
    ("what one writes first",
     """Headers h{{"A", "b"}};
        void f(Client& c) { for (auto& [name, value] : h) static_cast<void>(name == value);
          static_cast<void>(c.get("http://x/", {{"Accept", "application/json"}}));
          static_cast<void>(c.post("http://x/", "{}", "application/json")); }
        auto chain = {timeout(0.5s), retry(PolicySet::load("p.json")),
                      retry(RetryPolicy::standard({.max_attempts = 5}))};""", None),
    ("a backoff with parameters",
     "void f(RetryPolicy& p) { p.backoff = Backoff::exponential({.initial = 50ms}); }", None),
    ("a backoff that forgets max_interval",
     "void f(RetryPolicy& p) { p.backoff = {.initial = 50ms}; }", "no match|no viable"),
    ("a budget that forgets the other amounts",
     "void f(RetryPolicy& p) { p.budget = {.capacity = 1}; }", "no match|no viable"),
    ("a middleware",
     """auto m = middleware("m", [](Request r, Call& c, Next n) -> Task<Outcome> {
          Outcome o = co_await n(std::move(r), c); co_return o; });""", None),
    ("a middleware that keeps a reference",
     """auto m = middleware("m", [](const Request& r, Call& c, Next n) -> Task<Outcome> {
          Outcome o = co_await n(r, c); co_return o; });""", BY_VALUE),
    ("a sink that keeps a view",
     """auto s = pass_to([](std::string_view, Call&) -> Task<bool> { co_return true; });""",
     BY_VALUE),
    ("a sink that keeps a reference",
     """auto s = pass_to([](const std::string&, Call&) -> Task<bool> { co_return true; });""",
     BY_VALUE),
]


class Compiler:
    def __init__(self, command, include, folder):
        self.command, self.include = command, include
        # Each case includes it in its compiled form, except the one that is not in C++20.
        self.start = pathlib.Path(folder, "start.hpp")
        self.start.write_text(START)
        self.run("c++20", "-x", "c++-header", str(self.start), "-o", f"{self.start}.gch").check_returncode()

    def run(self, standard, *arguments, code=""):
        return subprocess.run([self.command, f"-std={standard}", "-I", self.include, *arguments],
                              input=code, capture_output=True, text=True)

    def compile(self, code):
        return self.run("c++20", "-fsyntax-only", "-include", str(self.start), "-x", "c++", "-", code=code)

    def compile_as_cpp17(self):
        return self.run("c++17", "-fsyntax-only", "-x", "c++", "-", code=START)


def main():
    command, include = sys.argv[1:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(command, include, folder)
        results = [(what, error, compiler.compile(code)) for what, code, error in CASES]
        results.append(("C++17", NEEDS_CPP20, compiler.compile_as_cpp17()))
    for what, error, ran in results:
        if error is None:
            good = ran.returncode == 0
        else:
            first = next((line for line in ran.stderr.splitlines() if "error:" in line), "")
            shown = first if what == "C++17" else ran.stderr
            good = ran.returncode != 0 and any(part in shown for part in error.split("|"))
        if not good:
            failed += 1
            expected = "no error" if error is None else f"an error with {error!r}"
            print(f"{what}: expected {expected}, found:\n{ran.stderr or 'none'}")
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
