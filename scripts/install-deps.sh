#!/bin/sh
# SPDX-License-Identifier: MIT
#
# install-deps.sh [--lint]
#
# Makes sure that what the build and the tests need is there (--lint: what `make lint` needs).
# Asks the tools themselves, not the package manager, so that any distribution will do. What is
# missing is installed on Debian and Ubuntu as root; otherwise the one command to run is printed
# and the exit status is 1. Does nothing, quickly, when nothing is missing.
set -eu

missing= # Debian package names
need() { # need <package> <command that succeeds when it is there>...
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
have() { command -v "$1"; }
compiles() { # a hosted program, so that the C library's headers are there as well
    echo '#include <stdlib.h>
int main(void) { return EXIT_SUCCESS; }' | "$1" -x "$2" -o /dev/null -
}
finds_python() { "$(dirname "$0")/find-python.sh" pytest; }

check_build() {
    need gcc have gcc
    need g++ compiles g++ c++
    need libc6-dev compiles cc c
    need make have make
    need cmake have cmake
    need pkg-config have pkg-config
    need libsodium-dev pkg-config --exists libsodium
    need libxxhash-dev pkg-config --exists 'libxxhash >= 0.8'
    need libjansson-dev pkg-config --exists jansson
    need libcmocka-dev pkg-config --exists cmocka
    need python3-pytest finds_python
}
check_lint() {
    need clang have clang
    need clang-format have clang-format
    need clang-tidy have clang-tidy
}
check_all() {
    missing=
    check_build
    if [ "${1:-}" = --lint ]; then
        check_lint
    fi
}

check_all "$@"
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "Missing, by their names on Debian:$missing" >&2
        echo "Install what your system calls them and run this again." >&2
        exit 1
    fi
    install="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" -ne 0 ]; then
        echo "Some packages are missing. Run this, then try again:" >&2
        echo "  sudo apt-get update && sudo $install" >&2
        exit 1
    fi
    echo "Installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update || echo "apt-get update failed; trying with the lists at hand" >&2
    $install
    check_all "$@"
    if [ -n "$missing" ]; then
        echo "Still missing after the installation:$missing" >&2
        exit 1
    fi
fi

version=$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
if [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -n 1)" != 3.25 ]; then
    echo "cmake $version is too old: 3.25 or newer is needed (python3 -m pip install cmake" \
         "has one)." >&2
    exit 1
fi
