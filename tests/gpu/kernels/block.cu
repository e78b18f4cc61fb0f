// SPDX-License-Identifier: MIT
// A parameter block of INTS * 4 + 8 bytes; from sm_70 on 32764 are allowed.
struct block {
    int values[INTS];
};

extern "C" __global__ void block_sum_of(long long *out, const __grid_constant__ block data)
{
    long long sum = 0;
    for (int i = 0; i < INTS; i++) {
        sum += (long long)(i + 1) * data.values[i];
    }
    out[0] = sum;
}
