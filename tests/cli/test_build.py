# SPDX-License-Identifier: MIT
"""deepjit build: output, tags, options, errors, signals."""
import os
import pathlib
import re
import signal
import stat
import time

import pytest
from conftest import NVCC, needs_nvcc


def test_prints_exactly_the_path(deepjit, scale):
    entry = deepjit.build(scale)
    assert entry.is_absolute()
    assert entry.parent == deepjit.cache / "cache"
    names = {path.name for path in entry.iterdir()}
    assert {".committed", "kernel.c", "kernel.so", "meta.json"} <= names
    assert (entry / "kernel.c").read_text() == scale.read_text()
    assert deepjit.build(scale) == entry


def fake_compiler(deepjit, body):
    """A compiler that does `body` when it is asked for a kernel and is cc otherwise."""
    path = deepjit.write("bin/fakecc", "#!/bin/sh\ncase \"$*\" in\n*kernel.so*)\n" + body +
                         "\n;;\nesac\nexec cc \"$@\"\n")
    path.chmod(0o755)
    deepjit.env["DJ_JIT_HOST_COMPILER"] = str(path)
    return path


def test_warm_build_starts_no_process(deepjit, scale):
    runs = deepjit.write("runs", "")
    path = deepjit.write("bin/countcc", f'#!/bin/sh\necho run >> "{runs}"\nexec cc "$@"\n')
    path.chmod(0o755)
    deepjit.env["DJ_JIT_HOST_COMPILER"] = str(path)
    entry = deepjit.build(scale)
    assert runs.read_text() != ""
    # A compiler that has just been written is not trusted to be the one that was hashed; after
    # two seconds it is.
    deadline = time.monotonic() + 30
    while True:
        runs.write_text("")
        assert deepjit.build(scale) == entry
        if runs.read_text() == "":
            break
        assert time.monotonic() < deadline, "the compiler is started for each hit"


@pytest.mark.parametrize("file, tag", [
    ("gemm.c", "gemm"),
    ("my-kernel.v2.c", "my_kernel_v2"),
    (".hidden", "_hidden"),
    ("a b\n$(x)'\".c", "a_b___x___"),
    ("ä.c", "__"),
    ("x" * 200 + ".c", "x" * 128),
])
def test_default_tag_is_the_stem(deepjit, file, tag):
    path = deepjit.write(file, "int unused;\n")
    entry = deepjit.build(path)
    assert entry.name.rpartition(".")[0] == tag


def test_standard_input_and_given_tag(deepjit):
    assert deepjit.build("-", stdin="int unused;\n").name.startswith("stdin.")
    one = deepjit.build("--tag", "my_name", "-", stdin="int unused;\n")
    assert one.name.startswith("my_name.")


@pytest.mark.parametrize("tag", ["", "a b", "a/b", "..", "x" * 129, "ä"])
def test_invalid_tag_is_usage(deepjit, scale, tag):
    out, err = deepjit("build", "--tag", tag, scale, status=2)
    assert out == "" and "letters, digits and underscores" in err


def test_source_that_does_not_compile(deepjit):
    out, err = deepjit("build", "-", stdin="int x = one;\nint y = two;\n", status=4)
    assert out == ""
    assert err.startswith("deepjit: <stdin>:1:9: error: ")
    assert "\n<stdin>:2:9: error: " in err
    assert not err.endswith("\n\n")


def test_long_compiler_errors_are_complete(deepjit):
    source = "".join(f"int x{i} = y{i};\n" for i in range(60))
    deepjit.write("sub/long.c", source)
    _, err = deepjit("build", "--backend=host", "sub/long.c", status=4)
    lines = err.splitlines()
    assert lines[0].startswith("deepjit: sub/long.c:1:") and "error: " in lines[0]
    assert lines[1] == "command failed with exit code 1:"
    assert " -o kernel.so kernel.c " in lines[2]
    assert lines[3] == "the compiler's whole output:"
    assert "\nsub/long.c:1:" in err and "\nsub/long.c:60:" in err
    assert err.count("command failed") == 1 and "\nkernel.c:" not in err


def test_messages_name_the_users_file(deepjit):
    deepjit.write("inc/bad.h", "int x = one;\n")
    deepjit.write("my kernel.c", "#include <bad.h>\n#warning kernel.c:1: is no name\n")
    _, err = deepjit("build", "-I", "inc", "my kernel.c", status=4)
    assert "In file included from my kernel.c:1:\n" in err
    assert "\nmy kernel.c:2:2: warning: #warning kernel.c:1: is no name" in err
    entry = deepjit.build("-", stdin="#warning here\nint x;\n")
    for _ in range(2):  # from the compiler, then from the cache
        _, err = deepjit("build", "-v", "--tag=again", "-", stdin="#warning here\nint x;\n")
        assert "<stdin>:1:2: warning" in err
    assert "kernel.c:1:2: warning" in (entry / "compiler.log").read_text()


def test_host_that_nobody_chose_is_explained(deepjit):
    deepjit.env["DJ_JIT_CUDA_LIBRARY"] = "/nonexistent/libcuda.so"
    _, err = deepjit("build", "-", stdin="int x = one;\n", status=4)
    last = err.splitlines()[-1]
    assert last.startswith("deepjit: compiled for the host because cuda is not available (")
    assert "/nonexistent/libcuda.so" in last and last.endswith("use --backend cuda")
    for args, env in ((["--backend=host"], {}), ([], {"DJ_JIT_BACKEND": "host"}),
                      (["--env-prefix=MYLIB"], {"MYLIB_JIT_BACKEND": "host"})):
        _, err = deepjit("build", *args, "-", stdin="int x = one;\n", status=4, env=env)
        assert "compiled for" not in err


def test_cu_files_mean_cuda(deepjit):
    deepjit.env["DJ_JIT_CUDA_LIBRARY"] = "/nonexistent/libcuda.so"
    deepjit.write("k.cu", "int x;\n")
    out, err = deepjit("build", "k.cu", status=3)
    assert out == "" and "/nonexistent/libcuda.so" in err and "error:" not in err
    assert (deepjit.build("k.cu", env={"DJ_JIT_BACKEND": "host"}) / "kernel.so").is_file()
    assert (deepjit.build("--backend=host", "k.cu") / "kernel.so").is_file()
    explained, _ = deepjit("explain", "--arch=90a", "k.cu", status=0 if NVCC else 3)
    assert not NVCC or re.search(r"^backend +cuda$", explained, re.MULTILINE)


@needs_nvcc
def test_cu_files_build_without_a_device(deepjit):
    deepjit.env["DJ_JIT_CUDA_LIBRARY"] = "/nonexistent/libcuda.so"
    deepjit.write("k.cu", "__global__ void k(int *out) { *out = 1; }\n")
    entry = deepjit.build("--arch=90a", "k.cu")
    assert (entry / "kernel.cubin").is_file()
    deepjit.write("bad.cu", "int x = one;\n")
    _, err = deepjit("build", "--arch=90a", "bad.cu", status=4)
    assert err.startswith("deepjit: bad.cu(1): error: ") and "compiled for" not in err
    assert "\nkernel.cu(" not in err


def test_hits_without_the_dump_that_is_asked_for(deepjit, scale):
    entry = deepjit.build(scale)
    for args, env in ((["--dump-asm"], {}), ([], {"DJ_JIT_DUMP_ASM": "1"})):
        out, err = deepjit("build", *args, scale, env=env)
        assert out == f"{entry}\n" and err.count("\n") == 1
        assert err.startswith("deepjit: no kernel.s: ") and "cache clear scale" in err
    assert deepjit.build("--dump-asm=no", scale, env={"DJ_JIT_DUMP_ASM": "1"}) == entry
    deepjit("cache", "clear", "scale")
    for _ in range(2):
        assert (deepjit.build("--dump-asm", scale) / "kernel.s").is_file()


@needs_nvcc
def test_hits_without_the_cuda_dump_that_is_asked_for(deepjit):
    deepjit.env["CUDA_HOME"] = str(pathlib.Path(NVCC).resolve().parents[1])
    build = ["build", "--arch=90a", "k.cu"]
    deepjit.write("k.cu", "__global__ void k(int *out) { *out = 1; }\n")
    deepjit(*build)
    for args, name in ((["--dump-ptx"], "kernel.ptx"),
                       (["--dump-asm"], "kernel.ptx and kernel.sass"),
                       (["--dump-asm", "--dump-ptx=no"], "kernel.sass")):
        _, err = deepjit(*build, *args)
        assert err.startswith(f"deepjit: no {name}: ") and err.count("\n") == 1


def test_warnings_stay_in_the_log(deepjit):
    source = "#warning look here\nint x;\n"
    entry = deepjit.build("-", stdin=source)
    assert "look here" in (entry / "compiler.log").read_text()
    out, err = deepjit("build", "--verbose", "-", stdin=source)
    assert out == f"{entry}\n" and "look here" in err


def test_back_ends_that_are_not_there_by_setting(deepjit, scale):
    for name in ("DJ_JIT_BACKEND", "MYLIB_JIT_BACKEND"):
        _, err = deepjit("build", "--env-prefix=MYLIB", scale, status=3, env={name: "nonsense"})
        assert f"'nonsense' (from {name}) is not in this build" in err and "host" in err


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_bad_architecture_is_usage(deepjit, scale, backend):
    if backend == "cuda" and NVCC is None:
        pytest.skip("no nvcc")
    for command in ("build", "explain"):
        _, err = deepjit(command, "--backend", backend, "--arch=no such", scale, status=2)
        assert "invalid arch: no such" in err


@pytest.mark.parametrize("args, advice", [
    (["-DSZ=4"], "--flag=-DSZ=4"), (["-D", "SZ=4"], "--flag=-DSZ=4"),
    (["-std=c++17"], "--flag=-std=c++17"), (["-O2"], "--flag=-O2"), (["-g"], "--flag=-g"),
    (["-fno-math-errno"], "--flag=-fno-math-errno"), (["-march=native"], "--flag=-march=native"),
])
def test_flags_that_are_given_directly(deepjit, scale, args, advice):
    _, err = deepjit("build", scale, *args, status=2)
    assert advice in err


@pytest.mark.parametrize("compiler", ["/nonexistent/cc", "no-such-compiler"])
def test_missing_compiler_is_unavailable(deepjit, scale, compiler):
    out, err = deepjit("build", scale, status=3, env={"DJ_JIT_HOST_COMPILER": compiler})
    assert out == "" and err.startswith("deepjit: ")
    assert compiler in err and "DJ_JIT_HOST_COMPILER" in err


def test_missing_back_end_is_unavailable(deepjit, scale):
    _, err = deepjit("build", "--backend", "nonsense", scale, status=3)
    assert "'nonsense' is not in this build" in err and "host" in err


def test_files_that_cannot_be_read(deepjit):
    _, err = deepjit("build", deepjit.dir / "none.c", status=1)
    assert err == f"deepjit: cannot open {deepjit.dir}/none.c: No such file or directory\n"
    _, err = deepjit("build", deepjit.dir, status=1)
    assert "Is a directory" in err


@pytest.mark.parametrize("args", [
    ["build"], ["build", "a.c", "b.c"], ["build", "--nonsense", "a.c"],
    ["build", "--fast-math=perhaps", "a.c"], ["build", "--cache-dir=a:b", "a.c"],
])
def test_usage(deepjit, args):
    out, err = deepjit(*args, status=2)
    assert out == "" and err.startswith("deepjit build: ") and "--help" in err


def test_options_change_the_entry(deepjit):
    source = deepjit.write("k.c", "#ifndef X\n#define X 0\n#endif\nint x = X;\n")
    entries = [deepjit.build(*args, source) for args in (
        [], ["--flag=-DX=1"], ["--flag=-DX=2"], ["--optimize-level=0"], ["--fast-math"],
        ["--signature=v2"], ["--default-flag=-shared", "--default-flag=-fPIC"])]
    assert len(set(entries)) == len(entries)
    assert deepjit.build("--fast-math=no", source) == entries[0]
    assert deepjit.build("--extra-flags=-DX=1", source) == entries[1]
    assert deepjit.build("--flags=-shared", "--flags=-fPIC", source) == entries[6]


def test_dump_asm(deepjit, scale):
    entry = deepjit.build("--dump-asm", scale)
    assert "scale" in (entry / "kernel.s").read_text()


def test_includes(deepjit):
    header = deepjit.write("inc/mine/size.h", "#define SIZE 1\n")
    source = deepjit.write("k.c", "#include <mine/size.h>\nint sizes[SIZE];\n")
    _, err = deepjit("build", source, status=4)
    assert "mine/size.h" in err
    tracked = ["-I", "inc", "--track", "mine/", source]  # relative to the working directory
    first = deepjit.build(*tracked)
    assert deepjit.build("-I", deepjit.dir / "inc", "--track", "mine/", source) == first
    header.write_text("#define SIZE 2\n")
    assert deepjit.build(*tracked) != first


def test_post_hook(deepjit, scale):
    deepjit.write("hooks/note.py", "import sys\n"
                  "open(sys.argv[1], 'ab').write(b'NOTE')\n")
    entry = deepjit.build("--library-root", "hooks", "--post-hook", "note.py", scale)
    assert (entry / "kernel.so").read_bytes().endswith(b"NOTE")
    deepjit("build", "--post-hook", "note.py", scale, status=1)
    _, err = deepjit("build", "--library-root", "hooks", "--post-hook", "none.py", scale, status=1)
    assert "hooks/none.py: No such file" in err


def test_no_usable_root(deepjit, scale):
    out, err = deepjit("build", "--cache-dir", "/dev/null/cache", scale, status=1)
    assert out == ""
    assert "no cache entry could be made" in err and "/dev/null/cache" in err
    assert list(deepjit.tmp.iterdir()) == []


def test_env_prefix(deepjit, scale):
    other = deepjit.dir / "other"
    entry = deepjit.build("--env-prefix", "MYLIB", scale, env={"MYLIB_JIT_CACHE_DIR": str(other)})
    assert entry.parent == other / "cache"
    _, err = deepjit("build", "--env-prefix", "DJ", scale, status=1)
    assert "DJ is reserved" in err


def test_malformed_environment(deepjit, scale):
    _, err = deepjit("build", scale, status=1, env={"DJ_JIT_COMPILE_TIMEOUT": "soon"})
    assert "DJ_JIT_COMPILE_TIMEOUT" in err and "soon" in err


def test_nul_bytes_and_size_limit(deepjit):
    entry = deepjit.build("-", stdin=b"/* \0 */ int x;\n")
    assert (entry / "kernel.c").read_bytes() == b"/* \0 */ int x;\n"
    huge = deepjit.dir / "huge.c"
    with open(huge, "wb") as file:
        file.truncate((64 << 20) + 1)
    _, err = deepjit("build", huge, status=1)
    assert "larger than 64 MiB" in err


@pytest.mark.parametrize("number, expected", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_during_compilation(deepjit, scale, number, expected):
    fifo = deepjit.dir / "started"
    os.mkfifo(fifo)
    fake_compiler(deepjit, f'echo $$ > "{fifo}"\nexec sleep 1000')
    process = deepjit.start("build", scale)
    compiler = int(pathlib.Path(fifo).read_text())  # waits until the compiler runs
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == expected
    assert out == b"" and b"stopped by signal" in err
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)
    assert list((deepjit.cache / "tmp").iterdir()) == []


def test_ignored_signals_stay_ignored(deepjit, scale):
    fifo = deepjit.dir / "started"
    release = deepjit.dir / "release"
    os.mkfifo(fifo)
    os.mkfifo(release)
    fake_compiler(deepjit, f'echo > "{fifo}"\nread line < "{release}"')
    process = deepjit.start("build", scale,
                            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    fifo.read_text()
    process.send_signal(signal.SIGHUP)
    release.write_text("go\n")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert out.decode().startswith(str(deepjit.cache))


def test_output_that_cannot_be_written(deepjit, scale):
    with open("/dev/full", "wb") as full:
        _, err = deepjit("build", scale, status=1, stdout=full)
    assert err == "deepjit: cannot write to standard output: No space left on device\n"
    reader, writer = os.pipe()
    os.close(reader)
    _, err = deepjit("build", scale, status=1, stdout=writer)
    os.close(writer)
    assert "cannot write to standard output: Broken pipe" in err
    _, err = deepjit("build", scale, status=1, stdout=None, preexec_fn=lambda: os.close(1))
    assert "cannot write to standard output" in err


def test_entry_is_private_by_default(deepjit, scale):
    entry = deepjit.build(scale)
    assert stat.S_IMODE(deepjit.cache.stat().st_mode) == 0o700
    assert stat.S_IMODE((entry / "kernel.so").stat().st_mode) & 0o111 == 0
