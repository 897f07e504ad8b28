#!/usr/bin/env python3
"""Compiles each public header alone, and all of them together in C++20 and C++23.

    headers_test.py COMPILER INCLUDE_DIR

g++ compiles the single headers in C++20, clang in C++23, so that the two builds of CI check both
standards."""
import pathlib
import subprocess
import sys

CPP20, CPP23 = "c++20", "c++2b"


def compiles(compiler, standard, include, header):
    ran = subprocess.run([compiler, f"-std={standard}", "-fsyntax-only", "-I", include, "-x", "c++", "-"],
                         input=f"#include <{header}>\n", capture_output=True, text=True)
    if ran.returncode != 0:
        print(f"{header} in {standard}:\n{ran.stderr}")
    return ran.returncode == 0


def main():
    compiler, include = sys.argv[1:]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    alone = CPP23 if "clang" in version else CPP20
    headers = sorted(str(path.relative_to(include)) for path in pathlib.Path(include).rglob("*.hpp"))
    every = "httpretry/httpretry.hpp"
    pairs = [(alone, header) for header in headers if header != every]
    pairs += [(CPP20, every), (CPP23, every)]
    good = [compiles(compiler, standard, include, header) for standard, header in pairs]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) and len(headers) > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
