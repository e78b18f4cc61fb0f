/* SPDX-License-Identifier: MIT */
/*
 * out[block] = sum of the block's part of in[0..n). Phases: every thread adds up its share, then
 * half as many threads add pairs, and so on. The block's x is a power of two up to 1024.
 */
#include <deepjit/kernel.h>

DJ_BLOCK_KERNEL(block_sum, (float *, out), (const float *, in), (int, n))
{
    DJ_SHARED(float, part[1024]);
    DJ_FOR_THREADS
    {
        const int stride = DJ_GRID_DIM_X * DJ_BLOCK_DIM_X;
        float sum = 0.0f;
        for (int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X; i < n; i += stride) {
            sum += in[i];
        }
        part[DJ_THREAD_IDX_X] = sum;
    }
    for (int half = DJ_BLOCK_DIM_X / 2; half > 0; half /= 2) {
        DJ_FOR_THREADS
        {
            if (DJ_THREAD_IDX_X < half) {
                part[DJ_THREAD_IDX_X] += part[DJ_THREAD_IDX_X + half];
            }
        }
    }
    DJ_FOR_THREADS
    {
        if (DJ_THREAD_IDX_X == 0) {
            out[DJ_BLOCK_IDX_X] = part[0];
        }
    }
}
