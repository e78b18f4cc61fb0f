// SPDX-License-Identifier: MIT
extern "C" __global__ void first_of_two(int *out)
{
    out[0] = 1;
}

extern "C" __global__ void second_of_two(int *out)
{
    out[0] = 2;
}
