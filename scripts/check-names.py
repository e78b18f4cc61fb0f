#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of files, and of static functions in src/ and cli/, are unique: a name in a backtrace, a
profile or a question leads to one place."""

from sources import c_files, code_only, functions, read, report


def main():
    problems = []
    files = {}
    statics = {}
    for path in c_files("include", "src", "cli", "bench", "examples", "tests"):
        if path.parts[:2] == ("tests", "consumers"):
            continue
        other = files.setdefault(path.name, path)
        if other != path:
            problems.append(f"{path}: {other} has the same name")
    for path in c_files("src", "cli"):
        for name, is_static, line, _ in functions(code_only(read(path))):
            if is_static:
                other = statics.setdefault(name, path)
                if other != path:
                    problems.append(f"{path}:{line}: {other} has a static {name} too")
    report(problems)


main()
