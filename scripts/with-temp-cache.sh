#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a program in a temporary directory, with an empty cache there; both are removed afterwards.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit 1
DJ_JIT_CACHE_DIR=$dir/cache "$@"
