# SPDX-License-Identifier: MIT
"""deepjit cache: ls, show, verify, clear."""
import json
import os
import time

import pytest


@pytest.fixture
def entries(deepjit):
    """Three entries, two of them with one tag."""
    return [deepjit.build("--tag", tag, "-", stdin=f"int x{i};\n")
            for i, tag in enumerate(["one", "two", "two"])]


def listing(deepjit, action="ls", status=0):
    out, _ = deepjit("cache", action, "--json", status=status)
    return json.loads(out)


def test_empty_cache(deepjit):
    assert listing(deepjit) == []
    out, err = deepjit("cache", "ls")
    assert (out, err) == ("0 entries, 0 B\n", "")


def test_ls(deepjit, entries):
    found = {item["path"]: item for item in listing(deepjit)}
    assert set(found) == {str(entry) for entry in entries}
    for entry in entries:
        item = found[str(entry)]
        tag, _, digest = entry.name.rpartition(".")
        assert (item["tag"], item["digest"]) == (tag, digest)
        assert item["state"] == "good" and item["problem"] == ""
        assert item["backend"] == "host" and item["arch"] == os.uname().machine
        assert item["root"] == str(deepjit.cache)
        assert abs(item["used"] - time.time()) < 7200
        sizes = [path.stat().st_size for path in entry.iterdir() if path.name != ".committed"]
        assert (item["files"], item["bytes"]) == (len(sizes), sum(sizes))
    out, err = deepjit("cache", "ls")
    assert err == ""
    assert out.startswith(f"{deepjit.cache}\n") and "\n3 entries, " in out
    assert all(entry.name in out for entry in entries)


def test_show(deepjit, entries):
    digest = entries[0].name.rpartition(".")[2]
    for name in (entries[0], f"{entries[0]}/", entries[0].name, "one", digest, digest[:12]):
        out, _ = deepjit("cache", "show", "--json", name)
        item = json.loads(out)
        assert item["path"] == str(entries[0])
        assert {file["name"]: file["bytes"] for file in item["files"]} == {
            path.name: path.stat().st_size for path in entries[0].iterdir()}
        assert item["meta"] == json.loads((entries[0] / "meta.json").read_text())
        assert item["meta"]["key"] == digest
    out, _ = deepjit("cache", "show", entries[0])
    assert f"path     {entries[0]}\n" in out and "kernel.so" in out and '"key"' in out


def test_show_needs_one_entry(deepjit, entries):
    _, err = deepjit("cache", "show", "two", status=1)
    assert "several entries" in err and str(entries[1]) in err and str(entries[2]) in err
    _, err = deepjit("cache", "show", "none", status=1)
    assert "no cache entry is called 'none'" in err
    _, err = deepjit("cache", "show", status=2)
    assert "needs the name" in err


def test_show_with_broken_meta(deepjit, entries):
    (entries[0] / "meta.json").write_text("{ not JSON")
    out, _ = deepjit("cache", "show", "--json", entries[0])
    assert json.loads(out)["meta"] is None
    out, _ = deepjit("cache", "show", entries[0])
    assert "{ not JSON" in out


def test_verify_finds_damage_and_leaves_it(deepjit, entries):
    assert {item["state"] for item in listing(deepjit, "verify")} == {"good"}
    binary = entries[1] / "kernel.so"
    data = bytearray(binary.read_bytes())
    data[len(data) // 2] ^= 1
    binary.write_bytes(data)
    states = {item["path"]: item for item in listing(deepjit, "verify", status=1)}
    assert states[str(entries[0])]["state"] == "good"
    assert states[str(entries[1])]["state"] == "damaged"
    assert "kernel.so" in states[str(entries[1])]["problem"] or \
        states[str(entries[1])]["problem"] != ""
    out, _ = deepjit("cache", "verify", status=1)
    assert entries[1].name in out and entries[0].name not in out and "1 damaged" in out
    assert binary.read_bytes() == data


def test_foreign_entries_are_left_alone(deepjit, entries):
    (entries[0] / ".committed").write_bytes(b"")
    assert {item["path"]: item["state"] for item in listing(deepjit)}[str(entries[0])] == "foreign"
    out, _ = deepjit("cache", "verify")
    assert "1 of other programs or versions" in out
    out, _ = deepjit("cache", "clear")
    assert out == "removed 2 entries\n" and entries[0].is_dir()


def test_clear(deepjit, entries):
    out, _ = deepjit("cache", "clear", "two")
    assert out == "removed 2 entries\n"
    assert [item["path"] for item in listing(deepjit)] == [str(entries[0])]
    out, _ = deepjit("cache", "clear")
    assert out == "removed 1 entry\n" and listing(deepjit) == []


def test_clear_removes_the_kept_sources(deepjit):
    def build(tag, source):
        return deepjit.build("--debug-info", "--tag", tag, "-", stdin=source)
    one, two = build("one", "int x1;\n"), build("two", "int x2;\n")
    assert build("three", "int x1;\n").name != one.name  # the same key under another tag
    keys = {entry.name.rpartition(".")[2] for entry in (one, two)}
    sources = deepjit.cache / "src"
    assert {path.name for path in sources.iterdir()} == keys
    # Of a build that has not published yet; left behind; not ours.
    for name, age in (("0" * 32, 0), ("1" * 32, 7200), ("notes", 7200)):
        (sources / name).mkdir()
        os.utime(sources / name, (time.time() - age, time.time() - age))
    others = {"0" * 32, "notes"}
    deepjit("cache", "clear", "one")
    assert {path.name for path in sources.iterdir()} == keys | others
    deepjit("cache", "clear", "two")
    assert {path.name for path in sources.iterdir()} == \
        {one.name.rpartition(".")[2]} | others
    deepjit("cache", "clear")
    assert {path.name for path in sources.iterdir()} == others


def test_several_roots(deepjit, entries):
    other = deepjit.dir / "other"
    mine = deepjit.build("-", stdin="int y;\n", env={"DJ_JIT_CACHE_DIR": str(other)})
    both = {"DJ_JIT_CACHE_DIR": f"{other}:{deepjit.cache}"}
    out, _ = deepjit("cache", "ls", "--json", env=both)
    assert [item["root"] for item in json.loads(out)] == [str(other)] + 3 * [str(deepjit.cache)]
    out, _ = deepjit("cache", "clear", env=both)  # the first root only
    assert out == "removed 1 entry\n" and not mine.exists() and len(listing(deepjit)) == 3
    out, _ = deepjit("cache", "ls", "--json", "--cache-dir", other)
    assert json.loads(out) == []


@pytest.mark.parametrize("args", [[], ["nonsense"], ["ls", "x"], ["clear", "--json"],
                                  ["show", "a", "b"]])
def test_usage(deepjit, args):
    out, err = deepjit("cache", *args, status=2)
    assert out == "" and err.startswith("deepjit")
