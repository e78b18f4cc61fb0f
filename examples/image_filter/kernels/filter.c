/* SPDX-License-Identifier: MIT */
/*
 * A convolution of an RGB picture, 8 bits a channel, with a 5 by 5 kernel passed by value; pixels
 * beyond the edge are those at the edge. One thread makes one pixel.
 */
#include <deepjit/kernel.h>

typedef struct weights {
    float at[5][5];
} weights;

DJ_FUNCTION int clamp_to(int value, int limit)
{
    return value < 0 ? 0 : value >= limit ? limit - 1 : value;
}

DJ_KERNEL(filter, (unsigned char *, out), (const unsigned char *, in), (weights, w), (int, width),
          (int, height))
{
    const int x = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
    const int y = DJ_BLOCK_IDX_Y * DJ_BLOCK_DIM_Y + DJ_THREAD_IDX_Y;
    if (x >= width || y >= height) {
        return;
    }
    for (int channel = 0; channel < 3; channel++) {
        float sum = 0.5f; /* rounds */
        for (int dy = -2; dy <= 2; dy++) {
            const int row = clamp_to(y + dy, height) * width;
            for (int dx = -2; dx <= 2; dx++) {
                const int pixel = row + clamp_to(x + dx, width);
                sum += w.at[dy + 2][dx + 2] * (float)in[3 * pixel + channel];
            }
        }
        out[3 * (y * width + x) + channel] = (unsigned char)(sum < 0.0f     ? 0
                                                             : sum > 255.0f ? 255
                                                                            : (int)sum);
    }
}
