#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the formatter and the compilers do not see: the licence line, functions that are too long
to read, and calls that a library must not make."""

import re

from sources import c_files, code_only, functions, read, report

MAX_LINES = 120
# In src/ only. Unbounded copies; what starts a shell or duplicates the process; what decides over
# the host process or writes to its stdout.
BANNED = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|alloca|system|popen|fork|vfork|abort|exit|"
    r"_exit|printf|vprintf|puts|putchar|tmpnam|tempnam|mktemp|dlmopen)\s*\("
)
STDOUT = re.compile(r"\b(stdout)\b")


def main():
    problems = []
    for path in c_files("include", "src", "cli", "bench", "examples", "tests"):
        text = read(path)
        if "SPDX-License-Identifier: MIT" not in text.split("\n", 1)[0]:
            problems.append(f"{path}:1: the first line is not the SPDX line")
        code = code_only(text)
        for name, _, first, last in functions(code):
            if last - first >= MAX_LINES:
                problems.append(f"{path}:{first}: {name} has {last - first + 1} lines")
        if path.parts[0] == "src":
            for number, line in enumerate(code.split("\n"), 1):
                for pattern in (BANNED, STDOUT):
                    match = pattern.search(line)
                    if match:
                        problems.append(f"{path}:{number}: {match.group(1)} has no place in src/")
    report(problems)


main()
