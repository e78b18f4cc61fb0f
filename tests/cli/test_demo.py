# SPDX-License-Identifier: MIT
"""deepjit demo and bench."""
import json
import pathlib
import re

import pytest

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def duration(out, label):
    number, unit = re.search(rf"^{re.escape(label)} +([0-9.]+) (ns|us|ms|s)\b", out,
                             re.MULTILINE).groups()
    return float(number) * UNITS[unit]


def test_demo(deepjit):
    out, err = deepjit("demo")
    assert "result correct" in out and err.startswith("compiling ")
    cold, disk, memory = (duration(out, label) for label in
                          ("cold (compiled)", "from disk", "from memory"))
    assert cold > disk > memory > 0
    assert duration(out, "start-up time") > 0
    for text in ("entry  ", ".committed", "kernel.so", "meta.json", "library size",
                 "resident memory"):
        assert text in out
    assert list(deepjit.tmp.iterdir()) == [] and not deepjit.cache.exists()


def test_demo_keeps_its_root(deepjit):
    out, _ = deepjit("demo", "--keep")
    root = pathlib.Path(re.search(r"^cache root kept: (.*)$", out, re.MULTILINE).group(1))
    entry = pathlib.Path(re.search(r"^entry  (.*)$", out, re.MULTILINE).group(1))
    assert root.parent == deepjit.tmp and entry.parent == root / "cache"
    assert (entry / ".committed").is_file()


def test_demo_in_a_given_root_is_cold_each_time(deepjit):
    other = deepjit.build("-", "--cache-dir=given", stdin="int x;\n")
    for _ in range(2):
        out, _ = deepjit("demo", "--cache-dir", "given")
        assert f"entry  {deepjit.dir}/given/cache/deepjit_demo." in out
    assert other.is_dir() and len(list((deepjit.dir / "given/cache").iterdir())) == 2


def test_demo_without_what_it_needs(deepjit):
    _, err = deepjit("demo", "--backend", "nonsense", status=3)
    assert "'nonsense' is not in this build" in err
    _, err = deepjit("demo", status=3, env={"DJ_JIT_HOST_COMPILER": "/nonexistent/cc"})
    assert "DJ_JIT_HOST_COMPILER" in err
    _, err = deepjit("demo", "--cache-dir", "/dev/null/x", status=1)
    assert "deepjit: " in err
    _, err = deepjit("demo", status=1, env={"TMPDIR": "/nonexistent"})
    assert "TMPDIR" in err
    deepjit("demo", "argument", status=2)
    assert list(deepjit.tmp.iterdir()) == []


def test_demo_ignores_the_callers_cache(deepjit):
    deepjit("demo", "--env-prefix", "MYLIB", env={"MYLIB_JIT_CACHE_DIR": str(deepjit.cache)})
    assert not deepjit.cache.exists()


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    from conftest import Command
    command = Command(tmp_path_factory.mktemp("bench"))
    out, err = command("bench", "--quick", "--json")
    assert err == "" and list(command.tmp.iterdir()) == []
    return [json.loads(line) for line in out.splitlines()]


def test_bench_begins_with_the_machine(records):
    machine = records[0]
    assert machine["name"] == "machine"
    assert machine["processors"] > 0 and machine["cpu"] and machine["kernel"]
    assert machine["compiler"] and machine["deepjit"]


def test_bench_measures_what_is_judged(records):
    by_name = {record["name"]: record for record in records[1:]}
    assert set(by_name) == {
        "memory_hit_1k", "memory_hit_1k_2_threads", "memory_hit_10k", "memory_hit_10k_2_threads",
        "launch_direct_call", "launch", "disk_by_hand", "disk_hit",
        "cold_compile", "process_version", "process_disk_hit"}
    for record in by_name.values():
        assert record["unit"] == "ns" and record["n"] > 0
        assert 0 < record["min"] <= record["median"] and record["iqr"] >= 0
    assert by_name["memory_hit_1k"]["at_most"] == 150
    assert by_name["memory_hit_10k"]["at_most"] == 600
    for name, what, bound, limit in (
            ("memory_hit_1k_2_threads", "ratio", "at_least", 1.8),
            ("memory_hit_10k_2_threads", "ratio", "at_least", 1.8),
            ("launch", "difference", "at_most", 100),
            ("disk_hit", "ratio", "at_most", 2)):
        record = by_name[name]
        assert record[bound] == limit and record["against"] in by_name
        met = record[what] >= limit if bound == "at_least" else record[what] <= limit
        assert record["ok"] == met


def test_bench_usage(deepjit):
    deepjit("bench", "argument", status=2)
