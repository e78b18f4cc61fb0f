#!/bin/bash
# SPDX-License-Identifier: MIT
#
# test-consumers.sh <build directory>
#
# Installs what was built into a temporary place whose name has a blank, builds the projects in
# tests/consumers against it in every way that we offer, and runs them. Checks that a program or
# shared object that embeds the static library exports nothing of it, and that two different
# builds of the library work in one process.
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)

work=$(mktemp -d "${TMPDIR:-/tmp}/deepjit consumers XXXXXX")
trap 'rm -rf "$work"' EXIT
export DJ_JIT_CACHE_DIR="$work/cache"
jobs=-j$(nproc)

quietly() { # shows the output of a command that fails
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log"
        echo "consumers: failed: $*"
        exit 1
    }
}

exports_nothing() {
    local names
    names=$(nm -D --defined-only "$1" | grep -E ' dj_' || true)
    if [ -n "$names" ]; then
        echo "consumers: $1 exports what it embeds: $names"
        exit 1
    fi
}

run_all() { # <directory of the four programs>
    for program in uses_shared uses_static uses_embedder; do
        quietly "$1/$program"
    done
    exports_nothing "$1/uses_static"
    exports_nothing "$1/libembeds.so"
}

cmake_project() { # <name> <options>...
    quietly cmake -S "$root/tests/consumers/$1" -B "$work/$1" "${@:2}"
    quietly cmake --build "$work/$1" "$jobs"
    run_all "$work/$1"
    echo "consumers: $1 works"
}

example() { # <name> <options>...: the example that is a project of its own
    quietly cmake -S "$root/examples/embedding" -B "$work/$1" "${@:2}"
    quietly cmake --build "$work/$1" "$jobs"
    quietly "$work/$1/embedding"
    exports_nothing "$work/$1/embedding"
    echo "consumers: examples/embedding works, $1"
}

# A second, different build: other version, no optimisation. Its tree is a copy with a new number.
second_build() {
    mkdir "$work/second"
    cp -r "$root/CMakeLists.txt" "$root/cmake" "$root/include" "$root/src" "$work/second"
    sed -i 's/\(DJ_VERSION_MAJOR\) .*/\1 9/; s/\(DJ_VERSION_STRING\) "[0-9]*/\1 "9/' \
        "$work/second/include/deepjit/base.h"
    quietly cmake -S "$work/second" -B "$work/second/build" -DCMAKE_BUILD_TYPE=Debug \
        -DDEEPJIT_BUILD_CLI=OFF -DDEEPJIT_BUILD_TESTS=OFF \
        -DDEEPJIT_BUILD_EXAMPLES=OFF -DDEEPJIT_BUILD_BENCH=OFF
    quietly cmake --build "$work/second/build" "$jobs"
    quietly cmake --install "$work/second/build" --prefix "$work/second/prefix"
}

two_copies() {
    local out="$work/two_copies"
    mkdir "$out" "$out/second"
    second_build
    PKG_CONFIG_PATH=$(dirname "$(find "$work/second/prefix" -name deepjit.pc)") \
        quietly make -C "$root/tests/consumers/pkgconfig" "OUT=$out/second"
    quietly cc -pthread -o "$out/two_copies" "$root/tests/consumers/two_copies/two_copies.c" -ldl
    quietly "$out/two_copies" "$work/pkgconfig/libembeds.so" "$out/second/libembeds.so"
    echo "consumers: two copies in one process work"
}

# Make variables and flags of an outer make are not meant for the projects.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
quietly cmake --install "$build" --prefix "$work/prefix"
libdir=$(dirname "$(find "$work/prefix" -name libdeepjit.a)")

cmake_project add_subdirectory "-DDEEPJIT_SOURCE_DIR=$root"
cmake_project find_package "-DCMAKE_PREFIX_PATH=$work/prefix"
example "by add_subdirectory" "-DDEEPJIT_SOURCE_DIR=$root"
example "by find_package" "-DCMAKE_PREFIX_PATH=$work/prefix"

mkdir "$work/pkgconfig"
PKG_CONFIG_PATH="$libdir/pkgconfig" \
    quietly make -C "$root/tests/consumers/pkgconfig" "OUT=$work/pkgconfig"
LD_LIBRARY_PATH="$libdir" run_all "$work/pkgconfig"
echo "consumers: pkgconfig works"

two_copies
