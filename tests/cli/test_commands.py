# SPDX-License-Identifier: MIT
"""The frame and the small commands: help, version, doctor, env, and the manual page."""
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import NVCC, SOURCE_DIR, STANDIN_CUDA, command_path, golden, needs_nvcc

COMMANDS = ["demo", "run", "build", "cache", "explain", "inspect", "doctor", "env", "bench",
            "version"]


def test_help(deepjit):
    out, err = deepjit("--help")
    assert err == ""
    golden("help.txt", out)


@pytest.mark.parametrize("command", ["demo", "cache", "inspect", "doctor", "env", "bench",
                                     "version"])
def test_help_of_commands(deepjit, command):
    out, err = deepjit(command, "--help")
    assert err == ""
    golden(f"help_{command}.txt", out)


@pytest.mark.parametrize("command", ["run", "build", "explain"])
def test_help_lists_the_compile_options(deepjit, command):
    """These come from the option table, so they are not fixed here."""
    out, _ = deepjit(command, "--help")
    for option in ("--tag=NAME", "-I DIR", "--track=PREFIX", "--flag=FLAG", "--arch=",
                   "--optimize-level=", "--debug-info", "--fast-math", "--dump-asm",
                   "--default-flag=FLAG", "--post-hook=", "--backend=NAME", "--cache-dir=DIR"):
        assert option in out
    assert "--flags" not in out and "--extra-flags" not in out  # they are easily taken for --flag
    assert "Examples:" in out


@pytest.mark.parametrize("args, problem", [
    ([], "no command"), (["nonsense"], "unknown command 'nonsense'"), (["--nonsense"], "--nonsense"),
])
def test_usage(deepjit, args, problem):
    out, err = deepjit(*args, status=2)
    assert out == "" and err.startswith("deepjit: ") and problem in err


def test_options_after_the_command_belong_to_it(deepjit):
    out, _ = deepjit("version", "--json")
    assert json.loads(out)["version"]


def test_version(deepjit):
    out, _ = deepjit("--version")
    version = re.fullmatch(r"deepjit (\d+\.\d+\.\d+)\n", out).group(1)
    header = (SOURCE_DIR / "include/deepjit/base.h").read_text()
    assert f'#define DJ_VERSION_STRING "{version}"' in header
    out, _ = deepjit("version", "--json")
    facts = json.loads(out)
    assert facts["version"] == version and "host" in facts["backends"]
    out, _ = deepjit("version")
    assert out == f"deepjit {version}\nback ends: {' '.join(facts['backends'])}\n"


def findings(deepjit, status=0, **options):
    out, _ = deepjit("doctor", "--backend", "host", "--json", status=status, **options)
    report, = json.loads(out)
    assert report["backend"] == "host" and report["complete"] == (status == 0)
    return {finding["what"]: finding for finding in report["findings"]}


def test_doctor(deepjit):
    found = findings(deepjit)
    assert all(finding["found"] for finding in found.values())
    assert "/" in found["compiler"]["detail"]
    assert str(deepjit.cache) in found["cache root"]["detail"]
    out, err = deepjit("doctor")
    assert err == "" and out.startswith("cuda\n")
    assert "MISSING" not in out[out.index("\nhost\n"):]


def test_doctor_says_what_is_missing(deepjit):
    env = {"DJ_JIT_HOST_COMPILER": "/nonexistent/cc"}
    found = findings(deepjit, status=3, env=env)
    assert not found["compiler"]["found"]
    assert "/nonexistent/cc" in found["compiler"]["detail"]
    assert "DJ_JIT_HOST_COMPILER" in found["compiler"]["detail"]
    out, _ = deepjit("doctor", status=3, env=env)
    assert "MISSING compiler" in out


def test_doctor_with_a_root_that_cannot_be_used(deepjit):
    found = findings(deepjit, status=3, env={"DJ_JIT_CACHE_DIR": "/dev/null/x"})
    assert not found["cache root"]["found"] and "/dev/null/x" in found["cache root"]["detail"]


def test_doctor_needs_only_the_first_root(deepjit):
    env = {"DJ_JIT_CACHE_DIR": f"{deepjit.cache}:/dev/null/x"}
    out, _ = deepjit("doctor", "--backend=host", "--json", env=env)
    first, second = [finding for finding in json.loads(out)[0]["findings"]
                     if finding["what"] == "cache root"]
    assert first["found"] and first["needed"]
    assert not second["found"] and not second["needed"]
    out, _ = deepjit("doctor", "--backend=host", env=env)
    assert re.search(r"^  none    cache root          /dev/null/x", out, re.MULTILINE)


def test_doctor_columns(deepjit):
    deepjit.build("-", "--backend=host", stdin="int x;\n")
    out, _ = deepjit("doctor", "--backend=host", status=3,
                     env={"DJ_JIT_HOST_COMPILER": "/nonexistent/cc"})
    assert "  ok      recorded toolchains 1 recorded identity lets entries" in out
    for line in out.splitlines()[1:]:
        assert re.match(r"  (ok     |MISSING|none   ) .{18}[ s] \S|" + " " * 30 + r"\S", line), line


@needs_nvcc
def test_doctor_of_cuda(deepjit):
    tools = deepjit.dir / "tools"
    tools.mkdir()
    env = {"DJ_JIT_CUDA_LIBRARY": str(STANDIN_CUDA), "DJ_JIT_NVCC_COMPILER": NVCC}

    def facts(**more):
        out, _ = deepjit("doctor", "--backend=cuda", "--json", env={**env, **more})
        return {finding["what"]: finding for finding in json.loads(out)[0]["findings"]}
    found = facts()
    assert found["driver"]["detail"] == f"{STANDIN_CUDA}, supports CUDA 13.0"
    assert found["nvcc"]["detail"].endswith("nvcc (from DJ_JIT_NVCC_COMPILER)")
    assert found["host compiler"]["detail"].endswith(" (from PATH)")
    assert not found["cuobjdump"]["needed"]
    program = tools / "cuobjdump"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    host = shutil.which("g++")
    found = facts(PATH=f"{tools}:{os.environ['PATH']}", NVCC_CCBIN=host)
    assert found["cuobjdump"]["found"] and found["cuobjdump"]["detail"].endswith("/cuobjdump")
    assert found["host compiler"]["detail"] == f"{host} (from NVCC_CCBIN)"


def test_doctor_errors(deepjit):
    out, err = deepjit("doctor", status=3, env={"DJ_JIT_BACKEND": "nonsense"})
    assert "'nonsense' (from DJ_JIT_BACKEND) is not in this build" in err and "\nhost\n" in out
    deepjit("doctor", "--backend", "nonsense", status=3)
    _, err = deepjit("doctor", status=1, env={"DJ_JIT_LOG": "loud"})
    assert "DJ_JIT_LOG" in err and "loud" in err


def test_env(deepjit):
    out, _ = deepjit("env", "--json", env={"DJ_JIT_LOG": "info", "MYLIB_JIT_LOG": "debug"})
    settings = {row["variable"]: row for row in json.loads(out)}
    assert settings["DJ_JIT_LOG"]["value"] == "info"
    assert settings["DJ_JIT_CACHE_DIR"]["value"] == str(deepjit.cache)
    assert settings["DJ_JIT_COMPILE_TIMEOUT"] ["value"] is None
    assert settings["DJ_JIT_COMPILE_TIMEOUT"]["default"] == "600"
    out, _ = deepjit("env", "--json", "--env-prefix", "MYLIB",
                     env={"DJ_JIT_LOG": "info", "MYLIB_JIT_LOG": "debug"})
    settings = {row["variable"]: row for row in json.loads(out)}
    assert settings["MYLIB_JIT_LOG"]["value"] == "debug" and "DJ_JIT_LOG" not in settings
    assert settings["DJ_JIT_CACHE_DIR"]["value"] == str(deepjit.cache)
    out, _ = deepjit("env")
    assert re.search(r"^DJ_JIT_COMPILE_TIMEOUT +600 +default$", out, re.MULTILINE)
    assert re.search(rf"^DJ_JIT_CACHE_DIR +{deepjit.cache} +environment$", out, re.MULTILINE)


def test_env_names_what_to_set(deepjit):
    out, _ = deepjit("env", "--env-prefix=MYLIB", env={"DJ_JIT_LOG": "info"})
    assert re.search(r"^MYLIB_JIT_COMPILE_TIMEOUT +600 +default$", out, re.MULTILINE)
    assert re.search(r"^DJ_JIT_LOG +info +environment$", out, re.MULTILINE)


@pytest.mark.parametrize("prefix", ["DJ", "", "a b", "9X"])
def test_env_refuses_what_the_library_refuses(deepjit, prefix):
    out, err = deepjit("env", "--env-prefix", prefix, status=1)
    assert out == "" and err.startswith("deepjit: ")


@pytest.mark.parametrize("name, value", [
    ("DJ_JIT_COMPILE_TIMEOUT", "soon"), ("DJ_JIT_LOG", "loud"), ("DJ_JIT_BACKEND", "nonsense"),
    ("DJ_JIT_CACHE_DIR", "/a::/b"), ("MYLIB_JIT_DUMP_ASM", "perhaps"), ("DJ_JIT_COMPILER_ENV", "a=b"),
])
def test_env_marks_malformed_values(deepjit, name, value):
    env = {name: value, "DJ_JIT_MEM_CACHE_MAX": "7"}
    out, _ = deepjit("env", "--json", "--env-prefix=MYLIB", status=1, env=env)
    problems = {row["variable"]: row["problem"] for row in json.loads(out) if row["problem"]}
    assert list(problems) == [name] and name in problems[name]
    out, _ = deepjit("env", "--env-prefix=MYLIB", status=1, env=env)
    assert re.search(rf"^{name} +{value} +MALFORMED: .*{name}", out, re.MULTILINE)
    assert out.count("MALFORMED") == 1


@pytest.mark.parametrize("script", ["test-gpu", "bench-gpu"])
def test_gpu_scripts_say_that_there_is_no_gpu(deepjit, script):
    done = subprocess.run(
        [SOURCE_DIR / f"scripts/{script}.sh", "--bin", os.path.dirname(command_path()),
         "--out", deepjit.dir / "out"],
        env={**deepjit.env, "DJ_JIT_CUDA_LIBRARY": "/nonexistent/libcuda.so"},
        capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{script}: no NVIDIA GPU can be used here: no CUDA driver")
    assert "Needed: a GPU" in done.stderr and not (deepjit.dir / "out").exists()


def test_environment_page_is_generated(deepjit):
    out, _ = deepjit("env", "--markdown")
    assert (SOURCE_DIR / "docs/environment.md").read_text() == out, \
        "write it anew: deepjit env --markdown > docs/environment.md"


def test_manual_page_knows_all_commands_and_options(deepjit):
    page = (SOURCE_DIR / "docs/deepjit.1").read_text()
    for command in COMMANDS:
        assert f"\n.Cm {command}\n" in page
        out, _ = deepjit(command, "--help")
        for option in re.findall(r"--([a-z-]+)", out.split("Examples:")[0]):
            if option not in ("help", "usage", "version"):
                assert f"Fl Fl {option}" in page, option


def test_closed_descriptors(deepjit):
    """A file that we open must not become standard output."""
    deepjit("version", stdin=None, stdout=None, status=1,
            preexec_fn=lambda: (os.close(0), os.close(1)))


def test_full_disk_is_noticed_by_help(deepjit):
    with open("/dev/full", "wb") as full:
        _, err = deepjit("--help", status=1, stdout=full)
    assert "cannot write to standard output" in err
