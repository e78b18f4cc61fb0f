#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Include edges go one way.

base knows nothing above it; cache, compile and backend know base and the public headers; core
knows all; the command, Python, examples, benches and conformance tests know public headers only;
one back end does not know another.
"""

import re

from sources import c_files, read, report

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Folder of the including file: folders below src/ that it may include from, besides its own.
LAYERS = {
    "src/base": [],
    "src/cache": ["base"],
    "src/compile": ["base"],
    "src/backend": ["base"],
    "src/core": ["base", "cache", "compile", "backend"],
}
PUBLIC_ONLY = ["cli", "python", "bench", "examples", "tests/conformance"]


def allowed(path, kind, name):
    folder = path.parent.as_posix()
    if folder.startswith("include/"):
        return name.startswith("deepjit/") if kind == "<" and "/" in name else kind == "<"
    for outside in PUBLIC_ONLY:
        if folder == outside or folder.startswith(outside + "/"):
            return kind == "<" or "/" not in name or name.startswith("../common/")
    if kind == "<":
        # base may use the vocabulary of base.h, and nothing else of the public API.
        return not (
            folder == "src/base" and name.startswith("deepjit/") and name != "deepjit/base.h"
        )
    parts = folder.split("/")
    layer = "/".join(parts[:2])
    target = name.split("/")
    if target[0] not in LAYERS[layer] + [parts[1]]:
        return False
    if layer == "src/backend" and target[0] == "backend" and len(target) > 2:
        return len(parts) == 2 or target[1] == parts[2]
    return True


def main():
    problems = []
    for path in c_files("include", "src", *PUBLIC_ONLY):
        text = read(path)
        for match in INCLUDE.finditer(text):
            if not allowed(path, *match.groups()):
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line}: must not include {match.group(2)}")
    report(problems)


main()
