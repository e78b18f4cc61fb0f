#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Every public header compiles alone, and the macros in use (tests/headers), as C11, C17 and
# C++17, pedantic, with gcc and clang as far as they are here. deepjit/kernel.h is for kernels,
# which are C.
set -u
cd "$(dirname "$0")/.." || exit 1

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0
runs=0

try() {
    runs=$((runs + 1))
    if ! "$@" >"$dir/log" 2>&1; then
        failures=$((failures + 1))
        echo "failed: $*"
        cat "$dir/log"
    fi
}

check_dialect() { # <compiler> <language> <standard>
    local compile=("$1" -x "$2" "-std=$3" -Wall -Wextra -pedantic -Werror -Iinclude)
    echo 'int main(void) { return 0; }' >"$dir/probe"
    if ! "${compile[@]}" -o "$dir/probe.out" "$dir/probe" >/dev/null 2>&1; then
        echo "skipped: $1 cannot build $3 here"
        return
    fi
    local header
    while read -r header; do
        if [ "$header" = deepjit/kernel.h ] && [ "$2" = c++ ]; then
            continue
        fi
        echo "#include <$header>" >"$dir/alone"
        try "${compile[@]}" -fsyntax-only "$dir/alone"
    done < <(cd include && find deepjit -name '*.h' | sort)
    try "${compile[@]}" -DDJ_STATIC -o "$dir/host_macros" tests/headers/host_macros.c
    try "$dir/host_macros"
    if [ "$2" = c ]; then
        try "${compile[@]}" -fsyntax-only tests/headers/kernel_macros.c
    fi
}

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    check_dialect "$compiler" c c11
    check_dialect "$compiler" c c17
    case $compiler in
    gcc) compiler=g++ ;;
    clang) compiler=clang++ ;;
    esac
    check_dialect "$compiler" c++ c++17
done
echo "$runs checks, $failures failed"
[ "$failures" -eq 0 ] && [ "$runs" -gt 0 ]
