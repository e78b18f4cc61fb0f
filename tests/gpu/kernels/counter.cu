// SPDX-License-Identifier: MIT
// No parameters: what it does shows in its variables.
__device__ int counter = 5;
__constant__ int step = 1;

extern "C" __global__ void count_up()
{
    counter += step;
}
