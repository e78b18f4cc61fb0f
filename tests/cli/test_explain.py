# SPDX-License-Identifier: MIT
"""deepjit explain: the key and its fields."""
import json

import pytest


def explain(deepjit, *args, **options):
    out, err = deepjit("explain", "--json", *args, **options)
    assert err == ""
    return json.loads(out)


def values(explained, name):
    return [field.get("value") for field in explained["fields"] if field["field"] == name]


def test_key_is_the_entrys_digest(deepjit, scale):
    explained = explain(deepjit, scale)
    assert not (deepjit.cache / "cache").exists() or not any((deepjit.cache / "cache").iterdir())
    assert deepjit.build(scale).name == f"scale.{explained['key']}"
    assert explained["tag"] == "scale"
    assert "-O3" in values(explained, "flag")
    assert values(explained, "backend") == ["host"]


def test_text(deepjit, scale):
    key = explain(deepjit, scale)["key"]
    out, _ = deepjit("explain", scale)
    lines = out.splitlines()
    assert lines[-1].split() == ["key", key]
    source = next(line for line in lines if line.startswith("source "))
    assert f"({scale.stat().st_size} bytes, fnv1a64 " in source
    full, _ = deepjit("explain", "--full", scale)
    assert "#include <deepjit/kernel.h>\\nDJ_KERNEL" in full


def test_what_changes_the_key(deepjit, scale):
    base = explain(deepjit, scale)
    assert explain(deepjit, "--tag", "other", scale)["key"] == base["key"]
    assert explain(deepjit, "--dump-asm", scale)["key"] == base["key"]
    assert explain(deepjit, "-I", deepjit.dir, scale)["key"] == base["key"]
    changed = explain(deepjit, "--flag=-DX", scale)
    assert changed["key"] != base["key"]
    assert values(changed, "flag") == values(base, "flag") + ["-DX"]


def test_values_that_are_not_text(deepjit):
    source = b'/* \0\xff\n */\n'
    field = [f for f in explain(deepjit, "-", stdin=source)["fields"] if f["field"] == "source"][0]
    assert field["size"] == len(source) and "value" not in field
    hash_ = 0xcbf29ce484222325
    for byte in source:
        hash_ = (hash_ ^ byte) * 0x100000001b3 % 2**64
    assert field["fnv1a64"] == f"{hash_:016x}"
    out, _ = deepjit("explain", "--full", "-", stdin=source)
    assert "/* \\x00\\xff\\n */\\n" in out


def test_errors(deepjit, scale):
    deepjit("explain", deepjit.dir / "none.c", status=1)
    deepjit("explain", status=2)
    deepjit("explain", scale, scale, status=2)
    out, err = deepjit("explain", scale, status=3,
                       env={"DJ_JIT_HOST_COMPILER": "/nonexistent/cc"})
    assert "/nonexistent/cc" in err


def test_tracked_headers_are_fields(deepjit):
    deepjit.write("inc/mine/a.h", "int a;\n")
    deepjit.write("k.c", "#include <mine/a.h>\n")
    explained = explain(deepjit, "-I", "inc", "--track", "mine/", "k.c")
    assert any(value is not None and "mine/a.h" in value
               for value in values(explained, "include")) or \
        any("mine/a.h" in json.dumps(field) for field in explained["fields"])


@pytest.mark.parametrize("flag", ["--flag=\xe9", "--signature=\x01"])
def test_odd_values_are_still_json(deepjit, scale, flag):
    explain(deepjit, flag, scale)
