/* SPDX-License-Identifier: MIT */
/* Uses every macro of deepjit/kernel.h; compiled as C11 and C17, pedantic. */
#include <deepjit/kernel.h>

DJ_FUNCTION float scaled(const float *DJ_RESTRICT values, int index, float factor)
{
    return factor * values[index];
}

DJ_KERNEL(indices, (int *, out), (int, n))
{
    int x = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
    int y = DJ_BLOCK_IDX_Y * DJ_BLOCK_DIM_Y + DJ_THREAD_IDX_Y;
    int z = DJ_BLOCK_IDX_Z * DJ_BLOCK_DIM_Z + DJ_THREAD_IDX_Z;
    if (x + y + z >= n) {
        return;
    }
    out[x + y + z] = DJ_GRID_DIM_X * DJ_GRID_DIM_Y * DJ_GRID_DIM_Z;
}

DJ_BLOCK_KERNEL(phases, (float *, out), (const float *, in), (float, factor))
{
    DJ_SHARED(float, part[64]);
    DJ_DYNAMIC_SHARED(float, extra);
    DJ_FOR_THREADS
    {
        part[DJ_THREAD_IDX_X] = scaled(in, DJ_THREAD_IDX_X, factor);
        extra[DJ_THREAD_IDX_X] = (float)(DJ_THREAD_IDX_Y + DJ_THREAD_IDX_Z);
    }
    DJ_FOR_THREADS
    {
        if (DJ_THREAD_IDX_X > 0) {
            continue;
        }
        out[DJ_BLOCK_IDX_X] = part[0] + extra[0];
    }
}

DJ_KERNEL(no_parameters)
{
}

#define P4(a) (int, a##0), (int, a##1), (int, a##2), (int, a##3)
#define P12(a) P4(a##0), P4(a##1), P4(a##2)
DJ_KERNEL(most_parameters, P12(a), P12(b), P12(c), P12(d))
{
    (void)(a00 + a01 + a02 + a03 + a10 + a11 + a12 + a13 + a20 + a21 + a22 + a23);
    (void)(b00 + b01 + b02 + b03 + b10 + b11 + b12 + b13 + b20 + b21 + b22 + b23);
    (void)(c00 + c01 + c02 + c03 + c10 + c11 + c12 + c13 + c20 + c21 + c22 + c23);
    (void)(d00 + d01 + d02 + d03 + d10 + d11 + d12 + d13 + d20 + d21 + d22 + d23);
}
