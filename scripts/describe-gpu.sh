#!/bin/bash
# SPDX-License-Identifier: MIT
#
# describe-gpu.sh DIR
#
# What results from a GPU must say: when, which revision (DIR is a build directory or what
# pack-gpu.sh made), which GPU and driver, nvcc, processor and system.
set -u
date -u '+date: %Y-%m-%d %H:%M UTC'
echo "revision: $(cat "$1/revision" 2>/dev/null || git rev-parse --short HEAD 2>/dev/null)"
echo "gpu: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1 | tr '\n' ' ')"
echo "nvcc: $(nvcc --version 2>&1 | sed -n 's/.*release //p')"
echo "processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc)"
echo "system: $(uname -sr), $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release)"
