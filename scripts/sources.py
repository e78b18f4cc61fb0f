# SPDX-License-Identifier: MIT
"""What the check scripts share: finding C files and looking at code without its comments."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)


def c_files(*folders):
    """The .c and .h files below the folders, sorted, relative to the root."""
    found = []
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".c", ".h"):
                found.append(path.relative_to(ROOT))
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def code_only(text):
    """Blanks comments and the insides of literals; line numbers stay right."""

    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] * 2
        return " " + "\n" * token.count("\n")

    return _TOKEN.sub(blank, text)


def functions(code):
    """Yields (name, is_static, first line, last line) of each function definition.

    Relies on clang-format's layout: a definition starts in column 0, and so do the braces of its
    body.
    """
    lines = code.split("\n")
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            head = []
            for above in reversed(lines[: number - 1]):
                if not above.strip() or above[0] in "}#;" or above.rstrip().endswith(";"):
                    break
                head.insert(0, above)
            start = (" ".join(head), number - len(head))
        elif line.startswith("}") and start:
            head, first = start
            start = None
            name = re.search(r"\b(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head))
            if name:
                yield name.group(1), head.startswith("static"), first, number


def report(problems):
    """Prints the problems and ends the program: 0 if there are none."""
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
