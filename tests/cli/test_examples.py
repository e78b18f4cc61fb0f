# SPDX-License-Identifier: MIT
"""The built examples, and their kernel files with the command. DJ_EXAMPLES_DIR holds the
programs; default: examples/ beside the command."""
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import SOURCE_DIR, command_path

EXAMPLES = SOURCE_DIR / "examples"
PROGRAMS = pathlib.Path(os.environ.get("DJ_EXAMPLES_DIR",
                                       pathlib.Path(command_path()).parent / "examples"))


def run_program(deepjit, path, *args, status=0):
    done = subprocess.run([path, *map(str, args)], env=deepjit.env, cwd=deepjit.dir,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=200)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout.decode(), done.stderr.decode()


def example(deepjit, name, *args, **options):
    path = PROGRAMS / name
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return run_program(deepjit, path, *args, **options)


def test_hello(deepjit):
    assert example(deepjit, "hello") == ("y[0] = 1, y[999] = 1999\n", "")


def test_matmul(deepjit):
    for _ in range(2):  # compiled, then found
        out, err = example(deepjit, "matmul")
        assert err == "" and out.count("right\n") == 4 and "WRONG" not in out
    assert len(list((deepjit.cache / "cache").iterdir())) == 4


def test_reduce(deepjit):
    out, err = example(deepjit, "reduce")
    assert (out, err) == ("sum of 1000000 numbers: 999996, expected 999996\n", "")


def read_ppm(path):
    magic, size, _, pixels = path.read_bytes().split(b"\n", 3)
    assert magic == b"P6"
    width, height = map(int, size.split())
    assert len(pixels) == 3 * width * height
    return width, height, pixels


def roughness(image):
    width, _, pixels = image
    return sum(abs(pixels[i] - pixels[i - 3]) for i in range(3 * width, len(pixels)))


def test_image_filter(deepjit):
    picture = EXAMPLES / "image_filter/input.ppm"
    original = read_ppm(picture)
    out, _ = example(deepjit, "image_filter")
    assert "192 x 128 pixels, right; written to filtered.ppm" in out
    sharp = read_ppm(deepjit.dir / "filtered.ppm")
    example(deepjit, "image_filter", "blur", picture, "blurred.ppm")
    blurred = read_ppm(deepjit.dir / "blurred.ppm")
    assert original[:2] == sharp[:2] == blurred[:2]
    assert roughness(blurred) < roughness(original) < roughness(sharp)


@pytest.mark.parametrize("content", [b"", b"P5\n1 1\n255\n\0", b"P6\n4 4\n255\n\0",
                                     b"P6\n99999999999 1\n255\n", b"P6\n# only a comment"])
def test_image_filter_refuses_other_files(deepjit, content):
    path = deepjit.write("bad.ppm", content)
    _, err = example(deepjit, "image_filter", "blur", path, status=1)
    assert err.startswith(str(path))


def test_embedding(deepjit):
    """The project as a user would build it, with the source tree as a sub-directory."""
    if shutil.which("cmake") is None:
        pytest.skip("no cmake here")
    build = deepjit.dir / "build"
    run_program(deepjit, "cmake", "-S", EXAMPLES / "embedding", "-B", build,
                f"-DDEEPJIT_SOURCE_DIR={SOURCE_DIR}")
    run_program(deepjit, "cmake", "--build", build, "-j2")
    own = deepjit.dir / "own"
    deepjit.env["EMBEDDING_JIT_CACHE_DIR"] = str(own)
    assert run_program(deepjit, build / "embedding") == ("999 squared is 998001\n", "")
    assert [path.name.split(".")[0] for path in (own / "cache").iterdir()] == ["squares"]
    assert not deepjit.cache.exists()


def test_kernel_files_with_the_command(deepjit):
    out, _ = deepjit("run", EXAMPLES / "reduce/kernels/block_sum.c", "--grid", "4", "--block",
                     "256", "f32[4]", "f32[1000]=1", "1000")
    assert "mean 250 first 256 256 256 232\n" in out
    out, _ = deepjit("run", EXAMPLES / "matmul/kernels/tiled_matmul.c", "--flag=-DTILE_M=4",
                     "--flag=-DTILE_N=4", "--flag=-DTILE_K=8", "--grid=2,2", "--block=4,4",
                     "f32[8,8]", "f32[8,8]=ones", "f32[8,8]=2", "8")
    assert "min 16 max 16 mean 16" in out
