#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-docs.py <deepjit>

docs/environment.md is what `deepjit env --markdown` prints; relative links and their anchors lead
somewhere; settings that texts name exist in the option table; every public function has a comment
above it, or above the paragraph of declarations that it stands in.
"""

import re
import subprocess
import sys
from pathlib import Path

from sources import ROOT, c_files, code_only, read, report

GENERATED = ROOT / "docs" / "environment.md"
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
SETTING = re.compile(r"\bJIT_[A-Z_]*[A-Z](?!\w|_?\*)")
OPTION_ROW = re.compile(r'^OPTION\(\w+, \w+, \w+, "(JIT_\w+)"', re.MULTILINE)
# Settings of the original that have no counterpart, and the page that says so.
ORIGINAL_PAGE = "docs/differences.md"
ORIGINAL_TABLE = re.compile(r"^## Settings that are gone$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def texts():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "docs/*.1"],
        check=True, capture_output=True, text=True, cwd=ROOT,
    ).stdout
    return [Path(name) for name in listed.splitlines() if (ROOT / name).exists()]


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def check_links(path, text, problems):
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (ROOT / path.parent / name) if name else ROOT / path
        if not file.exists():
            problems.append(f"{path}: {target} leads nowhere")
        elif anchor and anchor not in map(slug, HEADING.findall(FENCE.sub("", file.read_text()))):
            problems.append(f"{path}: {target}: no such heading")


def check_settings(path, text, known, problems):
    if path.as_posix() == ORIGINAL_PAGE:
        text = ORIGINAL_TABLE.sub("", text)
    for name in sorted(set(SETTING.findall(text)) - known):
        problems.append(f"{path}: {name} is not in src/core/options.def")


def check_comments(path, text, problems):
    """Comments keep their places: a paragraph without one fails each of its functions."""
    lines = text.split("\n")
    code = code_only(text).split("\n")
    for number, line in enumerate(code):
        if not line.startswith("DJ_API"):
            continue
        above = number - 1
        while above >= 0 and lines[above].strip() and "*/" not in lines[above]:
            above -= 1
        if above < 0 or "*/" not in lines[above] or code[above].strip():
            problems.append(f"{path}:{number + 1}: no comment above: {lines[number].strip()}")


def check_generated(command, problems):
    page = subprocess.run(
        [command, "env", "--markdown"], check=True, capture_output=True, text=True
    ).stdout
    if GENERATED.read_text() != page:
        problems.append("docs/environment.md is not what the option table says: run make docs")


def main():
    problems = []
    check_generated(sys.argv[1], problems)
    known = set(OPTION_ROW.findall(read(Path("src/core/options.def"))))
    for path in texts():
        text = (ROOT / path).read_text()
        check_settings(path, text, known, problems)
        if path.suffix == ".md":
            check_links(path, text, problems)
    for path in c_files("include"):
        check_comments(path, read(path), problems)
    report(problems)


main()
