// SPDX-License-Identifier: MIT
// An array with a run-time index: local memory, without a spilled register.
extern "C" __global__ void local_array(int *out, const int *in, int n)
{
    int table[32];
    for (int i = 0; i < 32; i++) {
        table[i] = in[i];
    }
    for (int i = 0; i < n; i++) {
        table[in[i] & 31] += i;
    }
    out[threadIdx.x] = table[in[threadIdx.x] & 31];
}
