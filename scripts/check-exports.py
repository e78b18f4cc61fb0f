#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-exports.py [--update] <libdeepjit.so>

What the shared library exports, what the public headers declare with DJ_API, and exports.txt are
the same names. exports.txt is there so that a change of the ABI is seen in review; --update
rewrites it from the headers.
"""

import re
import subprocess
import sys

from sources import ROOT, c_files, code_only, read, report

LIST = ROOT / "scripts" / "exports.txt"
DECLARED = re.compile(r"^DJ_API\b[^;{]*?\b(\w+)\s*\(", re.MULTILINE)


def exported(library):
    table = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library],
        check=True, capture_output=True, text=True,
    ).stdout
    return {line.split()[0].split("@")[0] for line in table.splitlines()}


def main():
    arguments = sys.argv[1:]
    declared = set()
    for path in c_files("include"):
        declared.update(DECLARED.findall(code_only(read(path))))
    if "--update" in arguments:
        arguments.remove("--update")
        LIST.write_text("".join(name + "\n" for name in sorted(declared)))
    listed = set(LIST.read_text().split())
    problems = [f"{name}: in the headers, not in exports.txt" for name in declared - listed]
    problems += [f"{name}: in exports.txt, not in the headers" for name in listed - declared]
    problems += [f"{name}: not a dj_ name" for name in declared if not name.startswith("dj_")]
    for library in arguments:
        names = exported(library)
        problems += [f"{name}: exported, not declared" for name in names - declared]
        problems += [f"{name}: declared, not exported" for name in declared - names]
    report(sorted(problems))


main()
