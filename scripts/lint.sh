#!/bin/bash
# SPDX-License-Identifier: MIT
# lint.sh <build directory>: everything that can be checked without running the code. Runs all
# checks, then fails if one of them did.
set -u
build=$(cd "$1" && pwd) || exit 1
cd "$(dirname "$0")/.." || exit 1
failed=()

check() { # <what> <command>...
    echo "lint: $1"
    "${@:2}" || failed+=("$1")
}

flags="-std=c17 -D_GNU_SOURCE -Iinclude -Isrc $(pkg-config --cflags libsodium libxxhash jansson)"
export flags
tidy() {
    # shellcheck disable=SC2016 # for the inner shell
    find src cli -name '*.c' -print0 |
        xargs -0 -n 1 -P "$(nproc)" sh -c '
            out=$(clang-tidy --quiet "$0" -- $flags 2>&1) || { echo "$out"; exit 1; }'
}

check "formatting (mend it with make format)" scripts/format.sh --check
check "include edges" scripts/check-edges.py
check "unique names" scripts/check-names.py
check "style" scripts/check-style.py
check "exported symbols" scripts/check-exports.py "$build/libdeepjit.so"
check "documentation" scripts/check-docs.py "$build/deepjit"
check "clang-tidy" tidy

if [ "${#failed[@]}" -gt 0 ]; then
    printf 'lint: FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "lint: all checks passed"
