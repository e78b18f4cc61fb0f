/* SPDX-License-Identifier: MIT */
/*
 * c = a * b for row-major matrices, n by n. A block makes a tile of TILE_M by TILE_N elements and
 * walks along k in steps of TILE_K; each thread makes one element. The tile sizes come from
 * -DTILE_M=... and so on, so that every loop has a constant length. n is a multiple of all three.
 *
 * Grid: n / TILE_N, n / TILE_M. Block: TILE_N, TILE_M.
 */
#include <deepjit/kernel.h>

DJ_BLOCK_KERNEL(matmul, (float *, c), (const float *, a), (const float *, b), (int, n))
{
    DJ_SHARED(float, tile_a[TILE_M][TILE_K]);
    DJ_SHARED(float, tile_b[TILE_K][TILE_N]);
    DJ_SHARED(float, sum[TILE_M][TILE_N]);
    const int row = DJ_BLOCK_IDX_Y * TILE_M;
    const int col = DJ_BLOCK_IDX_X * TILE_N;
    DJ_FOR_THREADS
    {
        sum[DJ_THREAD_IDX_Y][DJ_THREAD_IDX_X] = 0.0f;
    }
    for (int k0 = 0; k0 < n; k0 += TILE_K) {
        DJ_FOR_THREADS
        {
            const int x = DJ_THREAD_IDX_X;
            const int y = DJ_THREAD_IDX_Y;
            for (int k = x; k < TILE_K; k += TILE_N) {
                tile_a[y][k] = a[(row + y) * n + k0 + k];
            }
            for (int k = y; k < TILE_K; k += TILE_M) {
                tile_b[k][x] = b[(k0 + k) * n + col + x];
            }
        }
        DJ_FOR_THREADS
        {
            const int x = DJ_THREAD_IDX_X;
            const int y = DJ_THREAD_IDX_Y;
            float part = 0.0f;
            for (int k = 0; k < TILE_K; k++) {
                part += tile_a[y][k] * tile_b[k][x];
            }
            sum[y][x] += part;
        }
    }
    DJ_FOR_THREADS
    {
        const int x = DJ_THREAD_IDX_X;
        const int y = DJ_THREAD_IDX_Y;
        c[(row + y) * n + col + x] = sum[y][x];
    }
}
