# SPDX-License-Identifier: MIT
"""Launches of an empty kernel from Python frameworks, for comparison: JSON lines like those of the
benchmarks in C. What is not installed is left out."""

import json
import statistics
import time

CHUNK = 200
CHUNKS = 60


def measure(name, launch, synchronize):
    for _ in range(CHUNK):
        launch()
    synchronize()
    samples = []
    for _ in range(CHUNKS):
        begin = time.perf_counter_ns()
        for _ in range(CHUNK):
            launch()
        samples.append((time.perf_counter_ns() - begin) / CHUNK)
        synchronize()
    print(json.dumps({"name": name, "ours_ns": round(statistics.median(samples), 1)}), flush=True)


def cupy_launch():
    import cupy

    kernel = cupy.RawKernel('extern "C" __global__ void empty(float *a, int b, float *c) {}',
                            "empty")
    a = cupy.zeros(32, dtype=cupy.float32)
    count = cupy.int32(1)
    measure("for comparison: CuPy RawKernel, 3 arguments",
            lambda: kernel((1,), (32,), (a, count, a)), cupy.cuda.runtime.deviceSynchronize)


def torch_launch():
    import torch

    a = torch.zeros(32, device="cuda")
    measure("for comparison: torch, in-place add of 32 numbers", lambda: a.add_(1.0),
            torch.cuda.synchronize)


def triton_launch():
    import torch
    import triton

    @triton.jit
    def empty(a, b, c):
        pass

    a = torch.zeros(32, device="cuda")
    measure("for comparison: Triton, 3 arguments", lambda: empty[(1,)](a, 1, a),
            torch.cuda.synchronize)


def main():
    for function in (cupy_launch, torch_launch, triton_launch):
        try:
            function()
        except Exception as error:  # whatever a framework raises: it is only a comparison
            print(json.dumps({"name": f"for comparison: {function.__name__}",
                              "left_out": f"{type(error).__name__}: {error}"[:200]}), flush=True)


main()
