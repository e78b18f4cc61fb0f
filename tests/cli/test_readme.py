# SPDX-License-Identifier: MIT
"""What README.md shows works: the C program prints what the text says, the commands succeed."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(os.environ["DJ_TEST_SOURCE_DIR"])
DEEPJIT = Path(os.environ["DEEPJIT"])
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(heading, language):
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = [text for kind, text in BLOCK.findall(section) if kind == language]
    assert found, f"README.md has no {language} block under {heading}"
    return found


@pytest.fixture
def run(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("DJ_JIT_")] + ["CC"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DJ_JIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{DEEPJIT.parent}:{os.environ['PATH']}")

    def run_in_tmp(*argv):
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run_in_tmp


def link_flags():
    """The library as it was built, sanitizers included."""
    build = DEEPJIT.parent
    cache = (build / "CMakeCache.txt").read_text()
    sanitize = re.search(r"^DEEPJIT_SANITIZE:\w+=(\S+)$", cache, re.MULTILINE)
    sodium = subprocess.run(
        ["pkg-config", "--libs", "libsodium"], check=True, capture_output=True, text=True
    ).stdout
    flags = ["-DDJ_STATIC", f"-I{ROOT}/include", str(build / "libdeepjit.a"), "-pthread", "-ldl"]
    return flags + shlex.split(sodium) + ([f"-fsanitize={sanitize[1]}"] if sanitize else [])


def compiler():
    cache = (DEEPJIT.parent / "CMakeCache.txt").read_text()
    return re.search(r"^CMAKE_C_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]


@pytest.mark.parametrize("standard", ["c11", "c17"])
def test_quick_start(run, tmp_path, standard):
    program = blocks("From C", "c")[0]
    assert len(program.splitlines()) <= 40
    promised = re.search(r"It prints `([^`]+)`", README)[1]
    (tmp_path / "quick.c").write_text(program)
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    run(compiler(), f"-std={standard}", *warnings, "quick.c", *link_flags(), "-o", "quick")
    assert run("./quick") == promised + "\n"
    assert run("./quick") == promised + "\n"  # from the cache


def test_commands(run, tmp_path):
    (tmp_path / "scale.c").write_text(blocks("From the command line", "c")[0])
    lines = blocks("From the command line", "sh")[0].splitlines()
    output = [run(*shlex.split(line, comments=True)) for line in lines]
    assert "first 0 2 4 6" in output[0]  # iota times 2
    assert Path(output[1].strip()).is_dir()
    assert "\nkey " in output[2]
    assert output[3].count("scale.") == 2  # with and without -DTILE
