# SPDX-License-Identifier: MIT
"""What the tests of the command share. DEEPJIT holds the command's path."""
import os
import pathlib
import shutil
import subprocess

import pytest

SOURCE_DIR = pathlib.Path(__file__).resolve().parents[2]

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc")
# A driver that checks every call and runs nothing.
STANDIN_CUDA = pathlib.Path(os.environ.get("DJ_TEST_BIN_DIR", SOURCE_DIR / "build/tests/bin"),
                            "standin_cuda/libcuda.so.1")

SCALE = """\
#include <deepjit/kernel.h>
DJ_KERNEL(scale, (float *, out), (const float *, in), (float, a), (int, n))
{
    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
    if (i < n) {
        out[i] = a * in[i];
    }
}
"""


def command_path():
    path = os.environ.get("DEEPJIT", str(SOURCE_DIR / "build" / "deepjit"))
    assert os.access(path, os.X_OK), f"{path} is not the command: set DEEPJIT"
    return path


class Command:
    """The command in a clean environment, with its own cache and temporary directory."""

    def __init__(self, directory):
        self.dir = directory
        self.cache = directory / "cache root"
        self.tmp = directory / "tmp"
        self.tmp.mkdir()
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith("DJ_") and name != "CC"}
        # The same on a machine with a GPU as on one without.
        self.env.update(DJ_JIT_CACHE_DIR=str(self.cache), TMPDIR=str(self.tmp),
                        DJ_JIT_CUDA_LIBRARY="/nonexistent/libcuda.so",
                        HOME=str(directory / "home"))

    def start(self, *args, env=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("cwd", self.dir)
        return subprocess.Popen([command_path(), *map(str, args)],
                                env={**self.env, **(env or {})}, **options)

    def __call__(self, *args, status=0, stdin=b"", **options):
        """Runs it to the end; checks the exit status; returns (stdout, stderr) as text."""
        process = self.start(*args, **options)
        if isinstance(stdin, str):
            stdin = stdin.encode()
        out, err = process.communicate(stdin, timeout=200)
        out, err = (stream.decode("utf-8", "surrogateescape") if stream is not None else ""
                    for stream in (out, err))
        assert process.returncode == status, f"{args}: {process.returncode}\n{out}\n{err}"
        return out, err

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def build(self, *args, **options):
        """deepjit build; returns the entry's directory."""
        out, err = self("build", *args, **options)
        assert err == "" and out.endswith("\n") and out.count("\n") == 1
        return pathlib.Path(out[:-1])


@pytest.fixture
def deepjit(tmp_path):
    return Command(tmp_path)


@pytest.fixture
def scale(deepjit):
    return deepjit.write("scale.c", SCALE)


def golden(name, text):
    """Compares with tests/golden/cli/<name>; UPDATE_GOLDEN=1 writes it instead."""
    path = SOURCE_DIR / "tests" / "golden" / "cli" / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path} differs; UPDATE_GOLDEN=1 rewrites it"
