// SPDX-License-Identifier: MIT
// All blocks add their number, wait for each other, and the first one reads the sum.
#include <cooperative_groups.h>

extern "C" __global__ void cooperative(int *valid, int *sum, int *total)
{
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    if (!grid.is_valid()) {
        return;
    }
    if (threadIdx.x == 0) {
        atomicAdd(sum, (int)blockIdx.x + 1);
    }
    grid.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *valid = 1;
        *total = *(volatile int *)sum;
    }
}
