# SPDX-License-Identifier: MIT
"""deepjit run: arguments, results, files, errors."""
import struct

import pytest
from conftest import NVCC, SCALE, STANDIN_CUDA, golden, needs_nvcc

TYPES = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I",
         "u64": "Q", "f32": "f", "f64": "d", "bool": "?"}
C_TYPES = {"i8": "signed char", "i16": "short", "i32": "int", "i64": "int64_t",
           "u8": "unsigned char", "u16": "uint16_t", "u32": "unsigned", "u64": "size_t",
           "f32": "float", "f64": "double", "bool": "bool"}


def npy(descr, shape, data, order="False", version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    length = "<H" if version == 1 else "<I"
    size = 8 + struct.calcsize(length)
    header += b" " * (-(size + len(header) + 1) % 64) + b"\n"
    return (b"\x93NUMPY" + bytes([version, 0]) + struct.pack(length, len(header)) + header + data)


def copy_kernel(c_type):
    return ("#include <deepjit/kernel.h>\n"
            f"DJ_KERNEL(copy, ({c_type} *, out), (const {c_type} *, in), ({c_type}, a), (int, n))\n"
            "{ int i = DJ_THREAD_IDX_X; if (i < n) { out[i] = i == 0 ? a : in[i]; } }\n")


def run(deepjit, source, *args, grid=1, block=16, **options):
    return deepjit("run", source, "--grid", grid, "--block", block, "--", *args, **options)


def test_summary(deepjit, scale):
    out, err = deepjit("run", scale, "--grid", "4", "--block", "256", "f32[1024]",
                       "f32[1024]=iota", "3", "1024")
    assert err == ""
    golden("run_summary.txt", out)


@pytest.mark.parametrize("name", TYPES)
def test_every_type(deepjit, name):
    source = deepjit.write("copy.c", copy_kernel(C_TYPES[name]))
    values = [1, 0, 1] if name == "bool" else [7, 0, 100]
    data = struct.pack(f"<3{TYPES[name]}", *values)
    deepjit.write("in.bin", data)
    out, _ = deepjit("run", source, "--grid=1", "--block=4", "--save=out=out.bin", "-q",
                     f"{name}[3]", f"{name}@in.bin", f"{name}:1", "i32:3")
    assert out == ""
    expected = struct.pack(f"<{TYPES[name]}", 1) + data[len(data) // 3:]
    assert (deepjit.dir / "out.bin").read_bytes() == expected


def test_plain_numbers_take_the_parameter_type(deepjit):
    source = deepjit.write("k.c", """\
#include <deepjit/kernel.h>
DJ_KERNEL(k, (double *, out), (float, a), (unsigned char, b), (int64_t, c), (bool, d),
          (uint64_t, e))
{ out[0] = a; out[1] = b; out[2] = (double)c; out[3] = d; out[4] = e == UINT64_MAX; }
""")
    out, _ = run(deepjit, source, "f64[5]", "0.1", "0xff", "-5", "true", "18446744073709551615",
                 block=1)
    assert out.rstrip().endswith("first 0.100000001490116 255 -5 1 1") or \
        out.rstrip().endswith("first 0.10000000149011612 255 -5 1 1")


@pytest.mark.parametrize("fill, expected", [
    ("", "0 0 0 0"), ("=zeros", "0 0 0 0"), ("=ones", "1 1 1 1"), ("=iota", "0 1 2 3"),
    ("=2.5", "2.5 2.5 2.5 2.5"), ("=-inf", "-inf -inf -inf -inf"), ("=nan", "nan nan nan nan"),
])
def test_fills(deepjit, scale, fill, expected):
    out, _ = run(deepjit, scale, "f32[4]", f"f32[4]{fill}", "1", "4")
    assert f"first {expected}\n" in out.replace("-nan", "nan")
    assert ("nan 4" in out) == (fill == "=nan")


def test_random_is_reproducible(deepjit, scale):
    def values(seed):
        out, _ = deepjit("run", scale, "--grid=1", "--block=64", "-q", "--print=0", "f32[64]",
                         f"f32[64]=random{seed}", "1", "64")
        return [float(word) for word in out.split()]
    one = values(":1")
    assert one == values(":1") and one != values(":2") and values("") == values(":0")
    assert all(0 <= value < 1 for value in one) and len(set(one)) > 60


def test_print_has_a_line_for_each_row(deepjit, scale):
    out, _ = deepjit("run", scale, "--grid=1", "--block=6", "-q", "--print=out", "--print=1",
                     "f32[2,3]", "f32[3,2]=iota", "10", "6")
    assert out == "0 10 20\n30 40 50\n0 1\n2 3\n4 5\n"


def test_npy_there_and_back(deepjit, scale):
    values = [1.5, -2, 3, 4e10, 5, 6]
    deepjit.write("in.npy", npy("<f4", "(2, 3)", struct.pack("<6f", *values)))
    for version in (1, 2, 3):
        deepjit.write(f"v{version}.npy",
                      npy("<f4", "(6,)", struct.pack("<6f", *values), version=version))
        deepjit("run", scale, "--grid=1", "--block=6", "-q", "--save", "out=out.npy", "f32[2,3]",
                f"@v{version}.npy", "2", "6")
        data = (deepjit.dir / "out.npy").read_bytes()
        assert data[:8] == b"\x93NUMPY\x01\x00"
        assert len(data) % 64 == 6 * 4 and b"'shape': (2, 3,), }" in data[:128]
        assert struct.unpack("<6f", data[-24:]) == struct.unpack(
            "<6f", struct.pack("<6f", *(2 * value for value in values)))
    out, _ = run(deepjit, scale, "@out.npy", "@in.npy", "3", "6")
    assert out.startswith("out f32[2,3] min -6 max 1.2e+11 ")


@pytest.mark.parametrize("content, problem", [
    (b"", "not a .npy file"),
    (b"\x93NUMPY\x01\x00", "not a .npy file"),
    (b"\x93NUMPY\x01\x00\xff\xff{}", "truncated in the header"),
    (npy("<f4", "(3,)", b""), "0 bytes of data where the header says 12"),
    (npy("<f4", "(3,)", bytes(13)), "13 bytes of data"),
    (npy(">f4", "(3,)", bytes(12)), "big-endian"),
    (npy("<f2", "(3,)", bytes(6)), "'<f2' are not supported"),
    (npy("<f4", "(2, 2)", bytes(16), order="True"), "Fortran order"),
    (npy("<f4", "(99999999999, 99999999999)", b""), "too large"),
    (npy("<f4", "(-1,)", b""), "not a tuple of numbers"),
    (npy("<f4", "()", bytes(4), version=9), "version 9"),
])
def test_bad_npy(deepjit, scale, content, problem):
    deepjit.write("in.npy", content)
    _, err = run(deepjit, scale, "f32[3]", "@in.npy", "1", "3", status=1)
    assert err.startswith("deepjit: in.npy: ") and problem in err


def test_raw_files(deepjit, scale):
    deepjit.write("in.bin", bytes(10))
    _, err = run(deepjit, scale, "f32[3]", "f32@in.bin", "1", "3", status=1)
    assert "in.bin: 10 bytes are no whole number of f32" in err
    _, err = run(deepjit, scale, "f32[3]", "f32@none.bin", "1", "3", status=1)
    assert "cannot open none.bin" in err


def test_structures_and_null(deepjit):
    source = deepjit.write("k.c", """\
#include <deepjit/kernel.h>
typedef struct pair { int a; short b; } pair;
DJ_KERNEL(k, (int *, out), (pair, p), (const float *, nothing))
{ out[0] = p.a; out[1] = p.b; out[2] = nothing == NULL; }
""")
    data = struct.pack("<ihxx", 12345678, -9).hex()
    out, _ = run(deepjit, source, "i32[3]", f"bytes:{data}", "null", block=1)
    assert "first 12345678 -9 1\n" in out
    _, err = run(deepjit, source, "i32[3]", "bytes:00", "null", block=1, status=2)
    assert "parameter 1, p (pair, 8 bytes)" in err
    _, err = run(deepjit, source, "i32[3]", "5", "null", block=1, status=2)
    assert "parameter 1, p (pair, 8 bytes): expected TYPE:NUMBER" in err


def test_types_with_other_names_need_typed_numbers(deepjit):
    source = deepjit.write("k.c", "#include <deepjit/kernel.h>\ntypedef float real;\n"
                           "DJ_KERNEL(k, (real *, out), (real, a)) { out[0] = a; }\n")
    out, _ = run(deepjit, source, "f32[1]", "f32:5", block=1)
    assert "first 5\n" in out
    run(deepjit, source, "f32[1]", "5", block=1, status=2)


def test_shared_memory_and_blocks(deepjit):
    source = deepjit.write("k.c", """\
#include <deepjit/kernel.h>
DJ_BLOCK_KERNEL(reverse, (int *, out), (const int *, in))
{
    DJ_DYNAMIC_SHARED(int, buffer);
    DJ_FOR_THREADS { buffer[DJ_THREAD_IDX_X] = in[DJ_THREAD_IDX_X]; }
    DJ_FOR_THREADS { out[DJ_THREAD_IDX_X] = buffer[DJ_BLOCK_DIM_X - 1 - DJ_THREAD_IDX_X]; }
}
""")
    out, _ = deepjit("run", source, "--grid=1", "--block=4", "--shared=16", "i32[4]",
                     "i32[4]=iota")
    assert "first 3 2 1 0\n" in out


def test_options_reach_the_compiler(deepjit):
    source = deepjit.write("k.c", "#include <deepjit/kernel.h>\n"
                           "DJ_KERNEL(k, (int *, out)) { out[0] = VALUE; }\n")
    out, _ = deepjit("run", "--flag=-DVALUE=42", source, "--grid=1", "--block=1", "i32[1]")
    assert "first 42\n" in out
    deepjit("run", source, "--grid=1", "--block=1", "i32[1]", status=4)


def test_source_from_standard_input(deepjit):
    out, _ = deepjit("run", "-", "--grid=1", "--block=4", "f32[4]", "f32[4]=ones", "2", "4",
                     stdin=SCALE)
    assert "first 2 2 2 2\n" in out


@pytest.mark.parametrize("args, problem", [
    (["f32[4]", "f32[4]", "1"], "has 4 parameters, got 3 arguments"),
    (["i32[4]", "f32[4]", "1", "4"], "parameter 0, out (float *, 8 bytes): expected an array"),
    (["f64[4]", "f32[4]", "1", "4"], "parameter 0, out"),
    (["1", "f32[4]", "1", "4"], "parameter 0, out"),
    (["f32[4]", "f32[4]", "f32[4]", "4"], "parameter 2, a (float, 4 bytes): expected a number"),
    (["f32[4]", "f32[4]", "i32:1", "4"], "parameter 2, a"),
    (["f32[4]", "f32[4]", "1", "4.5"], "parameter 3, n (int, 4 bytes)"),
    (["f32[4]", "f32[4]", "1", "3000000000"], "parameter 3, n (int, 4 bytes)"),
    (["f32[4]", "f32[4]", "1", "i64:4"], "parameter 3, n"),
    (["f32[4]", "f32[4]", "1", "i8:128"], "argument 'i8:128': not a number of this type"),
    (["f32[4]", "f32[4]", "1", "four"], "argument 'four'"),
    (["f32[", "f32[4]", "1", "4"], "argument 'f32['"),
    (["f32[4]x", "f32[4]", "1", "4"], "argument 'f32[4]x'"),
    (["f32[4]=many", "f32[4]", "1", "4"], "the fill is none of"),
    (["f32[4]=random:x", "f32[4]", "1", "4"], "the fill is none of"),
    (["f32[99999999999,99999999999]", "f32[4]", "1", "4"], "too large"),
    (["bytes:0", "f32[4]", "1", "4"], "hexadecimal"),
    (["bytes:zz", "f32[4]", "1", "4"], "hexadecimal"),
])
def test_arguments_that_do_not_fit(deepjit, scale, args, problem):
    out, err = run(deepjit, scale, *args, status=2)
    assert out == "" and err.startswith("deepjit: ") and problem in err


@pytest.mark.parametrize("options, problem", [
    (["--block=1"], "--grid and --block are needed"),
    (["--grid=1"], "--grid and --block are needed"),
    (["--grid=0", "--block=1"], "grid: 0"),
    (["--grid=1,2,3,4", "--block=1"], "grid: 1,2,3,4"),
    (["--grid=1", "--block=x"], "block: x"),
    (["--grid=1", "--block=1", "--shared=-1"], "shared_bytes: -1"),
    (["--grid=1", "--block=1", "--save=out"], "--save needs ARRAY=FILE"),
])
def test_usage(deepjit, scale, options, problem):
    out, err = deepjit("run", *options, scale, "f32[1]", "f32[1]", "1", "1", status=2)
    assert out == "" and problem in err


@pytest.mark.parametrize("option", ["--print=2", "--print=a", "--save=nothing=x.npy"])
def test_arrays_that_are_none(deepjit, scale, option):
    _, err = deepjit("run", option, scale, "--grid=1", "--block=1", "f32[1]", "f32[1]", "1", "1",
                     status=2)
    assert "no array '" in err


def test_launch_limits_are_reported(deepjit, scale):
    _, err = run(deepjit, scale, "f32[1]", "f32[1]", "1", "1", block=5000, status=1)
    assert "block.x is 5000" in err


def test_exactly_one_kernel(deepjit):
    _, err = deepjit("run", "-", "--grid=1", "--block=1", stdin="int x;\n", status=1)
    assert "exactly one kernel, found 0" in err


def test_result_file_that_cannot_be_written(deepjit, scale):
    _, err = deepjit("run", scale, "--grid=1", "--block=1", "--save=out=/dev/full", "f32[1]",
                     "f32[1]", "1", "1", status=1)
    assert "cannot write /dev/full: No space left on device" in err
    _, err = deepjit("run", scale, "--grid=1", "--block=1", "--save=out=none/x", "f32[1]",
                     "f32[1]", "1", "1", status=1)
    assert "cannot create none/x" in err


def test_runs_without_a_usable_root(deepjit, scale):
    out, _ = deepjit("run", "--cache-dir=/dev/null/x", scale, "--grid=1", "--block=1", "f32[1]",
                     "f32[1]=ones", "2", "1")
    assert "first 2\n" in out
    assert list(deepjit.tmp.iterdir()) == []


PLAIN = """\
// __global__ void scale(int nothing) {}
namespace mine {
__global__ void __launch_bounds__(32 * (2 + 2))
scale(float *__restrict__ out, const float *in, /* the factor */ float a, int n) {}
}
"""
TEMPLATE = """\
template <class T> __global__ void scale(T *out, T a) {}
template __global__ void scale<float>(float *, float);
"""


def run_cuda(deepjit, source, *args, **options):
    """On a driver that runs nothing: arrays stay as they are."""
    deepjit.env["DJ_JIT_CUDA_LIBRARY"] = str(STANDIN_CUDA)
    deepjit.env["DJ_JIT_NVCC_COMPILER"] = NVCC
    deepjit.write("k.cu", source)
    return deepjit("run", "k.cu", "--grid=1", "--block=4", *args, **options)


@needs_nvcc
@pytest.mark.parametrize("source", [SCALE, PLAIN])
def test_cubins_take_names_and_types_from_the_source(deepjit, source):
    args = ["f32[4]=ones", "f32[4]=iota", "2", "4"]
    out, err = run_cuda(deepjit, source, "--print=in", "--save=out=out.bin", *args)
    assert err == ""
    assert out == "out f32[4] min 1 max 1 mean 1 first 1 1 1 1\n0 1 2 3\n"
    assert (deepjit.dir / "out.bin").read_bytes() == struct.pack("<4f", 1, 1, 1, 1)
    _, err = run_cuda(deepjit, source, "f32[4]", "i32[4]", "2", "4", status=2)
    assert "parameter 1, in (const float *, 8 bytes): expected an array of f32" in err
    _, err = run_cuda(deepjit, source, "f32[4]", status=2)
    assert "\n  1: const float * in (8 bytes)\n  2: float a (4 bytes)\n" in err


@needs_nvcc
def test_cubins_whose_source_says_nothing(deepjit):
    _, err = run_cuda(deepjit, TEMPLATE, "f32[4]", "2", status=2)
    assert "argument '2' does not fit parameter 1 (4 bytes): expected f32:2 or i32:2, as the " \
        "binary has no names or types" in err
    _, err = run_cuda(deepjit, TEMPLATE, "--print=out", "f32[4]", "f32:2", status=2)
    assert "no array 'out'" in err and "position" in err
    out, _ = run_cuda(deepjit, TEMPLATE, "--print=0", "f32[4]=ones", "f32:2")
    assert out == "0 f32[4] min 1 max 1 mean 1 first 1 1 1 1\n1 1 1 1\n"


@needs_nvcc
def test_types_that_contradict_the_binary_are_not_used(deepjit):
    source = "#define float double\n" + PLAIN
    _, err = run_cuda(deepjit, source, "f64[4]", "f64[4]", "2", "4", status=2)
    assert "parameter 2 (8 bytes): expected f64:2 or i64:2" in err
