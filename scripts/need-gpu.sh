#!/bin/bash
# SPDX-License-Identifier: MIT
#
# need-gpu.sh NAME DEEPJIT
#
# Ends with 1 after one line if the driver finds no NVIDIA GPU here. NAME is whose message it is,
# DEEPJIT the command, which asks the driver as the programs will.
set -u
report=$("$2" doctor --backend cuda 2>&1)
case $report in
*'  ok      device '*) exit 0 ;;
esac
why=$(sed -n 's/^  MISSING device  *//p' <<<"$report")
[ -n "$why" ] || why=$(head -n 1 <<<"$report")
echo "$1: no NVIDIA GPU can be used here: $why. Needed: a GPU, its driver (CUDA 12.0 or newer)" \
    "with libcuda.so.1, and nvcc 12.9 or newer" >&2
exit 1
