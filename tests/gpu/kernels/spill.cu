// SPDX-License-Identifier: MIT
// 64 values that live through a loop, and 1024 threads a block with two blocks at once: 32
// registers are not enough.
extern "C" __global__ void __launch_bounds__(1024, 2) spill(float *out, const float *in, int n)
{
    float value[64];
#pragma unroll
    for (int i = 0; i < 64; i++) {
        value[i] = in[i * 1024 + threadIdx.x];
    }
    for (int k = 0; k < n; k++) {
#pragma unroll
        for (int i = 0; i < 64; i++) {
            value[i] = fmaf(value[i], value[(i + 17) % 64], in[k]);
        }
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 64; i++) {
        sum += value[i];
    }
    out[threadIdx.x] = sum;
}
