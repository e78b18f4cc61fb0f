# SPDX-License-Identifier: MIT
"""deepjit inspect: what it shows, what it takes, what it says of files that are no binaries.
The binaries are those that the fuzzer starts from."""
import json
import shutil

import pytest
from conftest import SOURCE_DIR, golden

CORPUS = SOURCE_DIR / "tests" / "fuzz" / "corpus" / "fuzz_cubin"


@pytest.fixture
def cuda(deepjit):
    out, _ = deepjit("version", "--json")
    if "cuda" not in json.dumps(json.loads(out)["backends"]):
        pytest.skip("this build has no cuda back end")
    return deepjit


def cubin(deepjit, source, name="x.cubin"):
    path = deepjit.dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(CORPUS / source, path)
    return path


def test_text(cuda):
    cubin(cuda, "sm90a", "one.cubin")
    cubin(cuda, "sm80_old", "two.cubin")
    out, err = cuda("inspect", "one.cubin", "two.cubin")
    assert err == ""
    golden("inspect.txt", out)


def test_json(cuda):
    path = cubin(cuda, "sm90a")
    out, err = cuda("inspect", "--json", path)
    assert err == ""
    assert json.loads(out) == [{
        "path": str(path), "backend": "cuda", "arch": "90a",
        "kernels": [{
            "name": "scale", "registers": 16, "shared_bytes": 512, "local_bytes": 40,
            "max_threads": 256, "cluster": [2, 1, 1],
            "params": [{"name": "", "type": "", "offset": offset, "size": size, "align": align}
                       for offset, size, align in ((0, 8, 8), (8, 4, 4), (48, 128, 64),
                                                   (176, 1, 1))]}]}]


def test_what_is_unknown_is_null(cuda):
    out, _ = cuda("inspect", "--json", cubin(cuda, "sm90_rdc"), cubin(cuda, "sm75", "y.cubin"))
    linked, plain = json.loads(out)
    assert linked["kernels"][0]["shared_bytes"] is None  # the linker will know
    assert plain["kernels"][0]["shared_bytes"] == 0
    assert plain["kernels"][0]["max_threads"] is None and plain["kernels"][0]["cluster"] is None
    assert plain["kernels"][0]["params"] == []
    out, _ = cuda("inspect", "x.cubin")
    assert "  shared memory unknown\n" in out


def test_no_kernels(cuda):
    out, _ = cuda("inspect", cubin(cuda, "none"))
    assert out.endswith("  cuda, architecture 100f, 0 kernels\n")


def test_directory_and_standard_input(cuda):
    path = cubin(cuda, "sm90a", "entry/kernel.cubin")
    assert json.loads(cuda("inspect", "-j", path.parent)[0])[0]["path"] == str(path)
    out, _ = cuda("inspect", "-j", "--backend=cuda", "-", stdin=path.read_bytes())
    assert json.loads(out)[0]["arch"] == "90a"


@pytest.mark.parametrize("data, problem", [
    (b"", "it is empty"),
    (b".version 8.8\n.target sm_90a\n", "this is PTX text"),
    (b"__global__ void f() {}\n", "this is CUDA source text"),
    (b"\x50\xed\x55\xba\1\0\x10\0", "this is a fat binary"),
    (b"\0" * 100, "its 100 bytes begin with 00 00"),
])
def test_not_a_cubin(cuda, data, problem):
    path = cuda.write("bad.cubin", data)
    out, err = cuda("inspect", path, status=1)
    assert out == "" and err.startswith(f"deepjit: {path}: ") and problem in err


def test_truncated(cuda):
    path = cubin(cuda, "sm90a")
    path.write_bytes(path.read_bytes()[:-10])
    _, err = cuda("inspect", path, status=1)
    assert "truncated cubin" in err


def test_names_cannot_steer_the_terminal(cuda):
    path = cubin(cuda, "sm90a")
    path.write_bytes(path.read_bytes().replace(b"scale\0", b"s\x1b[1m\0"))
    out, _ = cuda("inspect", path)
    assert "kernel s\\x1b[1m\n" in out and "\x1b" not in out


def test_others_are_shown_after_a_failure(cuda):
    good = cubin(cuda, "sm90a")
    bad = cuda.write("bad.cubin", "text")
    out, err = cuda("inspect", bad, good, status=1)
    assert str(good) in out and str(bad) in err
    out, err = cuda("inspect", "--json", bad, good, status=1)
    assert [item["path"] for item in json.loads(out)] == [str(good)] and str(bad) in err


def test_host_entries_hold_nothing_to_show(deepjit, scale):
    entry = deepjit.build(scale)
    for name in (entry, entry.name, "scale", entry / "kernel.so"):
        out, err = deepjit("inspect", name, status=1)
        assert out == "" and "host" in err and "cannot be read without loading" in err


def test_what_is_not_there(deepjit):
    _, err = deepjit("inspect", "nothing", status=1)
    assert "no cache entry is called 'nothing'" in err
    for name in ("nothing.cubin", "./nothing"):
        _, err = deepjit("inspect", name, status=1)
        assert f"cannot open {name}: No such file" in err
    _, err = deepjit("inspect", deepjit.tmp, status=1)
    assert "holds no binary; looked for kernel.cubin and kernel.so" in err
    _, err = deepjit("inspect", deepjit.write("x.bin", b"x"), status=1)
    assert "does not tell which back end" in err and "--backend" in err
    _, err = deepjit("inspect", "--backend=nonsense", "x.bin", status=3)
    assert "back end 'nonsense' is not in this build" in err


def test_ambiguous_names(deepjit):
    for i in range(2):
        deepjit.build("--tag", "two", "-", stdin=f"int x{i};\n")
    _, err = deepjit("inspect", "two", status=1)
    assert "several entries" in err


def test_usage(deepjit):
    out, err = deepjit("inspect", status=2)
    assert out == "" and "no ENTRY or FILE" in err
