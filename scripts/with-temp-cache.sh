#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a command with an empty cache that is removed afterwards.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
DJ_JIT_CACHE_DIR=$dir "$@"
