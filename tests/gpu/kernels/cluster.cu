// SPDX-License-Identifier: MIT
// Each block leaves a number in its shared memory and reads the one of the next block of its
// cluster.
#include <cooperative_groups.h>

extern "C" __global__ void cluster(int *out)
{
    __shared__ int mine;
    const cooperative_groups::cluster_group group = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) {
        mine = 100 + (int)blockIdx.x;
    }
    group.sync();
    if (threadIdx.x == 0) {
        const unsigned next = (group.block_rank() + 1) % group.num_blocks();
        out[2 * blockIdx.x] = *group.map_shared_rank(&mine, next);
        out[2 * blockIdx.x + 1] = (int)group.num_blocks();
    }
    group.sync();
}
